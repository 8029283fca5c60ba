"""The columns of the table lag are those of its rows; what is in them is in tests/spark/test_pipeline.py."""

from __future__ import annotations

from rota.spark_connector.pipelines.lag import GroupPosition, Lag
from rota.spark_connector.pipelines.tables import LAG


def test_a_row_of_lag_has_its_columns_in_order() -> None:
    assert LAG.names == ["start_ms", "end_ms", *GroupPosition._fields[1:], *Lag._fields[1:]]
