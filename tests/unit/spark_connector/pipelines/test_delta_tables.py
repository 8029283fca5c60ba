"""Where Delta can be used; what it writes is in tests/spark/test_tables.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.delta_tables import SETTINGS, check_session


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
