"""What the command line says, and what becomes of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rota.client import AdminConfig, ProducerConfig
from rota.spark_connector.errors import OptionError
from rota.spark_connector.options import stream_options
from rota.spark_connector.pipelines.group_activity import Batch, Job, batch_writer, main, parse_arguments
from rota.spark_connector.pipelines.job_lock import locked
from rota.spark_connector.pipelines.lag import GroupPosition
from rota.spark_connector.pipelines.reading import TABLES

LEAST = ["--bootstrap-servers", "a:1", "--output", "/out"]


def test_two_options_are_enough() -> None:
    job = parse_arguments(LEAST)
    assert job == Job("a:1", "/out")
    assert job.checkpoint_path == "/out/_checkpoint"
    assert job.when == {"availableNow": True}
    assert stream_options(job.source).topics.names == ("__consumer_offsets",)
    assert job.client(AdminConfig) == {"bootstrap.servers": "a:1"}


def test_all_of_them() -> None:
    rest = ["--checkpoint", "/c", "--window", "5 seconds", "--trigger", "10 seconds", "--starting", "latest"]
    job = parse_arguments([*LEAST, *rest, "--option", "maxOffsetsPerTrigger=5", "--option", "kafka.client.id=a=b"])
    assert job.checkpoint_path == "/c"
    assert job.when == {"processingTime": "10 seconds"}
    assert job.source["startingOffsets"] == "latest"
    assert job.source["maxOffsetsPerTrigger"] == "5"
    assert job.client(AdminConfig)["client.id"] == "a=b"
    assert parse_arguments([*LEAST, "--trigger", "once"]).when == {"once": True}


@pytest.mark.parametrize("wrong", [["--option", "x"], ["--unknown", "x"]])
def test_invalid_arguments_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([*LEAST, *wrong])
    assert "must be NAME=VALUE" in (answer := capsys.readouterr().err) or "--unknown" in answer


def test_a_missing_argument_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([])
    assert "--bootstrap-servers" in capsys.readouterr().err


def test_security_options_reach_the_client_that_lists_offsets_and_no_repr(tmp_path: Path) -> None:
    settings = {"security.protocol": "SASL_SSL", "sasl.password": "planted", "ssl.ca.location": "/ca.pem"}
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    job = parse_arguments([*LEAST, "--command-config", str(file)])
    for name, value in settings.items():
        assert job.source[f"kafka.{name}"] == job.client(ProducerConfig)[name] == value
    assert "planted" not in repr(job)


def test_all_settings_of_a_client_reach_it_and_no_others() -> None:
    options = ("kafka.retry.backoff.ms=7", "kafka.fetch.min.bytes=5", "maxOffsetsPerTrigger=5")
    job = parse_arguments([*LEAST, *(word for option in options for word in ("--option", option))])
    assert job.client(AdminConfig) == {"bootstrap.servers": "a:1", "retry.backoff.ms": "7"}
    assert AdminConfig.from_properties(job.client(AdminConfig)).retry_backoff_ms == 7


def test_filters_limits_and_maintenance() -> None:
    more = "--groups a.* --topics t --lag-max 5 --rebalances-max 2 --alert-topic x --compact-after 9 --keep-days 3"
    job = parse_arguments([*LEAST, *more.split()])
    assert (job.groups, job.topics, job.lag_max, job.rebalances_max) == ("a.*", "t", 5, 2)
    assert (job.alert_topic, job.compact_after, job.keep_days) == ("x", 9, 3)


def test_the_format_of_the_tables() -> None:
    assert {type(table).__name__ for table in parse_arguments(LEAST).tables().values()} == {"ParquetTable"}
    delta = parse_arguments([*LEAST, "--format", "delta"])
    assert {type(table).__name__ for table in delta.tables().values()} == {"DeltaTable"}
    iceberg = parse_arguments([*LEAST, "--format", "iceberg", "--namespace", "lake.shop"])
    assert tuple(iceberg.tables()) == TABLES
    assert (iceberg.place.table_format, iceberg.place.namespace) == ("iceberg", "lake.shop")
    with pytest.raises(OptionError, match=r"CATALOG\.NAMESPACE for iceberg"):
        parse_arguments([*LEAST, "--format", "iceberg"]).tables()


def test_a_day_expires_before_the_rows_of_the_micro_batch_that_may_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the rows and Spark's commit, the next run reads the positions of the micro-batch before: a group
    that has stopped would be in no later row."""
    lag, checkpoint = tmp_path / "lag", tmp_path / "_checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id":"own"}')
    days = {0: "day=2026-01-01", 1: "day=2026-03-01", 2: "day=2026-03-02"}

    def write_batch(batch: object, at: Batch, *_: object) -> list[GroupPosition]:
        (lag / days[at.number] / f"batch_id={at.number}").mkdir(parents=True)
        return [GroupPosition((0, 1), "stopped", "t", 0, 1, 0)]

    monkeypatch.setattr("rota.spark_connector.pipelines.group_activity.write_batch", write_batch)
    write = batch_writer(Job("a:1", str(tmp_path), compact_after=2, keep_days=5))
    (lag / days[1]).mkdir(parents=True)  # what a run that was killed had written there was removed
    left = []
    for number in days:
        write(cast(Any, SimpleNamespace(sparkSession=None)), number)
        left.append(sorted(batch.parent.name for batch in lag.glob("day=*/*")))
    assert left == [[days[0]], [days[0], days[1]], [days[1], days[2]]]


def test_a_refused_job_says_why_and_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before it starts Spark."""
    with locked(f"{tmp_path}/_checkpoint"):
        assert main(["--bootstrap-servers", "a:1", "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("group_activity: option --checkpoint is")
