"""What the command line says; what becomes of the records is in tests/spark/test_ingest.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, StructType, TimestampType

from rota.spark_connector.errors import OptionError
from rota.spark_connector.options import stream_options
from rota.spark_connector.pipelines.ingest import Job, check_columns, check_names, decoder, main, parse_arguments

LEAST = ["--bootstrap-servers", "a:1", "--output", "/out", "--topics", "t,u"]
RECORD = StructType().add("id", LongType()).add("at", TimestampType())
JOB = Job("a:1", "t", "/out")


def test_the_defaults() -> None:
    job = parse_arguments(LEAST)
    assert job == Job("a:1", "t,u", "/out", interval="10 seconds")
    assert job.when == {"processingTime": "10 seconds"}
    assert job.checkpoint_path == "/out/_checkpoint"
    options = stream_options(job.source)
    assert (options.topics.names, options.group_id) == (("t", "u"), None)


def test_all_arguments(tmp_path: Path) -> None:
    secret = tmp_path / "credentials"
    secret.write_text("u:planted\n")
    more = "--once --group g --deduplicate-by id,_key --event-time at --value-format avro --keep-days 7"
    job = parse_arguments([*LEAST, *more.split(), "--registry-credentials", str(secret)])
    assert job.when == {"availableNow": True}
    assert job.deduplicate_by == ("id", "_key")
    assert stream_options(job.source).group_id == "g"
    assert job.registry_credentials == "u:planted"
    assert "planted" not in repr(job)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "--schema"),
        ({"schema": "/missing"}, "can be read"),
        ({"schema": "x", "value_format": "xml"}, "json, avro, protobuf"),
        ({"schema": "x", "value_format": "protobuf"}, "--message"),
        ({"schema": "x", "message": "M"}, "for no other format"),
        ({"schema": "x", "framed": True}, "used with protobuf"),
        ({"schema": "/missing", "value_format": "protobuf", "message": "M"}, "can be read"),
        ({"schema_registry": "http://r"}, "Avro values of one topic"),
        ({"schema_registry": "http://r", "schema": "x"}, "in place of it"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(change: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        decoder(replace(JOB, **change))


def test_columns_are_those_of_the_record() -> None:
    check_columns(RECORD, replace(JOB, event_time="at", deduplicate_by=("id", "_key")))
    for change in ({"event_time": "id"}, {"event_time": "x"}, {"deduplicate_by": ("x",)}):
        with pytest.raises(OptionError, match="of the record"):
            check_columns(RECORD, replace(JOB, **change))
    with pytest.raises(OptionError, match="without the fields"):
        check_columns(StructType().add("Event_Day", LongType()), JOB)


def test_names_that_differ_only_in_case_are_refused_at_any_depth() -> None:
    """As of Protobuf, where id and ID are two fields; Spark finds it when it writes the first micro-batch."""
    check_names(RECORD)
    twice = StructType().add("userId", LongType()).add("userID", LongType())
    for record in (
        twice,
        StructType().add("a", twice),
        StructType().add("a", ArrayType(MapType(LongType(), twice))),
        StructType().add("a", MapType(twice, LongType())),
    ):
        with pytest.raises(OptionError, match=r"'userId, userID'.*no more than case"):
            check_names(record)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (["--compact-after", "-1"], "--compact-after"),
        (["--registry-credentials", "/missing"], "--registry-credentials /missing: it must be a file"),
    ],
)
def test_wrong_values_are_named(wrong: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([*LEAST, *wrong])
    assert reason in capsys.readouterr().err


def test_a_missing_argument_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(LEAST[:4])
    assert "--topics" in capsys.readouterr().err
