"""Both variants of the record loops against bytes written by hand."""

from __future__ import annotations

import pickle
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rota.protocol import records
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import Record

INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)

VARINTS = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (1023, "fe0f"),
    (1024, "8010"),
    (-1024, "ff0f"),
    (-1025, "8110"),
    (8191, "fe7f"),
    (8192, "808001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
    (2**62, "80808080808080808001"),
    (INT64_MAX, "feffffffffffffffff01"),
    (INT64_MIN, "ffffffffffffffffff01"),
    (INT64_MAX + 1, "ffffffffffffffffff01"),
    (INT64_MIN - 1, "feffffffffffffffff01"),
]

PLAIN = "14000200026b0676616c00"  # time +1, offset +0, key b"k", value b"val", no headers


def encoded(
    fast: ModuleType, offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: Any
) -> bytes:
    item = fast.Record(offset_delta, timestamp_delta, key, value, headers)
    raw: bytes = fast.encode_kept([item], 0, 0)
    return raw


def decoded(fast: ModuleType, raw: str, count: int = 1, append_time_ms: int | None = None) -> list[tuple[Any, ...]]:
    data = bytes.fromhex(raw)
    found = fast.decode_records(data, 0, len(data), count, 10, 1000, append_time_ms)
    return [(item.offset, item.timestamp, item.key, item.value, item.headers) for item in found]


@pytest.mark.parametrize(("number", "raw"), VARINTS)
def test_a_varint_is_zigzag_in_seven_bit_groups(fast: ModuleType, number: int, raw: str) -> None:
    assert fast.varint(number).hex() == raw


@pytest.mark.parametrize(("number", "raw"), VARINTS)
def test_a_timestamp_delta_wraps_as_int64(fast: ModuleType, number: int, raw: str) -> None:
    body = bytes.fromhex(f"00{raw}00010100")
    data = fast.varint(len(body)) + body
    [item] = fast.decode_records(data, 0, len(data), 1, 0, 7, None)
    wrapped = (number + 7 + 2**63) % 2**64 - 2**63
    assert item.timestamp == wrapped


def test_a_record_is_read(fast: ModuleType) -> None:
    assert decoded(fast, PLAIN) == [(10, 1001, b"k", b"val", ())]


def test_a_record_is_written(fast: ModuleType) -> None:
    assert encoded(fast, 0, 1, b"k", b"val", ()).hex() == PLAIN
    assert fast.encode_records([fast.Record(99, 1001, b"k", b"val")], 1000).hex() == PLAIN
    assert fast.encode_kept([fast.Record(10, 1001, b"k", b"val")], 10, 1000).hex() == PLAIN


def test_pairs_share_the_base_timestamp(fast: ModuleType) -> None:
    raw = fast.encode_pairs([(b"k", b"v"), (b"k", None)])
    assert decoded(fast, raw.hex(), 2) == [(10, 1000, b"k", b"v", ()), (11, 1000, b"k", None, ())]


def test_null_is_not_empty(fast: ModuleType) -> None:
    assert decoded(fast, "0c000000010100") == [(10, 1000, None, None, ())]
    assert decoded(fast, "0c000000000000") == [(10, 1000, b"", b"", ())]


def test_any_negative_length_is_null_as_in_kafka(fast: ModuleType) -> None:
    assert decoded(fast, "0c000000030500") == [(10, 1000, None, None, ())]


def test_headers_may_be_nameless_and_without_value(fast: ModuleType) -> None:
    headers = (("a", b""), ("", None))
    assert encoded(fast, 1, 0, None, None, headers).hex() == "16000002010104" + "026100" + "0001"
    assert decoded(fast, "16000002010104" + "026100" + "0001") == [(11, 1000, None, None, headers)]


def test_a_header_name_that_is_not_utf8_survives(fast: ModuleType) -> None:
    raw = "12000000010102" + "02ff" + "01"
    [(_, _, _, _, headers)] = decoded(fast, raw)
    assert headers == (("\udcff", None),)
    assert encoded(fast, 0, 0, None, None, headers).hex() == raw


def test_a_header_name_is_utf8(fast: ModuleType) -> None:
    raw = encoded(fast, 0, 0, None, None, (("grüße-😀", b"\x00"),))
    assert decoded(fast, raw.hex())[0][4] == (("grüße-😀", b"\x00"),)


def test_append_time_replaces_every_timestamp(fast: ModuleType) -> None:
    assert decoded(fast, PLAIN, 1, 5000) == [(10, 5000, b"k", b"val", ())]
    assert decoded(fast, PLAIN, 1, -1) == [(10, -1, b"k", b"val", ())]


def test_offset_deltas_may_leave_gaps_and_go_back(fast: ModuleType) -> None:
    raw = fast.encode_kept([fast.Record(500, 0, None, None), fast.Record(10, 0, None, None)], 10, 0)
    assert [item[0] for item in decoded(fast, raw.hex(), 2)] == [500, 10]


def test_records_are_read_from_the_middle_of_a_buffer(fast: ModuleType) -> None:
    data = b"\xff" * 5 + bytes.fromhex(PLAIN) + b"\xff" * 5
    [item] = fast.decode_records(data, 5, len(data) - 5, 1, 10, 1000, None)
    assert (item.key, item.value) == (b"k", b"val")


HOSTILE = [
    ("no bytes for a record", "", 1),
    ("a negative count", PLAIN, -1),
    ("a count that the bytes cannot hold", PLAIN, 2**31 - 1),
    ("bytes after the last record", PLAIN + "00", 1),
    ("bytes and no record", PLAIN, 0),
    ("a record longer than its batch", "7e" + PLAIN[2:], 1),
    ("a record of a negative length", "15" + PLAIN[2:], 1),
    ("a record shorter than its fields", "12" + PLAIN[2:] + "00" * 8, 2),
    ("a record longer than its fields", "16" + PLAIN[2:] + "00", 1),
    ("a length of six bytes", "808080808001" + "00" * 8, 1),
    ("a length of more than 32 bits", "8080808010" + "00" * 8, 1),
    ("a timestamp of eleven bytes", "2800" + "80" * 10 + "01" + "00" * 9, 1),
    ("a timestamp of 65 bits", "2800" + "80" * 9 + "02" + "00" * 9, 1),
    ("a timestamp that never ends", "1400" + "ff" * 9, 1),
    ("an offset of six bytes", "1a0000" + "808080808001" + "00" * 5, 1),
    ("a key longer than its record", "140000007e" + "00" * 6, 1),
    ("a key of 2 GiB", "14000000feffffff0f0000", 1),
    ("a value longer than its record", "14000000017e" + "00" * 5, 1),
    ("a value that eats the next record", "0c000000011000" + "0c000000010100", 2),
    ("a negative count of headers", "0c000000010101", 1),
    ("more headers than bytes", "0e00000001010400", 1),
    ("a thousand million headers", "140000000101feffffff07", 1),
    ("a header without a name", "100000000101020100", 1),
    ("a header's name that is cut", "100000000101020800", 1),
    ("a header's value that is cut", "100000000101020008", 1),
    ("a header that is cut before its value", "0e00000001010200", 1),
]


@pytest.mark.parametrize(("raw", "count"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_hostile_bytes_are_refused(fast: ModuleType, raw: str, count: int) -> None:
    with pytest.raises(CorruptBatch):
        decoded(fast, raw, count)


def test_a_batch_above_the_record_count_limit_is_refused(fast: ModuleType) -> None:
    most = fast.RECORDS_PER_BATCH_MAX
    with pytest.raises(CorruptBatch, match=f"{most + 1} records, of {most} allowed"):
        fast.decode_records(bytes(8 * most), 0, 8 * most, most + 1, 0, 0, None)


def test_headers_are_counted_over_the_whole_batch(fast: ModuleType) -> None:
    most = fast.HEADERS_PER_BATCH_MAX
    half = most // 2

    def record(count: int) -> bytes:
        body = bytes.fromhex("0000000101") + fast.varint(count) + b"\x00\x01" * count
        return bytes(fast.varint(len(body)) + body)

    def read(*counts: int) -> list[int]:
        data = b"".join(map(record, counts))
        found = fast.decode_records(data, 0, len(data), len(counts), 0, 0, None)
        return [len(item.headers) for item in found]

    assert read(half, 3, most - half - 3) == [half, 3, most - half - 3]
    with pytest.raises(CorruptBatch, match=f"more than {most} headers"):
        read(half, 3, most - half - 2)
    with pytest.raises(CorruptBatch, match=f"more than {most} headers"):
        read(most + 1)


@pytest.mark.parametrize("offset", [2**62 + 1, -(2**62) - 1])
def test_a_base_offset_that_could_overflow_is_refused(fast: ModuleType, offset: int) -> None:
    data = bytes.fromhex(PLAIN)
    with pytest.raises(CorruptBatch, match="base offset"):
        fast.decode_records(data, 0, len(data), 1, offset, 0, None)


def test_bounds_outside_the_buffer_are_refused(fast: ModuleType) -> None:
    data = bytes.fromhex(PLAIN)
    for start, end in [(-1, len(data)), (0, len(data) + 1), (len(data), 0)]:
        with pytest.raises(CorruptBatch):
            fast.decode_records(data, start, end, 1, 0, 0, None)


def test_every_prefix_of_a_record_is_refused(fast: ModuleType) -> None:
    whole = encoded(fast, 300, 70_000, b"key" * 30, b"value" * 400, (("name", b"x" * 200),))
    for size in range(len(whole)):
        with pytest.raises(CorruptBatch):
            fast.decode_records(whole[:size], 0, size, 1, 0, 0, None)


def test_a_record_is_a_value(fast: ModuleType) -> None:
    item = fast.Record(1, 2, b"k", None, (("h", b"v"),))
    assert item == fast.Record(1, 2, b"k", None, (("h", b"v"),))
    assert hash(item) == hash(fast.Record(1, 2, b"k", None, (("h", b"v"),)))
    assert repr(item) == "Record(1, 2, b'k', None, (('h', b'v'),))"
    assert item != "Record"
    others = [(0, 2, b"k", None), (1, 0, b"k", None), (1, 2, None, None), (1, 2, b"k", b""), (1, 2, b"k", None)]
    assert all(item != fast.Record(*other) for other in others)


def test_a_record_can_be_pickled() -> None:
    item = Record(1, 2, b"k", None, (("h", b"v"),))
    assert pickle.loads(pickle.dumps(item)) == item


def test_the_compiled_library_was_made_of_this_file() -> None:
    if not records.COMPILED:
        pytest.skip("no C compiler was there at install")
    folder = Path(records.__file__).parent
    names = ("fast.py", "consumed.py", "columns.py", "produced.py", "offset_columns.py")
    source = b"".join((folder / name).read_bytes() for name in names)
    wanted = sha256(source).hexdigest().encode()
    [library] = folder.glob("*__mypyc*")
    assert wanted in library.read_bytes(), "a compiled file was edited since: pip install -e ."


def test_the_newest_value_of_each_key_is_kept_in_the_order_of_the_last_writes(fast: ModuleType) -> None:
    newest: dict[bytes, bytes | None] = {b"a": b"0", b"b": b"0"}
    records = [fast.Record(0, 0, key, value) for key, value in ((b"a", b"1"), (None, b"x"), (b"c", b"2"), (b"b", None))]
    fast.keep_newest(records, newest)
    assert list(newest.items()) == [(b"a", b"1"), (b"c", b"2"), (b"b", None)]


def test_entries_are_taken_up_to_a_count_or_the_one_that_exceeds_a_size(fast: ModuleType) -> None:
    entries = [(b"k", b"12345"), (b"l", None), (b"m", b"12345")]
    left = iter(entries)
    assert fast.take_entries(left, 2, 100) == (entries[:2], False)
    assert fast.take_entries(left, 2, 100) == (entries[2:], True)
    assert fast.take_entries(iter(entries), 9, 6) == (entries[:2], False)
    assert fast.take_entries(iter(entries), 9, 0) == (entries[:1], False)
    assert fast.take_entries(iter([]), 9, 9) == ([], True)
