"""`ingest` into Delta and Iceberg, on each release of Spark that has them. All run tables_program.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.soak import soak_only
from tests.spark.conftest import missing
from tests.spark.test_places import ROOT, environment, execute, settings

from rota.spark_connector.pipelines import delta_tables, iceberg_tables
from rota.testing import running_broker

PROGRAM = Path(__file__).with_name("tables_program.py")
KAFKA_PARTITIONS = [iceberg_tables.KAFKA_PARTITION] * 2  # of both tables
pytestmark = [soak_only, pytest.mark.timeout(900)]


@pytest.fixture
def servers() -> Iterator[str]:
    with running_broker({"auto.create.topics.enable": "true", "num.partitions": "1"}) as broker:
        yield broker.bootstrap_servers


def packages(kind: str, release: str) -> list[str]:
    """The settings of the page."""
    if kind == "delta":
        package = f"io.delta:delta-spark_{release}_2.13:{delta_tables.PACKAGES[release]}"
        # Delta's 50 tasks for each reading of a log are for large ones
        own = {**delta_tables.SETTINGS, "spark.databricks.delta.snapshotPartitions": "1"}
    else:
        package = f"org.apache.iceberg:iceberg-spark-runtime-{release}_2.13:{iceberg_tables.PACKAGES[release]}"
        catalog = "spark.sql.catalog.lake"
        own = {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.type": "hadoop"}
    return settings(**{"spark.master": "local[2]", "spark.jars.packages": package}, **own)


@pytest.mark.parametrize(
    ("kind", "release"), [("delta", "4.0"), ("delta", "4.1"), ("delta", "4.2"), ("iceberg", "4.0"), ("iceberg", "4.1")]
)
def test_each_record_is_in_the_table_once_whatever_is_written_again(
    servers: str, tmp_path: Path, kind: str, release: str
) -> None:
    python = environment(tmp_path / "environment", f"{ROOT}[spark]", f"pyspark=={release}.*")
    own = [*packages(kind, release), f"spark.sql.catalog.lake.warehouse={tmp_path}/warehouse"]
    done = execute([python, PROGRAM, kind, servers, tmp_path, *own], tmp_path, PYSPARK_PYTHON=str(python))
    if "unresolved dependency" in done.stdout + done.stderr:
        missing(f"the package of {kind} cannot be had")
    assert done.returncode == 0, done.stderr[-5000:]
    check(done.stdout.splitlines()[-1], release)


def check(line: str, release: str) -> None:
    found = json.loads(line)
    assert found.pop("version").startswith(release)
    assert "checkpoint" in found.pop("another")
    assert found.pop("renamed", KAFKA_PARTITIONS) == KAFKA_PARTITIONS
    assert found == {
        "between": [[1, 2], 1],
        "second": [[1, 2, 3], 2],
        "replayed": [[1, 2, 3], 2],
        "twice": [[1, 2, 3, 4], 2],
        "evolved": [[1, 2, 3, 4, 5], 2],
        "names": ["None", "None", "None", "None", "n"],
        "expired": [[6], 2],
        "older": True,
        "foreign": True,
        "untouched": True,
        "last": [[6, 7], 2],
    }
