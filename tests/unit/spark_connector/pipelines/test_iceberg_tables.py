"""Where Iceberg can be used; what it writes is in tests/spark/test_tables.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.spark_connector.pipelines.test_delta_tables import session

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.iceberg_tables import QUERY, IcebergTable, check_names, check_session


def test_a_release_of_spark_without_iceberg_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match=r"PySpark 4\.0, 4\.1: Iceberg has no release for 4\.2"):
        check_session(session("4.2.0", {"spark.sql.catalog.lake": "a.Class"}), "lake.shop.t", "lake")


def test_a_session_without_a_catalog_gets_the_command() -> None:
    command = r"iceberg-spark-runtime-4.1_2.13:1.12.0 --conf spark.sql.catalog.lake="
    with pytest.raises(OptionError, match=command):
        check_session(session("4.1.1", {}), "lake.shop.t", "lake")
    with pytest.raises(OptionError, match=r"a catalog that answers.*Cannot find catalog"):
        check_session(
            session("4.1.1", {"spark.sql.catalog.lake": "a.Class"}, "Cannot find catalog"), "lake.shop.t", "lake"
        )


def owned_by(query: str) -> Any:
    """A Spark that has the table, which is of this query."""
    found = SimpleNamespace(collect=lambda: [{"key": "other", "value": ""}, {"key": QUERY, "value": query}])
    catalog = SimpleNamespace(tableExists=lambda _: True, refreshTable=lambda _: None)
    return cast(Any, SimpleNamespace(catalog=catalog, sql=lambda _: found))


def test_the_table_of_another_query_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"own"}')
    table = IcebergTable("lake.shop.records", "day", str(tmp_path))
    with pytest.raises(OptionError, match=r"lake.shop.records.*another one: its checkpoint has the id other"):
        table.check(owned_by("other"), 0)


@pytest.mark.parametrize("name", ["_file", "_pos", "_row_id", "_kafka_partition"])
def test_in13_a_field_with_a_name_that_iceberg_reserves_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"parquet or delta for values with a field {name}"):
        check_names(["id", name, "_topic"])
    check_names(["id", "_topic", "_partition", "pos", "row", "file"])
