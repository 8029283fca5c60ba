"""Columns hold what the record loop gives, and refuse what it refuses."""

from __future__ import annotations

import struct
import sys
from itertools import pairwise
from types import ModuleType
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocol.records.conftest import interpreted

from rota.protocol.records import columns as imported
from rota.protocol.records import fast as imported_fast
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import Record, decode_records, encode_kept

HEADERS = (("h", b"1"), ("none", None), ("\udcff", b""))
RECORDS = [
    Record(10, 1001, b"k", b"val"),
    Record(11, 999, None, None, HEADERS),
    Record(15, -1, b"", b"x" * 300),
    *(Record(16 + at, 1002, None, b"%d" % at) for at in range(20)),
]
RAW = encode_kept(RECORDS, 10, 1000)
ALL = (0, 1 << 60)


def bare() -> ModuleType:
    """The file interpreted, on an interpreted record loop."""
    with patch.dict(sys.modules, {imported_fast.__name__: interpreted("fast")}):
        return interpreted("columns")


VARIANTS = {"imported": imported, "interpreted": bare()}


@pytest.fixture(params=list(VARIANTS))
def columns(request: pytest.FixtureRequest) -> ModuleType:
    return VARIANTS[request.param]


def are(validity: imported.Validity, rows: int) -> list[bool]:
    """Which rows are not null."""
    bits = validity.getvalue(rows)
    assert len(bits) == (rows + 7) // 8
    assert not rows % 8 or not bits[-1] >> rows % 8, "those after the last one are 0"
    found = [bool(bits[at // 8] >> at % 8 & 1) for at in range(rows)]
    assert found.count(False) == validity.nulls
    return found


def rows_of_bytes(column: imported.BinaryColumn) -> list[bytes | None]:
    """The column read as Arrow reads it."""
    data, count = column.data.getvalue(), int(column.count)
    assert len(data) == column.size_bytes
    ends = struct.unpack(f"<{count + 1}i", column.offsets.getvalue())
    there = are(column.validity, count)
    return [data[a:b] if is_there else None for is_there, (a, b) in zip(there, pairwise(ends), strict=True)]


def contents(columns: imported.Columns) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of each row, from their places."""
    count, source = int(columns.count), columns.source()
    assert len(source) == columns.source_bytes
    places = struct.unpack(f"<{4 * count}i", columns.places.getvalue())
    assert list(places) == sorted(places), "they only grow"
    keys, values = are(columns.keys, count), are(columns.values, count)
    found: list[tuple[bytes | None, bytes | None]] = []
    for at, (is_key, is_value) in enumerate(zip(keys, values, strict=True)):
        a, b, c, d = places[4 * at : 4 * at + 4]
        assert is_key or a == b, "null is empty"
        assert is_value or c == d, "null is empty"
        found.append((source[a:b] if is_key else None, source[c:d] if is_value else None))
    assert columns.content_bytes == sum(len(item or b"") for pair in found for item in pair)
    return found


def rows(columns: imported.Columns) -> list[Record]:
    """The records that the columns hold."""
    count = int(columns.count)
    offsets = struct.unpack(f"<{count}q", columns.offsets.getvalue())
    times = struct.unpack(f"<{count}q", columns.timestamps_us.getvalue())
    headers: list[tuple[tuple[str, bytes | None], ...]] = [()] * count
    if columns.with_headers:
        names = [(name or b"").decode() for name in rows_of_bytes(columns.header_names)]
        pairs = list(zip(names, rows_of_bytes(columns.header_values), strict=True))
        ends = struct.unpack(f"<{count + 1}i", columns.header_offsets.getvalue())
        headers = [tuple(pairs[a:b]) for a, b in pairwise(ends)]
        assert [bool(item) for item in headers] == are(columns.header_validity, count)
    assert all(time % 1000 == 0 for time in times)
    found = zip(offsets, [time // 1000 for time in times], contents(columns), headers, strict=True)
    return [Record(offset, time, *content, names) for offset, time, content, names in found]


def test_every_record_is_a_row(columns: ModuleType) -> None:
    made = columns.Columns(True)
    made.add_batch(RAW, 0, len(RAW), len(RECORDS), 10, 1000, None, *ALL)
    expected = [Record(o.offset, o.timestamp, o.key, o.value, o.headers) for o in RECORDS]
    expected[1].headers = (("h", b"1"), ("none", None), ("�", b""))
    assert rows(made) == expected
    assert struct.unpack(f"<{len(RECORDS)}i", made.types.getvalue()) == (0,) * len(RECORDS)


def test_several_batches_are_one_column_and_append_time_is_the_time_of_all(columns: ModuleType) -> None:
    made = columns.Columns()
    frame = b"before" + RAW + b"behind"
    made.add_batch(frame, 6, 6 + len(RAW), len(RECORDS), 10, 1000, None, 12, 17)
    made.add_batch(RAW, 0, len(RAW), len(RECORDS), 10, 1000, 5000, 10, 11)
    assert [(item.offset, item.timestamp) for item in rows(made)] == [(15, -1), (16, 1002), (10, 5000)]
    assert struct.unpack("<3i", made.types.getvalue()) == (0, 0, 1)


def test_batches_of_one_buffer_are_not_copied(columns: ModuleType) -> None:
    made = columns.Columns()
    assert made.is_from(RAW)
    made.add_batch(RAW, 0, len(RAW), len(RECORDS), 10, 1000, None, 10, 11)
    made.add_batch(RAW, 0, len(RAW), len(RECORDS), 10, 1000, None, 11, 12)
    assert made.source() is RAW
    other = bytes(bytearray(RAW))
    assert not made.is_from(other)
    made.add_batch(other, 0, len(other), len(RECORDS), 10, 1000, None, 10, 11)
    assert made.source() == RAW + RAW
    assert contents(made)[-1] == (b"k", b"val")


def test_places_beyond_int32_are_refused(columns: ModuleType) -> None:
    made = columns.Columns()
    made.add_batch(RAW, 0, len(RAW), len(RECORDS), 10, 1000, None, *ALL)
    made.source_bytes = (1 << 31) - 1 - len(RAW)
    made.add_batch(bytes(bytearray(RAW)), 0, len(RAW), len(RECORDS), 10, 1000, None, *ALL)
    with pytest.raises(CorruptBatch, match="at once"):
        made.add_batch(bytes(bytearray(RAW)), 0, len(RAW), len(RECORDS), 10, 1000, None, *ALL)


@pytest.mark.parametrize("time_ms", [(1 << 62), -(1 << 62)])
def test_a_time_beyond_microseconds_is_the_furthest_one(columns: ModuleType, time_ms: int) -> None:
    made = columns.Columns()
    raw = encode_kept([Record(0, 5, None, None)], 0, 5)
    made.add_batch(raw, 0, len(raw), 1, 0, 5, time_ms, *ALL)
    (time,) = struct.unpack("<q", made.timestamps_us.getvalue())
    assert abs(time) > 9_223_372_036_854_774_000
    assert (time > 0) == (time_ms > 0)


@pytest.mark.parametrize(
    ("raw", "count"),
    [(RAW[:-1], 23), (RAW + b"\0", 23), (RAW, 22), (RAW, 24), (RAW, -1), (RAW, 10**9), (b"\x0c\0\0\0\x01\x01\x02", 1)],
)
def test_bent_bytes_are_corrupt(columns: ModuleType, raw: bytes, count: int) -> None:
    with pytest.raises(CorruptBatch):
        columns.Columns().add_batch(raw, 0, len(raw), count, 10, 1000, None, *ALL)


TEXTS = st.text(max_size=5)
BYTES = st.none() | st.binary(max_size=200)
MADE = st.lists(
    st.builds(
        lambda time, key, value, headers: (time, key, value, tuple(headers)),
        st.integers(0, 1 << 41),
        BYTES,
        BYTES,
        st.lists(st.tuples(TEXTS, BYTES), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@pytest.mark.parametrize("variant", list(VARIANTS))
@given(made=MADE, cut=st.integers(0, 25), room=st.integers(0, 25))
def test_columns_are_the_records(
    variant: str, made: list[tuple[int, bytes, bytes, tuple]], cut: int, room: int
) -> None:
    records = [Record(100 + at, *item) for at, item in enumerate(made)]
    raw = encode_kept(records, 100, 7)
    found = VARIANTS[variant].Columns(True)
    found.add_batch(raw, 0, len(raw), len(records), 100, 7, None, 100 + cut, 100 + cut + room)
    expected = decode_records(raw, 0, len(raw), len(records), 100, 7, None)
    assert rows(found) == [item for item in expected if 100 + cut <= item.offset < 100 + cut + room]


@given(raw=st.binary(max_size=60), count=st.integers(0, 9))
def test_garbage_is_refused_by_both_loops_alike(raw: bytes, count: int) -> None:
    def outcome(decode: object) -> bool:
        try:
            decode()
        except CorruptBatch:
            return False
        return True

    mine = outcome(lambda: imported.Columns(True).add_batch(raw, 0, len(raw), count, 0, 0, None, *ALL))
    assert mine == outcome(lambda: decode_records(raw, 0, len(raw), count, 0, 0, None))
