"""The columns are those of Spark's `kafka` source."""

from __future__ import annotations

import pytest

from rota.spark_connector.schema import arrow_schema, spark_schema

PLAIN = [
    ("key", "binary"),
    ("value", "binary"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("timestamp", "timestamp"),
    ("timestampType", "int"),
]


@pytest.mark.parametrize("include_headers", [False, True])
def test_names_and_types(include_headers: bool) -> None:
    schema = spark_schema(include_headers=include_headers)
    headers = [("headers", "array<struct<key:string,value:binary>>")] if include_headers else []
    assert [(field.name, field.dataType.simpleString()) for field in schema] == PLAIN + headers
    assert arrow_schema(include_headers=include_headers).names == schema.names
