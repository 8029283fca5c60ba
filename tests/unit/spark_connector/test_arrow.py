"""Columns become an Arrow batch in Spark's schema, buffer by buffer."""

from __future__ import annotations

import pytest

from rota.protocol.records.columns import Columns
from rota.protocol.records.fast import Record, encode_kept
from rota.spark_connector.arrow import record_batch
from rota.spark_connector.schema import arrow_schema

TIME_MS = 1_763_726_400_000
RECORDS = [
    Record(5, TIME_MS, b"k", None, (("a", b"1"), ("a", None))),
    Record(6, TIME_MS + 1, None, b"", ()),
    Record(9, TIME_MS, b"", b"\xff\x00", (("ü", b""),)),
]


def columns(with_headers: bool, records: list[Record] = RECORDS) -> Columns:
    made, raw = Columns(with_headers), encode_kept(records, 5, TIME_MS)
    made.add_batch(raw, 0, len(raw), len(records), 5, TIME_MS, None, 0, 1 << 60)
    return made


@pytest.mark.parametrize("with_headers", [False, True])
def test_rows_are_records(with_headers: bool) -> None:
    schema = arrow_schema(include_headers=with_headers)
    batch = record_batch("orders", 3, columns(with_headers), schema)
    batch.validate(full=True)
    assert batch.schema.equals(schema)
    rows = batch.to_pylist()
    assert [(row["key"], row["value"], row["offset"]) for row in rows] == [
        (b"k", None, 5),
        (None, b"", 6),
        (b"", b"\xff\x00", 9),
    ]
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in rows} == {("orders", 3, 0)}
    assert batch.column("timestamp").cast("int64").to_pylist() == [1000 * item.timestamp for item in RECORDS]
    assert batch.column("timestamp").type.tz == "UTC"
    if with_headers:
        first = [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
        assert batch.column("headers").to_pylist() == [first, None, [{"key": "ü", "value": b""}]]


def test_no_rows_are_an_empty_batch() -> None:
    schema = arrow_schema(include_headers=True)
    batch = record_batch("orders", 0, Columns(True), schema)
    batch.validate(full=True)
    assert batch.num_rows == 0


def test_rows_of_several_buffers_are_one_batch() -> None:
    """As of batches that were decompressed, each by itself; more rows than the constants are made for at first."""
    made, count = Columns(), 70_000
    many = [Record(at, TIME_MS, None if at % 3 else b"%d" % at, b"v%d" % at) for at in range(count)]
    for raw in (encode_kept(many, 0, TIME_MS), encode_kept(many, 0, TIME_MS)):
        made.add_batch(raw, 0, len(raw), count, 0, TIME_MS, None, 5, count)
    batch = record_batch("orders", 7, made, arrow_schema(include_headers=False))
    batch.validate(full=True)
    assert batch.column("key").to_pylist() == 2 * [item.key for item in many[5:]]
    assert batch.column("value").to_pylist() == 2 * [item.value for item in many[5:]]
    assert set(batch.column("topic").to_pylist()) == {"orders"}
    assert set(batch.column("partition").to_pylist()) == {7}
