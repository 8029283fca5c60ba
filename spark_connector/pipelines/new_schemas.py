"""Schemas that producers register while a query runs, which has the schemas of its start.

Laws
    A record is no dead letter for a schema that the registry has, unless SCHEMA_IDS_MAX unknown ids have more records:
    nothing of its micro-batch is written, and the query ends with an error that has the ids.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from rota.spark_connector.pipelines import protobuf_messages
from rota.spark_connector.pipelines.protobuf_registry import PROTOBUF
from rota.spark_connector.pipelines.schema_registry import AVRO, Registry
from rota.spark_connector.pipelines.value_formats import REASON, UNKNOWN_SCHEMA

SCHEMA_IDS_MAX: Final = 100  # of a micro-batch, those of the most records
UNKNOWN: Final = {AVRO: UNKNOWN_SCHEMA, PROTOBUF: protobuf_messages.UNKNOWN_SCHEMA}  # and the id
_MESSAGE: Final = "the registry has new schemas, with the ids "


class NewSchemas(Exception):
    """The query has to start again, with these schemas."""

    def __init__(self, ids: Sequence[int]) -> None:
        super().__init__(f"{_MESSAGE}{' '.join(map(str, ids))}; start the job again")


def check_schemas(rows: DataFrame, registry: Registry, kind: str) -> None:
    """Ask the registry for the ids that the query does not know, of schemas of this kind. Raises NewSchemas, and
    OptionError when the registry does not answer."""
    unknown = UNKNOWN[kind]
    is_unknown = F.col(REASON).startswith(unknown)
    counted = rows.where(is_unknown).groupBy(REASON).count().orderBy("count", ascending=False).limit(SCHEMA_IDS_MAX)
    ids = [int(row[REASON].removeprefix(unknown)) for row in counted.collect()]
    if found := [schema_id for schema_id in ids if registry.schema(schema_id, kind) is not None]:
        raise NewSchemas(found)


def schema_ids(message: str) -> list[int]:
    """The ids of a NewSchemas in the message of the error that ended a query; none: empty."""
    found = re.search(f"{_MESSAGE}([0-9 ]+)", message)
    return [int(each) for each in found[1].split()] if found else []
