"""Where Delta can be used; what it writes is in tests/spark/test_tables.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.delta_tables import SETTINGS, DeltaTable, check_session
from rota.spark_connector.pipelines.table_files import BATCH, DELTA_LOG


def session(version: str, settings: dict[str, str], error: str = "") -> Any:
    """A Spark of this version with these settings, whose queries fail with `error`."""

    def sql(_: str) -> None:
        if error:
            raise AnalysisException(error)

    own = {"conf": SimpleNamespace(get=settings.get), "sql": sql, "catalog": SimpleNamespace(tableExists=sql)}
    return cast(Any, SimpleNamespace(version=version, **own))


def test_a_release_of_spark_without_delta_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match=r"PySpark 4\.0, 4\.1, 4\.2: Delta has no release for 4\.9"):
        check_session(session("4.9.1", SETTINGS))


@pytest.mark.parametrize(
    ("settings", "error"), [({}, ""), (SETTINGS, "[DATA_SOURCE_NOT_FOUND] delta"), (SETTINGS, "ClassNotFoundException")]
)
def test_a_session_without_delta_gets_the_command(settings: dict[str, str], error: str) -> None:
    command = r"--packages io.delta:delta-spark_4.1_2.13:4.4.0 --conf spark.sql.extensions=io.delta.sql.Delta"
    with pytest.raises(OptionError, match=command):
        check_session(session("4.1.2", settings, error))


def test_a_session_with_delta_is_taken_also_with_other_extensions() -> None:
    several = {name: f"other.Extension,{value}" for name, value in SETTINGS.items()}
    check_session(session("4.2.0", several, "[DELTA_MISSING_DELTA_TABLE] no table"))


def with_table(*numbers: int) -> Any:
    """A Spark that reads a table with rows of these micro-batches."""

    def where(condition: str) -> Any:
        name, sign, bound = condition.split()
        assert (name, sign) == (BATCH, ">")
        found = [number for number in numbers if number > int(bound)]
        return SimpleNamespace(limit=lambda rows: SimpleNamespace(count=lambda: len(found[:rows])))

    of_format = SimpleNamespace(load=lambda _: SimpleNamespace(where=where))
    return cast(Any, SimpleNamespace(read=SimpleNamespace(format=lambda _: of_format)))


def test_an_older_copy_of_the_checkpoint_and_another_query_are_refused(tmp_path: Path) -> None:
    """Delta skips every number up to the newest one: their records would be in no table."""
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id":"own"}')
    delta = DeltaTable(str(table), "day", str(checkpoint))
    delta.check(with_table(), 0)
    delta.restart(with_table(), 0)
    assert not table.exists()
    (table / DELTA_LOG).mkdir(parents=True)
    (table / DELTA_LOG / "0.json").touch()
    for number in (2, 3):
        delta.check(with_table(1, 2), number)
    delta.restart(with_table(1, 2), 2)
    with pytest.raises(OptionError, match="without a batch_id above 1: the checkpoint is an older copy"):
        delta.check(with_table(1, 2), 1)
    (checkpoint / "metadata").write_text('{"id":"other"}')
    with pytest.raises(OptionError, match="another one: its checkpoint has the id own"):
        delta.check(with_table(1, 2), 3)


def test_a_first_commit_that_was_interrupted_is_no_table_of_another_format(tmp_path: Path) -> None:
    """The job would refuse its own folder for ever."""
    delta = DeltaTable(str(tmp_path), "day", "/c")
    (tmp_path / DELTA_LOG).mkdir()
    (tmp_path / "day=2026-01-01").mkdir()
    (tmp_path / "day=2026-01-01" / "part.parquet").touch()
    delta.prepare(session("4.1.0", SETTINGS))
    (tmp_path / "day=2026-01-01" / f"{BATCH}=0").mkdir()
    with pytest.raises(OptionError, match=r"the format of the table .*: parquet"):
        delta.prepare(session("4.1.0", SETTINGS))


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(OptionError, match="the format of the table"):
        DeltaTable(str(tmp_path), "day", "/c").prepare(session("4.1.0", SETTINGS))
