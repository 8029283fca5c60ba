"""The function of columns; what becomes of whole topics is in tests/spark/test_ingest.py."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StringType, StructType
from tests.unit.spark_connector.pipelines.test_protobuf_messages import descriptor_set, encoded

from rota.spark_connector.pipelines.protobuf_messages import ProtobufMessage
from rota.spark_connector.pipelines.protobuf_values import column_function


def test_a_column_of_values_becomes_records_and_reasons() -> None:
    order = ProtobufMessage(descriptor_set(), "shop.Order")
    result = StructType().add("record", order.schema).add("reason", StringType())
    function = column_function(descriptor_set(), "shop.Order", result, is_framed=False)
    values = pa.array([encoded(order, id=3, tags={"a": 1}), None, b"\xff"], pa.binary())
    found = function.func(values).to_pylist()  # type: ignore[attr-defined] # as Spark calls it
    assert [row["record"] and (row["record"]["id"], row["record"]["tags"]) for row in found] == [
        (3, [("a", 1)]),
        None,
        None,
    ]
    assert [row["reason"] for row in found] == [None, "value is null", "value is not Protobuf of the message"]
