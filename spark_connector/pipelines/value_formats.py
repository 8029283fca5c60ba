"""The values of records as columns, and the reason for each value that cannot be decoded. Works on DataFrames.

Laws
    `decode` of each format adds the columns RECORD (a struct) and REASON (a string) to the rows, and drops and adds no
    row. Exactly those rows have a null REASON whose value was decoded.
    Decoding uses Spark's own functions alone: no value passes through Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce
from operator import and_
from secrets import token_hex
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import ArrayType, BooleanType, DataType, MapType, StringType, StructType

from rota.spark_connector.errors import OptionError

RECORD: Final = "_record"
REASON: Final = "_reason"
LISTED: Final = "_listed"
FIRST: Final = "_first"  # the first JSON object of a value that is not one alone
KEY: Final = token_hex(8)  # no value has it by chance, or by intent
CORRUPT: Final = token_hex(8)  # no schema has it
UNKNOWN_SCHEMA: Final = "the registry has no Avro schema with id "  # and the id
FRAME_BYTES: Final = 5  # before the value, of a producer with a schema registry: a zero, and the id of the schema
Decode = Callable[[DataFrame], DataFrame]


def json_schema(text: str) -> StructType:
    """Parse DDL (`id long, name string`) or Spark's JSON. It needs a session. Raises OptionError."""
    try:
        is_json = text.lstrip().startswith("{")
        schema = StructType.fromJson(json.loads(text)) if is_json else StructType.fromDDL(text)
    except (PySparkException, ValueError, KeyError, TypeError) as error:
        detail = str(error).partition("\n")[0][:200]
        expected = f"DDL, as in id long, name string; or Spark's JSON ({detail})"
        raise OptionError("--schema", text[:80], expected) from None
    if not isinstance(schema, StructType) or not schema.fields:
        raise OptionError("--schema", text[:80], "fields, as in id long, name string")
    return schema


def json_format(schema: StructType) -> Decode:
    """Values are JSON objects in UTF-8, one in each. A field that the schema declares NOT NULL is required."""
    text = F.col("value").cast("string")
    wrong = [F.when(_is_wrong(text, name), f"{name} is not {kind}") for name, kind in _kinds(schema)]
    missing = [F.when(_field(name).isNull(), name) for name in _required(schema)]
    is_corrupt = F.col(FIRST).getField(CORRUPT).isNotNull()
    reason = (
        F.when(F.col("value").isNull(), "value is null")
        .when(~F.is_valid_utf8(text), "value is not UTF-8")
        .when(F.col(RECORD).isNull(), "value is not JSON")
        .when(is_corrupt & F.try_parse_json(text).isNull(), "value is not JSON")
        .when(is_corrupt, F.concat(F.lit("value does not fit the schema"), _listed(wrong)))
        .when(F.col(FIRST).isNotNull(), "value has more after its JSON object")
    )
    if missing:
        listed = _listed(missing)
        reason = reason.when(listed != "", F.concat(F.lit("a required field is null"), listed))

    def decode(rows: DataFrame) -> DataFrame:
        found = rows.withColumn(LISTED, _in_list(text, schema))
        found = found.withColumn(FIRST, F.when(~_is_alone(), _from_json(text, schema)))
        alone = F.col(LISTED).getField(KEY).getItem(0).dropFields(KEY)
        record = F.when(F.col(FIRST).isNull(), alone).otherwise(F.col(FIRST).dropFields(CORRUPT))
        return found.withColumn(RECORD, record).withColumn(REASON, reason).drop(LISTED, FIRST)

    return decode


def avro_format(schema: str, writers: Mapping[int, str] | None = None) -> Decode:
    """Values are Avro of `schema`. With `writers` (schemas by id, of a registry) each value begins with the id of the
    schema that it was written with, and is converted to `schema`. Raises OptionError."""
    from pyspark.sql.avro.functions import from_avro

    check_avro(schema)
    mode = {"mode": "PERMISSIVE"}
    size = F.coalesce(F.octet_length("value"), F.lit(0))
    reason = F.when(F.col("value").isNull(), "value is null")
    if writers is None:
        record = from_avro(F.col("value"), schema, mode)
    else:
        number = F.conv(F.hex(F.substring("value", 2, 4)), 16, 10).cast("long")
        payload = F.substring(F.col("value"), F.lit(FRAME_BYTES + 1), size)
        record = F.lit(None)
        for schema_id, writer in writers.items():
            decoded = from_avro(payload, writer, {**mode, "avroSchema": schema})
            record = F.when(number == schema_id, decoded).otherwise(record)
        is_framed = (size >= FRAME_BYTES) & (F.hex(F.substring("value", 1, 1)) == "00")
        reason = reason.when(~is_framed, "value does not begin with the id of a schema")
        reason = reason.when(~number.isin(list(writers)), F.concat(F.lit(UNKNOWN_SCHEMA), number.cast("string")))

    def decode(rows: DataFrame) -> DataFrame:
        found = rows.withColumn(RECORD, record)
        names = found.schema[RECORD].dataType.names  # type: ignore[attr-defined] # a record is a struct
        is_empty = reduce(and_, (_field(name).isNull() for name in names), F.lit(True))
        return found.withColumn(REASON, reason.when(is_empty, "value is not Avro of the schema"))

    return decode


def check_avro(schema: str) -> None:
    """Raises OptionError for a schema whose values have no fields."""
    try:
        found = json.loads(schema)
    except (ValueError, RecursionError):
        return  # Avro's parser takes comments too, and has an error of its own for the rest
    kind = found.get("type") if isinstance(found, dict) else found
    if not isinstance(found, list) and kind != "record":
        raise OptionError("--schema", schema[:80], "a record of Avro: a table has columns")


def same_names(kind: DataType) -> tuple[str, ...]:
    """Two fields of one struct whose names differ in no more than case, at any depth: Spark and its tables have one
    column for both. Empty: there are none."""
    match kind:
        case ArrayType():
            return same_names(kind.elementType)
        case MapType():
            return same_names(kind.keyType) or same_names(kind.valueType)
        case StructType():
            known: dict[str, str] = {}
            for field in kind:
                if field.name.lower() in known:
                    return known[field.name.lower()], field.name
                known[field.name.lower()] = field.name
            return next(filter(None, (same_names(field.dataType) for field in kind)), ())
    return ()


def _field(name: str) -> Column:
    return F.col(RECORD).getField(name)


def _kinds(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema]


def _required(schema: StructType) -> list[str]:
    return [field.name for field in schema if not field.nullable]


def _in_list(text: Column, schema: StructType) -> Column:
    """`{KEY: [text, {KEY: true}]}`. The list has these two elements where the text is one JSON value with nothing after
    it, whatever bracket that would close: of the text alone `from_json` reads no more than the first value."""
    element = StructType([*schema.fields]).add(KEY, BooleanType())
    listed = F.concat(F.lit(f'{{"{KEY}":['), text, F.lit(f',{{"{KEY}":true}}]}}'))
    return _from_json(listed, StructType().add(KEY, ArrayType(element)))


def _is_alone() -> Column:
    """Whether nothing comes after the JSON object, and it fits the schema."""
    listed = F.col(LISTED).getField(KEY)
    is_whole = F.col(LISTED).getField(CORRUPT).isNull() & (F.size(listed) == 2) & listed.getItem(1).getField(KEY)
    return F.coalesce(is_whole, F.lit(False))


def _from_json(text: Column, schema: StructType) -> Column:
    full = StructType([*schema.fields]).add(CORRUPT, StringType())
    return F.from_json(text, full, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})


def _is_wrong(text: Column, name: str) -> Column:
    """Whether the JSON has a value in the field, and the record has none."""
    path = "$['" + name.replace("'", "\\'") + "']"
    return _field(name).isNull() & F.get_json_object(text, path).isNotNull()


def _listed(reasons: list[Column]) -> Column:
    """`: a, b`, or nothing when all are null."""
    text = F.concat_ws(", ", *reasons)
    return F.when(text == "", "").otherwise(F.concat(F.lit(": "), text))
