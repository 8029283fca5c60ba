"""Record batches on data that nobody chose: there and back, compiled and interpreted alike, garbage in bounds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples

from rota.protocol import records
from rota.protocol.records import consumed as imported_consumed
from rota.protocol.records import fast as imported
from rota.protocol.records import produced as imported_produced
from rota.protocol.records.batch import BATCH_HEADER_BYTES, Codec, read_header
from rota.protocol.records.codecs import decompress
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import (
    Record,
    read_all,
    read_records,
    rewrite_batch,
    write_batch,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
TIME = st.one_of(st.integers(-1, 2000), st.integers(1_700_000_000_000, 1_700_000_100_000), INT64)
BYTES = st.one_of(st.none(), st.binary(max_size=40), st.integers(0, 3000).map(bytes))
HEADERS = st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=4).map(tuple)
RECORDS = st.lists(st.builds(Record, st.integers(0, 2**40), TIME, BYTES, BYTES, HEADERS), min_size=1, max_size=20)
CODECS = st.sampled_from(Codec)


def interpreted(name: str) -> ModuleType:
    spec = spec_from_file_location(f"{name}_interpreted", Path(records.__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VARIANTS = [imported, interpreted("fast")]
with patch.dict(sys.modules, {imported.__name__: VARIANTS[1]}):
    CONSUMED = [imported_consumed, interpreted("consumed")]
PRODUCED = [imported_produced, interpreted("produced")]


def buffered(fast: ModuleType, written: list[Record]) -> list[Any]:
    """What a buffer of 1000 bytes takes, says and holds."""
    buffer = fast.RecordBuffer(1000)
    taken = [buffer.append(item.timestamp, item.key, item.value, item.headers) for item in written]
    return [taken, buffer.count, buffer.size_bytes, buffer.base_timestamp, buffer.max_timestamp, buffer.payload()]


def taken(produced: ModuleType, pairs: list[tuple[bytes | None, bytes | None]]) -> list[Any]:
    """What a producer's memory of 4000 bytes takes, and what it charges."""
    memory, records = produced.BufferMemory(4000, 2000, lambda: 1.5), imported.RecordBuffer(3000)
    indexes = [memory.take(records, key, value) for key, value in pairs]
    return [indexes, memory.used_bytes, records.charged_bytes, records.count]


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or what it says is wrong; any other exception is a failure."""
    try:
        return call()
    except CorruptBatch as wrong:
        return str(wrong)


def decoded(fast: ModuleType, data: bytes, count: int, base_offset: int, base_time: int) -> Any:
    def call() -> Any:
        found = fast.decode_records(data, 0, len(data), count, base_offset, base_time, None)
        return [(item.offset, item.timestamp, item.key, item.value, item.headers) for item in found]

    return outcome(call)


@settings(deadline=None)
@given(RECORDS, CODECS, st.integers(0, 2**50))
def test_written_records_are_read_back(written: list[Record], codec: Codec, base_offset: int) -> None:
    raw = write_batch(written, codec=codec, base_offset=base_offset)
    expected = [
        Record(base_offset + number, item.timestamp, item.key, item.value, item.headers)
        for number, item in enumerate(written)
    ]
    assert read_records(raw) == expected
    assert read_all(raw + raw[:-1]) == expected


@settings(deadline=None)
@given(RECORDS, CODECS, st.data())
def test_records_kept_by_compaction_keep_their_offsets(
    written: list[Record], codec: Codec, data: st.DataObject
) -> None:
    raw = write_batch(written, codec=codec, base_offset=1000)
    keep = data.draw(st.sets(st.integers(1000, 999 + len(written))))
    kept = [item for item in read_records(raw) if item.offset in keep]
    horizon = data.draw(st.none() | st.integers(0, 2**41))
    less = rewrite_batch(read_header(raw), kept, delete_horizon_ms=horizon)
    assert read_records(less) == kept
    assert read_header(less).next_offset == read_header(raw).next_offset
    assert read_header(less).delete_horizon_ms == horizon


@settings(deadline=None)
@given(RECORDS, INT64)
def test_compiled_and_interpreted_write_the_same(written: list[Record], base_time: int) -> None:
    def encodings(fast: ModuleType) -> list[Any]:
        own = [fast.Record(item.offset, item.timestamp, item.key, item.value, item.headers) for item in written]
        return [
            fast.encode_records(own, base_time),
            fast.encode_kept(own, min(item.offset for item in own), base_time),
            fast.encode_pairs([(item.key, item.value) for item in written]),
            buffered(fast, written),
            [fast.varint(item.timestamp) for item in written],
        ]

    first, *others = map(encodings, VARIANTS)
    assert all(other == first for other in others)


@settings(deadline=None, max_examples=examples(100))
@given(RECORDS, st.integers(-(2**62), 2**62), INT64, st.data())
def test_compiled_and_interpreted_read_the_same(
    written: list[Record], base_offset: int, base_time: int, data: st.DataObject
) -> None:
    raw = bytearray(imported.encode_records(written, base_time))
    count = len(written)
    for _ in range(data.draw(st.integers(0, 3), label="bent bytes")):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)) | st.just(len(raw)), label="cut")]
    count += data.draw(st.sampled_from([0, 0, 0, 1, -1]), label="miscounted")
    first, *others = [decoded(fast, bytes(raw), count, base_offset, base_time) for fast in VARIANTS]
    assert all(other == first for other in others)


@settings(deadline=None, max_examples=examples(100))
@given(st.binary(max_size=120), st.integers(-2, 20))
def test_compiled_and_interpreted_read_garbage_the_same(raw: bytes, count: int) -> None:
    first, *others = [decoded(fast, raw, count, 0, 0) for fast in VARIANTS]
    assert all(other == first for other in others)


def consumed(module: ModuleType, data: bytes, count: int, base_offset: int, base_time: int, first: int) -> Any:
    def call() -> Any:
        found = module.decode_consumed(data, 0, len(data), count, base_offset, base_time, None, "t", 3, 1, first)
        assert {(item.topic, item.partition, item.leader_epoch, item.timestamp_type) for item in found} <= {
            ("t", 3, 1, 0)
        }
        return [(item.offset, item.timestamp, item.key, item.value, item.headers) for item in found]

    return outcome(call)


@settings(deadline=None, max_examples=examples(100))
@given(RECORDS, st.integers(-(2**62), 2**62), INT64, st.data())
def test_the_consumer_decoder_equals_the_general_decoder(
    written: list[Record], base_offset: int, base_time: int, data: st.DataObject
) -> None:
    """Compiled and interpreted, whole batches and the rest of one, honest bytes and bent ones."""
    raw = bytearray(imported.encode_records(written, base_time))
    for _ in range(data.draw(st.integers(0, 2), label="bent bytes")):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    count = len(written) + data.draw(st.sampled_from([0, 0, 0, 1, -1]), label="miscounted")
    skipped = data.draw(st.integers(0, len(written)), label="first offset")
    expected = decoded(imported, bytes(raw), count, base_offset, base_time)
    if isinstance(expected, list):
        expected = [item for item in expected if item[0] >= base_offset + skipped]
    for module in CONSUMED:
        assert consumed(module, bytes(raw), count, base_offset, base_time, base_offset + skipped) == expected


@settings(deadline=None)
@given(RECORDS, CODECS, st.data())
def test_bent_batches_are_refused_or_read(written: list[Record], codec: Codec, data: st.DataObject) -> None:
    """No bit of a batch but its place in the log can change unseen."""
    raw = bytearray(write_batch(written, codec=codec))
    position = data.draw(st.integers(16, len(raw) - 1))
    raw[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptBatch):
        read_records(raw)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_corrupt(raw: bytes) -> None:
    for read in (read_records, read_all):
        found = outcome(lambda read=read: read(raw))  # type: ignore[misc]
        assert isinstance(found, str) or (read is read_all and found == [] and len(raw) < BATCH_HEADER_BYTES)


@settings(deadline=None)
@given(CODECS, st.binary(max_size=200))
def test_garbage_is_not_compressed(codec: Codec, raw: bytes) -> None:
    found = outcome(lambda: decompress(codec, raw, 10_000))
    assert isinstance(found, str) or len(found) <= 10_000


@given(st.binary(max_size=40))
def test_murmur2_is_the_same_compiled_and_interpreted(key: bytes) -> None:
    assert PRODUCED[0].murmur2(key) == PRODUCED[1].murmur2(key)


@given(st.lists(st.tuples(BYTES, BYTES), max_size=30))
def test_the_same_records_are_taken_compiled_and_interpreted(pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    assert taken(PRODUCED[0], pairs) == taken(PRODUCED[1], pairs)
