"""The names of the API for data sources, on the PySpark that is installed."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.types import LongType, StructType, TimestampType

from rota.spark_connector import spark_api


def test_a_newer_pyspark_has_all_of_it() -> None:
    assert spark_api.EqualTo is datasource.EqualTo
    assert spark_api.DataSourceStreamArrowWriter is datasource.DataSourceStreamArrowWriter
    assert spark_api.HAS_STREAM_LIMITS
    assert spark_api.HAS_STREAM_ARROW_WRITER


def test_timestamps_are_in_utc() -> None:
    assert spark_api.to_arrow_type(LongType()) == pa.int64()
    schema = spark_api.to_arrow_schema(StructType().add("at", TimestampType()))
    assert schema.field("at").type == pa.timestamp("us", tz="UTC")
