"""Both variants of the consumer's record loop against bytes written by hand."""

from __future__ import annotations

import copy
import gc
import pickle
from types import ModuleType

import pytest

from rota.protocol import records
from rota.protocol.records.consumed import ConsumerRecord
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import Record, encode_kept

HEADERS = (("h", b"1"), ("none", None))
RECORDS = [Record(10, 1001, b"k", b"val"), Record(11, 999, None, None, HEADERS), Record(15, -1, b"", b"x" * 300)]
RAW = encode_kept(RECORDS, 10, 1000)


def test_records_know_where_they_lie(consumed: ModuleType) -> None:
    found = consumed.decode_consumed(RAW, 0, len(RAW), 3, 10, 1000, None, "orders", 7, 4)
    make = consumed.ConsumerRecord
    assert found == [
        make("orders", 7, 10, 1001, 0, b"k", b"val", (), 4),
        make("orders", 7, 11, 999, 0, None, None, HEADERS, 4),
        make("orders", 7, 15, -1, 0, b"", b"x" * 300, (), 4),
    ]


def test_log_append_time_is_the_time_of_all(consumed: ModuleType) -> None:
    found = consumed.decode_consumed(RAW, 0, len(RAW), 3, 10, 1000, 5000, "orders", 7, 4)
    assert [(item.timestamp, item.timestamp_type) for item in found] == [(5000, 1)] * 3


@pytest.mark.parametrize(
    ("first", "offsets"), [(0, [10, 11, 15]), (10, [10, 11, 15]), (11, [11, 15]), (12, [15]), (16, [])]
)
def test_records_below_the_position_are_skipped(consumed: ModuleType, first: int, offsets: list[int]) -> None:
    found = consumed.decode_consumed(RAW, 0, len(RAW), 3, 10, 1000, None, "orders", 7, 4, first)
    assert [item.offset for item in found] == offsets


def test_records_are_read_out_of_the_middle_of_a_frame(consumed: ModuleType) -> None:
    frame = b"before" + RAW + b"behind"
    found = consumed.decode_consumed(frame, 6, 6 + len(RAW), 3, 10, 1000, None, "orders", 7, 4)
    assert [item.value for item in found] == [item.value for item in RECORDS]


@pytest.mark.parametrize(
    ("raw", "count"),
    [(RAW[:-1], 3), (RAW + b"\0", 3), (RAW, 2), (RAW, 4), (RAW, -1), (RAW, 10**9), (b"\x0c\0\0\0\x01\x01\x02", 1)],
)
def test_bent_bytes_are_corrupt(consumed: ModuleType, raw: bytes, count: int) -> None:
    with pytest.raises(CorruptBatch):
        consumed.decode_consumed(raw, 0, len(raw), count, 10, 1000, None, "orders", 7, 4)


def test_a_record_left_out_is_checked_all_the_same(consumed: ModuleType) -> None:
    raw = bytearray(RAW)
    raw[4] = 0x7E  # the length of the first key
    with pytest.raises(CorruptBatch):
        consumed.decode_consumed(bytes(raw), 0, len(raw), 3, 10, 1000, None, "orders", 7, 4, 15)


def test_a_record_is_a_value(consumed: ModuleType) -> None:
    item = consumed.ConsumerRecord("orders", 7, 10, 1001, 0, b"k", None, HEADERS)
    same = consumed.ConsumerRecord("orders", 7, 10, 1001, 0, b"k", None, HEADERS, -1)
    other = consumed.ConsumerRecord("orders", 7, 11, 1001, 0, b"k", None, HEADERS)
    assert item == same
    assert hash(item) == hash(same)
    assert item != other
    assert item != "orders"
    assert repr(item) == (
        "ConsumerRecord(orders-7@10, timestamp=1001, key=b'k', value=None, headers=(('h', b'1'), ('none', None)))"
    )


def test_a_record_is_pickled_and_copied() -> None:
    item = ConsumerRecord("orders", 7, 10, 1001, 0, b"k", None, HEADERS, 3)
    assert pickle.loads(pickle.dumps(item)) == item
    assert copy.copy(item) == item


@pytest.mark.skipif(not records.COMPILED, reason="an interpreted object is always the collector's")
def test_the_garbage_collector_need_not_walk_records() -> None:
    assert not gc.is_tracked(ConsumerRecord("orders", 7, 10, 1001, 0, b"k", None))


def test_a_topic_is_one_string_for_all(consumed: ModuleType) -> None:
    topic = b"orders".decode()
    found = consumed.decode_consumed(RAW, 0, len(RAW), 3, 10, 1000, None, topic, 7, 4)
    assert all(item.topic is topic for item in found)
