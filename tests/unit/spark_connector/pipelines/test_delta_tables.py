"""Where Delta can be used; what it writes is in tests/spark/test_tables.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.delta_tables import LOG, SETTINGS, DeltaTable, check_session
from rota.spark_connector.pipelines.table_files import BATCH


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
    delta.restart(with_table(), 0)
    assert not table.exists()
    (table / LOG).mkdir(parents=True)
    (table / LOG / "0.json").touch()
    for number in (2, 3):
        delta.restart(with_table(1, 2), number)
    with pytest.raises(OptionError, match="without a batch_id above 1: the checkpoint is an older copy"):
        delta.restart(with_table(1, 2), 1)
    (checkpoint / "metadata").write_text('{"id":"other"}')
    with pytest.raises(OptionError, match="another one: its checkpoint has the id own"):
        delta.restart(with_table(1, 2), 3)
