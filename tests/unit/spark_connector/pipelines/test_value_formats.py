"""The formats need a session: tests/spark/test_ingest.py has what they decode. Here: schemas that are refused."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import LongType, StructType

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.value_formats import avro_format, check_avro, json_schema


def test_the_json_of_spark_is_a_schema() -> None:
    schema = StructType().add("id", LongType(), nullable=False)
    assert json_schema(json.dumps(schema.jsonValue())) == schema


@pytest.mark.parametrize("text", ["{", "{}", '{"fields": 3}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="--schema"):
        json_schema(text)


@pytest.mark.parametrize(
    "schema", ['"string"', '{"type": "string"}', '{"type": "enum", "name": "E", "symbols": []}', "7"]
)
def test_a_schema_of_avro_without_fields_is_refused(schema: str) -> None:
    """As a registry has them for values that are one string."""
    with pytest.raises(OptionError, match="a record of Avro"):
        avro_format(schema)


def test_other_schemas_of_avro_are_left_to_its_parser() -> None:
    for schema in (
        '{"type": "record", "name": "R", "fields": []}',
        '["null", "R"]',
        "/* a comment */ {}",
        "[" * 100_000,
    ):
        check_avro(schema)
