"""The columns of a query: those of Spark's `kafka` source, in its order and types.

Laws
    The Arrow schema is Spark's own conversion of the Spark schema: Spark compares types and nullability first.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from rota.spark_connector.spark_api import to_arrow_schema

HEADERS: Final = ArrayType(StructType().add("key", StringType()).add("value", BinaryType()))


def spark_schema(*, include_headers: bool) -> StructType:
    """key, value, topic, partition, offset, timestamp, timestampType and, with `include_headers`, headers."""
    columns = (
        StructType()
        .add("key", BinaryType())
        .add("value", BinaryType())
        .add("topic", StringType())
        .add("partition", IntegerType())
        .add("offset", LongType())
        .add("timestamp", TimestampType())
        .add("timestampType", IntegerType())
    )
    return columns.add("headers", HEADERS) if include_headers else columns


def arrow_schema(*, include_headers: bool) -> pa.Schema:
    """The same columns as an Arrow schema."""
    return to_arrow_schema(spark_schema(include_headers=include_headers))
