"""`group_activity` into Delta and Iceberg, killed between its tables. All run activity_program.py."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.soak import soak_only
from tests.spark.conftest import missing
from tests.spark.test_places import ROOT, environment, execute
from tests.spark.test_tables import packages

from rota.testing import running_broker

PROGRAM = Path(__file__).with_name("activity_program.py")
READERS = {"delta": "deltalake", "iceberg": "pyiceberg[pyarrow]"}  # of the report, which has no Spark
KILLS = ("commits", "lag")  # the tables after whose commits the job is killed; the others get theirs later
pytestmark = [soak_only, pytest.mark.timeout(1800)]


@pytest.fixture
def servers() -> Iterator[str]:
    with running_broker({"auto.create.topics.enable": "true", "num.partitions": "1"}) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    ("kind", "release"), [("delta", "4.0"), ("delta", "4.1"), ("delta", "4.2"), ("iceberg", "4.0"), ("iceberg", "4.1")]
)
def test_a_job_that_is_killed_between_its_tables_has_each_row_once(
    servers: str, tmp_path: Path, kind: str, release: str
) -> None:
    python = environment(tmp_path / "environment", f"{ROOT}[spark]", f"pyspark=={release}.*", READERS[kind])
    own = [*packages(kind, release), f"spark.sql.catalog.lake.warehouse={tmp_path}/warehouse"]
    for kill in (*KILLS, ""):
        command = [python, PROGRAM, kind, servers, tmp_path, kill, *own]
        done = execute(command, tmp_path, PYSPARK_PYTHON=str(python))
        if "unresolved dependency" in done.stdout + done.stderr:
            missing(f"the package of {kind} cannot be had")
        assert done.returncode == (-signal.SIGKILL if kill else 0), done.stderr[-5000:]
    check(done.stdout.splitlines()[-1], release)


def check(line: str, release: str) -> None:
    found = json.loads(line)
    assert found.pop("version").startswith(release)
    assert "checkpoint" in found.pop("another")
    assert "the format of the tables of the checkpoint" in found.pop("elsewhere")
    assert set(found.pop("as Parquet").values()) == {True}
    first = {"commits": 2, "lag": 3, "rebalances": 1, "members": 2, "timeline": 0, "skipped": 1, "alerts": 1}
    assert found == {
        "killed": {**first, "alerts": 0},
        "columns": True,
        "first": first,
        "lags": [10],
        "alerts": [10],
        "replayed": True,
        "second": {"commits": 3, "lag": 7, "rebalances": 2, "members": 4, "timeline": 0, "skipped": 1, "alerts": 5},
        "replayed later": True,
        "compacted": 2,  # the files of the micro-batches before, and that of the last one
        "reported": True,
        "expired": [["1970-01-20"], 2],
        "first day": "1970-01-20",
        "of that day": 2,
        "older": True,
        "untouched": True,
    }
