"""The same batches as aiokafka and kafka-python write, byte for byte; what each of us writes the others read."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy as AioPlainBuilder
from aiokafka.record.default_records import _DefaultRecordBatchPy as AioPlainBatch
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from tests.soak import examples

from rota.protocol.records.batch import BATCH_HEADER_BYTES, Codec, check_batch, read_header, stamp
from rota.protocol.records.record import Record, read_records, write_batch

TIME = st.one_of(st.integers(0, 2000), st.integers(1_700_000_000_000, 1_700_000_100_000), st.integers(0, 2**61))
BYTES = st.one_of(st.none(), st.binary(max_size=40), st.integers(0, 3000).map(bytes))
NAME = st.text(st.characters(codec="utf-8"), max_size=8)
HEADERS = st.lists(st.tuples(NAME, BYTES), max_size=4)
RECORD = st.tuples(TIME, BYTES, BYTES, HEADERS)
RECORDS = st.lists(RECORD, min_size=1, max_size=20)
PRODUCER = st.sampled_from([(-1, -1, -1), (2**40, 3, 2**31 - 2), (0, 0, 0)])
OTHERS = {"aiokafka": AioBuilder, "aiokafka, no Cython": AioPlainBuilder, "kafka-python": KafkaPythonBuilder}
READERS = {"aiokafka": AioBatch, "aiokafka, no Cython": AioPlainBatch, "kafka-python": KafkaPythonBatch}

Rows = list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]


def ours(rows: Rows) -> list[Record]:
    return [Record(number, time, key, value, tuple(headers)) for number, (time, key, value, headers) in enumerate(rows)]


def theirs(builder: Any, rows: Rows, codec: Codec, producer: tuple[int, int, int], transactional: bool) -> bytearray:
    made = builder(
        magic=2,
        compression_type=int(codec),
        is_transactional=int(transactional),
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        batch_size=1 << 30,
    )
    for number, (time, key, value, headers) in enumerate(rows):
        assert made.append(number, time, key, value, headers)
    raw = bytearray(made.build())
    stamp(raw, 0, base_offset=0, leader_epoch=-1)  # a producer's epoch is whatever it likes
    return raw


@pytest.mark.parametrize("name", OTHERS)
@settings(deadline=None)
@given(rows=RECORDS, producer=PRODUCER, transactional=st.booleans())
def test_a_batch_is_equal_byte_for_byte(name: str, rows: Rows, producer: Any, transactional: bool) -> None:
    raw = write_batch(
        ours(rows),
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=transactional,
    )
    assert raw == theirs(OTHERS[name], rows, Codec.NONE, producer, transactional)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("codec", list(Codec))
@settings(deadline=None, max_examples=examples(10))
@given(rows=RECORDS)
def test_batches_of_other_clients_are_read(name: str, codec: Codec, rows: Rows) -> None:
    raw = theirs(OTHERS[name], rows * 10, codec, (-1, -1, -1), False)
    header = read_header(raw)
    check_batch(raw, 0, header)
    assert read_records(raw) == ours(rows * 10)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("codec", list(Codec))
@settings(deadline=None, max_examples=examples(10))
@given(rows=RECORDS, base_offset=st.integers(0, 2**40))
def test_other_clients_read_batches_of_rota(name: str, codec: Codec, rows: Rows, base_offset: int) -> None:
    raw = write_batch(ours(rows), codec=codec, base_offset=base_offset)
    batch = READERS[name](bytearray(raw))
    assert batch.validate_crc()
    assert (batch.base_offset, batch.next_offset) == (base_offset, base_offset + len(rows))
    assert (batch.first_timestamp, batch.max_timestamp) == (rows[0][0], max(row[0] for row in rows))
    found = [(item.timestamp, item.key, item.value, [tuple(header) for header in item.headers]) for item in batch]
    assert found == rows


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("key", "commits"), [(b"\x00\x00\x00\x00", False), (b"\x00\x00\x00\x01", True)])
def test_a_marker_of_a_transaction_is_a_control_batch(name: str, key: bytes, commits: bool) -> None:
    value = b"\x00\x00\x00\x00\x00\x00"
    raw = write_batch(
        [Record(0, 5, key, value)],
        base_offset=9,
        producer_id=7,
        producer_epoch=1,
        is_control=True,
        is_transactional=True,
    )
    batch = READERS[name](bytearray(raw))
    assert batch.validate_crc()
    assert (batch.is_control_batch, batch.is_transactional, batch.producer_id) == (True, True, 7)
    [marker] = list(batch)
    assert (marker.offset, marker.key[3:] == b"\x01") == (9, commits)


def test_gzip_batches_are_readable_by_the_standard_library() -> None:
    rows: Rows = [(1, b"k", b"v" * 1000, [])]
    raw = write_batch(ours(rows), codec=Codec.GZIP)
    assert gzip.decompress(raw[BATCH_HEADER_BYTES:]) == write_batch(ours(rows))[BATCH_HEADER_BYTES:]
