"""The formats need a session: tests/spark/test_ingest.py has what they decode. Here: schemas that are refused."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import LongType, StructType

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.value_formats import json_schema


def test_the_json_of_spark_is_a_schema() -> None:
    schema = StructType().add("id", LongType(), nullable=False)
    assert json_schema(json.dumps(schema.jsonValue())) == schema


@pytest.mark.parametrize("text", ["{", "{}", '{"fields": 3}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="--schema"):
        json_schema(text)
