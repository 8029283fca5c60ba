"""Values of records that are Protobuf, as columns. Works on DataFrames; a value passes through Python.

Laws
    As the formats of value_formats.py: RECORD and REASON are added, no row is dropped or added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import StringType, StructType

from rota.spark_connector.pipelines.protobuf_messages import ProtobufMessage, Writers, protobuf_message
from rota.spark_connector.pipelines.value_formats import REASON, RECORD, Decode
from rota.spark_connector.spark_api import to_arrow_type


def protobuf_format(descriptors: bytes, name: str, *, is_framed: bool, writers: Writers = ()) -> Decode:
    """Values are messages of type `name`; `is_framed`: behind the frame of a schema registry, which has the schemas
    `writers` (empty: they are not looked up). Raises OptionError."""
    record = protobuf_message(descriptors, name).schema
    result = StructType().add("record", record).add("reason", StringType())
    function = column_function(descriptors, name, result, is_framed=is_framed, writers=writers)

    def decode(rows: DataFrame) -> DataFrame:
        found = rows.withColumn("_decoded", function("value"))
        split = found.withColumn(RECORD, F.col("_decoded.record")).withColumn(REASON, F.col("_decoded.reason"))
        return split.drop("_decoded")

    return decode


def column_function(
    descriptors: bytes, name: str, result: StructType, *, is_framed: bool, writers: Writers = ()
) -> Callable[..., Any]:
    """As a function of columns; in PySpark 4.0, which has no arrow_udf, a record at a time."""

    def row(message: ProtobufMessage, value: bytearray | None) -> dict[str, Any]:
        record, reason = message.decode(None if value is None else bytes(value), is_framed=is_framed)
        return {"record": record, "reason": reason}

    def decode_one(value: bytearray | None) -> dict[str, Any]:
        return row(protobuf_message(descriptors, name, writers), value)

    try:
        from pyspark.sql.pandas.functions import arrow_udf
    except ImportError:
        return F.udf(decode_one, result)
    kind = to_arrow_type(result)

    def decode_all(values: pa.Array) -> pa.Array:
        message = protobuf_message(descriptors, name, writers)  # to look it up costs as much as to decode a value
        return pa.array([row(message, value) for value in values.to_pylist()], kind)

    found: Callable[..., Any] = arrow_udf(decode_all, result)  # type: ignore[call-overload] # its annotations define its kind
    return found
