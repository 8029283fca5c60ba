"""A batch seen from outside."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from pathlib import Path
from struct import pack, pack_into
from typing import Any

import pytest
from aiokafka.record.util import calc_crc32c_py

from rota.protocol.records.batch import (
    BATCH_HEADER_BYTES,
    DELETE_HORIZON_BIT,
    FIELDS,
    LOG_OVERHEAD,
    BatchHeader,
    Codec,
    check_batch,
    field_at,
    fields,
    headers,
    read_attributes,
    read_header,
    read_max_timestamp,
    read_producer,
    read_size_and_magic,
    stamp,
    stamp_append_time,
    with_payload,
    with_producer,
)
from rota.protocol.records.errors import CorruptBatch, InvalidBatch, UnsupportedMagic
from rota.protocol.records.record import Record, read_records, write_batch, write_pairs

# the record (key "k", value "v", header h=x) at 1,700,000,000,000 ms, by hand from the specification
ONE = bytes.fromhex(
    "0000000000000000"  # base offset
    "0000003e"  # 62 bytes follow
    "ffffffff02"  # no leader epoch, magic 2
    "00000000"  # checksum: resigned() fills it in
    "000000000000"  # no codec, last offset delta 0
    "0000018bcfe56800"  # base timestamp
    "0000018bcfe56800"  # max timestamp
    "ffffffffffffffffffffffffffff"  # no producer, no epoch, no sequence
    "00000001"  # one record
    "18000000026b02760202680278"
)


def batch(**changes: Any) -> bytes:
    return write_batch([Record(0, 5, b"k", b"v"), Record(1, 9, b"k", None), Record(2, 7, None, b"v")], **changes)


def header(**changes: int) -> BatchHeader:
    return replace(BatchHeader(100, 70, 3, 2, 0, 0, 4, 1, 2, -1, -1, -1, 5), **changes)


def resigned(raw: bytearray) -> bytearray:
    """The batch with a checksum that fits what a test has changed in it."""
    pack_into(">I", raw, 17, calc_crc32c_py(raw[21:]))
    return raw


def test_a_header_is_read() -> None:
    raw = batch(base_offset=1000, leader_epoch=7, producer_id=9, producer_epoch=2, base_sequence=40)
    found = read_header(raw)
    assert found == header(
        base_offset=1000,
        size_bytes=len(raw),
        leader_epoch=7,
        crc=found.crc,
        last_offset_delta=2,
        base_timestamp=5,
        max_timestamp=9,
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
        count=3,
    )
    assert (found.last_offset, found.next_offset, found.last_sequence) == (1002, 1003, 42)


def test_the_layout_is_that_of_the_specification() -> None:
    raw = resigned(bytearray(ONE))
    assert len(raw) == BATCH_HEADER_BYTES + 13
    found = read_header(raw)
    check_batch(raw, 0, found)
    assert (found.size_bytes, found.count, found.base_timestamp) == (74, 1, 1_700_000_000_000)
    records = [Record(0, 1_700_000_000_000, b"k", b"v", (("h", b"x"),))]
    assert read_records(raw) == records
    assert write_batch(records) == raw


def test_attributes_are_decoded() -> None:
    for codec in Codec:
        assert header(attributes=0x78 | codec).codec is codec
    assert not header(attributes=0x77).is_log_append_time
    assert header(attributes=0x08).is_log_append_time
    assert not header(attributes=0x6F).is_transactional
    assert header(attributes=0x10).is_transactional
    assert not header(attributes=0x5F).is_control
    assert header(attributes=0x20).is_control
    assert header(attributes=0x3F).delete_horizon_ms is None
    assert header(attributes=DELETE_HORIZON_BIT, base_timestamp=77).delete_horizon_ms == 77


def test_a_sequence_wraps_to_zero() -> None:
    assert header(base_sequence=2**31 - 3, last_offset_delta=2).last_sequence == 2**31 - 1
    assert header(base_sequence=2**31 - 3, last_offset_delta=3).last_sequence == 0
    assert header(base_sequence=2**31 - 1, last_offset_delta=4).last_sequence == 3
    assert header(base_sequence=-1, last_offset_delta=4).last_sequence == -1


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_batches_are_walked_in_any_buffer(kind: type[Any]) -> None:
    first, second = batch(), write_pairs([(b"a", b"b")], 6, base_offset=3)
    found = list(headers(kind(first + second)))
    assert [(at, item.base_offset) for at, item in found] == [(0, 0), (len(first), 3)]
    for at, item in found:
        check_batch(kind(first + second), at, item)


def test_no_bytes_are_no_batches() -> None:
    assert list(headers(b"")) == []


@pytest.mark.parametrize("cut", range(1, len(ONE) - 1))
def test_a_cut_batch_is_refused_or_left_out(cut: int) -> None:
    whole = batch()
    raw = whole + resigned(bytearray(ONE))[:cut]
    assert [at for at, _ in headers(raw, cut=True)] == [0]
    with pytest.raises(CorruptBatch):
        list(headers(raw))


def test_a_header_outside_the_buffer_is_refused() -> None:
    for position in (-1, -200, 1, 10_000):
        with pytest.raises(CorruptBatch):
            read_header(ONE, position)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_raise_unsupported_magic(magic: int) -> None:
    old = pack(">qiIbb", 0, 20, 0, magic, 0) + b"\xff" * 8  # shorter than a header of magic 2
    for raw in (old, old + bytes(100)):
        with pytest.raises(UnsupportedMagic, match=f"format {magic}"):
            read_header(raw)


def test_an_unknown_magic_is_corrupt() -> None:
    for magic in (3, -1, 127):
        raw = bytearray(ONE)
        pack_into(">b", raw, 16, magic)
        with pytest.raises(CorruptBatch, match=f"magic {magic}") as caught:
            read_header(raw)
        assert not isinstance(caught.value, UnsupportedMagic)


@pytest.mark.parametrize("size", [-(2**31), -1, 0, BATCH_HEADER_BYTES - LOG_OVERHEAD - 1])
def test_a_size_below_the_header_is_refused(size: int) -> None:
    raw = bytearray(ONE)
    pack_into(">i", raw, 8, size)
    with pytest.raises(CorruptBatch, match="less than its header"):
        list(headers(raw, cut=True))


def test_a_size_beyond_the_buffer_is_refused_before_the_checksum() -> None:
    raw = bytearray(ONE)
    pack_into(">i", raw, 8, 2**31 - 1)
    with pytest.raises(CorruptBatch, match=r"2147483659 bytes, but 74 are left"):
        check_batch(raw, 0, read_header(raw))


@pytest.mark.parametrize("position", range(17, len(ONE)))
def test_every_byte_that_the_checksum_covers_is_guarded(position: int) -> None:
    raw = resigned(bytearray(ONE))
    raw[position] ^= 0x10
    with pytest.raises(CorruptBatch, match="checksum"):
        check_batch(raw, 0, read_header(raw))


def test_an_unknown_codec_is_refused() -> None:
    for codec in (5, 6, 7):
        raw = bytearray(ONE)
        pack_into(">h", raw, 21, codec)
        with pytest.raises(InvalidBatch, match=f"codec {codec}"):
            check_batch(resigned(raw), 0, read_header(raw))


@pytest.mark.parametrize(
    ("delta", "count", "alive"),
    [(0, 1, True), (1, 1, True), (5, 0, True), (0, 2, False), (-1, 0, False), (-1, 1, False), (0, -1, False)],
)
def test_only_compaction_leaves_fewer_records_than_offsets(delta: int, count: int, alive: bool) -> None:
    raw = bytearray(ONE)
    pack_into(">i", raw, 23, delta)
    pack_into(">i", raw, 57, count)
    found = read_header(resigned(raw))
    if alive:
        check_batch(raw, 0, found, compacted=True)
    else:
        with pytest.raises(InvalidBatch):
            check_batch(raw, 0, found, compacted=True)
    if (delta, count) != (0, 1):
        with pytest.raises(InvalidBatch):
            check_batch(raw, 0, found)


@pytest.mark.parametrize("kind", [bytearray, lambda raw: memoryview(bytearray(raw))])
def test_a_stamp_gives_offsets_and_keeps_the_checksum(kind: Any) -> None:
    raw = kind(b"before" + batch())
    stamp(raw, 6, base_offset=2**40, leader_epoch=5)
    found = read_header(raw, 6)
    assert (found.base_offset, found.leader_epoch) == (2**40, 5)
    check_batch(raw, 6, found)
    assert raw[:6] == b"before"


@pytest.mark.parametrize("codec", list(Codec))
def test_append_time_is_stamped_on_every_record(codec: Codec) -> None:
    raw = bytearray(b"before" + batch(codec=codec) + b"after")
    stamp_append_time(raw, 6, append_time_ms=4242)
    found = read_header(raw, 6)
    check_batch(raw, 6, found)
    assert (found.is_log_append_time, found.max_timestamp, found.base_timestamp) == (True, 4242, 5)
    assert found.codec is codec
    assert [item.timestamp for item in read_records(raw, 6)] == [4242, 4242, 4242]
    assert (raw[:6], raw[6 + found.size_bytes :]) == (b"before", b"after")


def test_single_fields_are_those_of_the_header() -> None:
    raw = batch()
    whole = read_header(raw)
    assert read_size_and_magic(raw) == (whole.size_bytes, whole.magic) == (len(raw), 2)
    assert (read_attributes(raw), read_max_timestamp(raw)) == (whole.attributes, whole.max_timestamp) == (0, 9)


def test_records_in_another_codec_make_a_batch_with_a_good_checksum() -> None:
    raw = batch()
    changed = with_payload(raw, Codec.GZIP, b"not really")
    header = read_header(changed)
    check_batch(changed, 0, header)
    assert (header.codec, header.size_bytes, header.count) == (Codec.GZIP, BATCH_HEADER_BYTES + 10, 3)
    assert with_payload(changed, Codec.NONE, raw[BATCH_HEADER_BYTES:]) == raw


POSITIONS = {
    "base_offset": 0,
    "length": 8,
    "leader_epoch": 12,
    "magic": 16,
    "crc": 17,
    "attributes": 21,
    "last_offset_delta": 23,
    "base_timestamp": 27,
    "max_timestamp": 35,
    "producer_id": 43,
    "producer_epoch": 51,
    "base_sequence": 53,
    "count": 57,
}


def test_the_fields_are_where_the_specification_has_them() -> None:
    """P2. By hand from KIP-98."""
    assert {name: field_at(name) for name in FIELDS} == POSITIONS
    assert (BATCH_HEADER_BYTES, LOG_OVERHEAD) == (61, 12)
    named = ["size_bytes" if name == "length" else name for name in FIELDS]
    assert named == [field.name for field in dataclasses.fields(BatchHeader)]


def test_a_part_of_the_header_has_its_fields_and_room_for_those_that_are_skipped() -> None:
    part = fields("leader_epoch", "last_offset_delta", skipped=("crc", "attributes"))
    header = fields("base_offset", "count").pack(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    assert part.unpack_from(header, field_at("leader_epoch")) == (3, 4, 7)
    assert part.size == field_at("base_timestamp") - field_at("leader_epoch")


def test_the_layout_is_declared_once() -> None:
    """P2. Nothing else has a format with the first fields of a batch, those of its producer, or its timestamps."""
    declares = re.compile(r"""["']>(qiib?\w*|qi\d*x\d*b\w*|qhi|h?iqqq\w*)["']""")
    root = Path(__file__).parents[4]
    sources = [path for name in ("client", "coordinator", "protocol", "cli") for path in (root / name).rglob("*.py")]
    assert len(sources) > 500
    assert [path.name for path in sources if declares.search(path.read_text())] == []


def test_the_producer_of_a_batch_is_replaced() -> None:
    records = [Record(0, 1000, b"k", b"v")]
    sent = write_batch(records, producer_id=5, producer_epoch=1, base_sequence=7)
    assert read_producer(sent) == (5, 1, 7)
    again = with_producer(sent, 6, 0, 2)
    assert again == write_batch(records, producer_id=6, producer_epoch=0, base_sequence=2)
    assert read_records(again) == read_records(sent)
