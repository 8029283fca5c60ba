"""Records in batches: there and back, rewritten, built, refused."""

from __future__ import annotations

from dataclasses import replace
from struct import pack_into
from typing import Any

import pytest
from crc32c import crc32c

from rota.protocol.records.batch import (
    BATCH_HEADER_BYTES,
    Buffer,
    Codec,
    check_batch,
    headers,
    read_header,
    stamp_append_time,
)
from rota.protocol.records.errors import CorruptBatch, UnsupportedMagic
from rota.protocol.records.record import (
    BatchBuilder,
    Record,
    read_all,
    read_records,
    rewrite_batch,
    write_batch,
    write_pairs,
)

THREE = [
    Record(0, 1000, b"k", b"v", (("h", b"x"), ("n", None))),
    Record(1, 900, None, b""),
    Record(2, 2000, b"k" * 300, None),
]


def payload_of(raw: bytes) -> bytes:
    return raw[BATCH_HEADER_BYTES:]


def with_payload(raw: bytes, payload: bytes) -> bytearray:
    """The batch with other bytes for records, and a size and a checksum that fit them."""
    made = bytearray(raw[:BATCH_HEADER_BYTES]) + payload
    pack_into(">i", made, 8, len(made) - 12)
    pack_into(">I", made, 17, crc32c(bytes(made[21:])))
    return made


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("codec", list(Codec))
def test_written_records_are_read_back(codec: Codec, kind: type[Any]) -> None:
    assert read_records(kind(write_batch(THREE, codec=codec))) == THREE
    assert read_records(kind(b"before" + write_batch(THREE, codec=codec) + b"after"), 6) == THREE


def test_the_header_has_the_arguments_of_write_batch() -> None:
    raw = write_batch(
        THREE,
        base_offset=70,
        codec=Codec.ZSTD,
        producer_id=2**40,
        producer_epoch=3,
        base_sequence=8,
        is_control=True,
        is_transactional=True,
        leader_epoch=6,
    )
    header = read_header(raw)
    check_batch(raw, 0, header)
    assert (header.base_offset, header.last_offset, header.count) == (70, 72, 3)
    assert (header.codec, header.is_control, header.is_transactional) == (Codec.ZSTD, True, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 3, 8)
    assert (header.base_timestamp, header.max_timestamp, header.leader_epoch) == (1000, 2000, 6)
    assert [item.offset for item in read_records(raw)] == [70, 71, 72]


def test_write_batch_renumbers_the_offsets() -> None:
    raw = write_batch([Record(900, 1, None, b"a"), Record(5, 1, None, b"b")], base_offset=10)
    assert [(item.offset, item.value) for item in read_records(raw)] == [(10, b"a"), (11, b"b")]


@pytest.mark.parametrize("timestamps", [(5, -1), (-1, 5), (0, 2**62), (2**63 - 1, 0), (-(2**63), 2**63 - 1)])
def test_timestamps_may_go_back_and_far(timestamps: tuple[int, int]) -> None:
    raw = write_batch([Record(0, time, None, None) for time in timestamps])
    assert [item.timestamp for item in read_records(raw)] == list(timestamps)
    assert read_header(raw).max_timestamp == max(timestamps)


def test_pairs_are_a_batch_like_any_other() -> None:
    pairs: list[tuple[bytes | None, bytes | None]] = [(b"a", b"1"), (b"b", None), (None, b"")]
    raw = write_pairs(pairs, 77, base_offset=4, leader_epoch=2, producer_id=1, producer_epoch=2, base_sequence=3)
    records = [Record(4 + number, 77, *pair) for number, pair in enumerate(pairs)]
    assert read_records(raw) == records
    assert raw == write_batch(records, base_offset=4, leader_epoch=2, producer_id=1, producer_epoch=2, base_sequence=3)


def test_no_records_are_no_batch() -> None:
    for empty in (lambda: write_batch([]), lambda: write_pairs([], 0), lambda: BatchBuilder(100).build()):
        with pytest.raises(ValueError, match="at least one record"):
            empty()


def test_a_fetched_set_may_end_in_a_cut_batch() -> None:
    whole = write_batch(THREE) + write_batch(THREE, base_offset=3, codec=Codec.LZ4)
    last = write_batch(THREE, base_offset=6)
    for cut in range(len(last)):
        assert [item.offset for item in read_all(whole + last[:cut])] == [0, 1, 2, 3, 4, 5]
    assert len(read_all(whole + last)) == 9
    assert read_all(b"") == []


def test_control_batches_are_not_shown() -> None:
    marker = write_batch([Record(0, 1, b"\x00\x00\x00\x01", b"")], base_offset=3, is_control=True)
    raw = write_batch(THREE) + marker + write_batch(THREE, base_offset=4)
    assert [item.offset for item in read_all(raw)] == [0, 1, 2, 4, 5, 6]
    assert read_records(raw, len(write_batch(THREE)))[0].key == b"\x00\x00\x00\x01"


def test_a_corrupt_batch_among_fetched_ones_is_refused() -> None:
    first = write_batch(THREE)
    bent = bytearray(first + write_batch(THREE, base_offset=3) + first)
    bent[len(first) + 80] ^= 1
    with pytest.raises(CorruptBatch, match=f"batch at {len(first)}: checksum"):
        read_all(bent)
    with pytest.raises(UnsupportedMagic):
        read_all(first + b"\x00" * 16 + b"\x01" + b"\x00" * 60)


@pytest.mark.parametrize("codec", list(Codec))
def test_records_that_do_not_fit_the_header_are_refused(codec: Codec) -> None:
    raw = bytearray(write_batch(THREE, codec=codec))
    for delta, count in [(1, 2), (3, 4), (2**31 - 1, 2**31 - 1)]:
        pack_into(">i", raw, 23, delta)
        pack_into(">i", raw, 57, count)
        with pytest.raises(CorruptBatch):
            read_records(with_payload(raw, payload_of(raw)))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_a_payload_of_another_codec_is_refused(codec: Codec) -> None:
    raw = write_batch(THREE, codec=codec)
    with pytest.raises(CorruptBatch):
        read_records(with_payload(raw, payload_of(write_batch(THREE))))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_decompression_stops_at_its_limit(codec: Codec) -> None:
    raw = write_batch([Record(0, 0, None, bytes(100_000))], codec=codec)
    for read in (read_records, read_all):
        with pytest.raises(CorruptBatch, match=codec.name):
            read(raw, limit_bytes=50_000)
        assert len(read(raw, limit_bytes=100_100)) == 1


class TestRewritten:
    """What compaction leaves of a batch."""

    def kept(self, **changes: Any) -> tuple[bytes, bytes]:
        whole = write_batch(THREE, base_offset=50, producer_id=4, base_sequence=9, leader_epoch=3, **changes)
        return whole, rewrite_batch(read_header(whole), [item for item in read_records(whole) if item.offset != 51])

    @pytest.mark.parametrize("codec", list(Codec))
    def test_offsets_sequence_and_flags_stay(self, codec: Codec) -> None:
        whole, less = self.kept(codec=codec, is_transactional=True)
        before, after = read_header(whole), read_header(less)
        check_batch(less, 0, after, compacted=True)
        assert after == replace(before, count=2, crc=after.crc, size_bytes=after.size_bytes)
        assert read_records(less) == [item for item in read_records(whole) if item.offset != 51]

    def test_all_records_kept_are_the_same_batch(self) -> None:
        for codec in Codec:
            whole = write_batch(THREE, base_offset=50, codec=codec)
            assert rewrite_batch(read_header(whole), read_records(whole)) == whole

    def test_an_empty_batch_keeps_the_place_and_the_sequence(self) -> None:
        whole = write_batch(THREE, base_offset=50, codec=Codec.GZIP, producer_id=4, base_sequence=9)
        raw = rewrite_batch(read_header(whole), [])
        header = read_header(raw)
        check_batch(raw, 0, header, compacted=True)
        assert read_records(raw) == []
        assert (len(raw), header.count, header.codec) == (BATCH_HEADER_BYTES, 0, Codec.NONE)
        assert (header.base_offset, header.next_offset, header.last_sequence) == (50, 53, 11)
        assert header.max_timestamp == 2000

    def test_removing_the_first_record_changes_only_the_base_timestamp(self) -> None:
        whole = write_batch(THREE, base_offset=50)
        raw = rewrite_batch(read_header(whole), read_records(whole)[1:])
        assert (read_header(raw).base_offset, read_header(raw).base_timestamp) == (50, 900)
        assert read_records(raw) == read_records(whole)[1:]

    def test_append_time_stays(self) -> None:
        whole = bytearray(write_batch(THREE, base_offset=50))
        stamp_append_time(whole, 0, append_time_ms=4242)
        raw = rewrite_batch(read_header(whole), read_records(whole)[:1])
        assert (read_header(raw).is_log_append_time, read_header(raw).max_timestamp) == (True, 4242)
        assert [item.timestamp for item in read_records(raw)] == [4242]

    def test_a_delete_horizon_is_set_once_and_stays(self) -> None:
        whole = write_batch(THREE, base_offset=50)
        marked = rewrite_batch(read_header(whole), read_records(whole), delete_horizon_ms=123_456)
        again = rewrite_batch(read_header(marked), read_records(marked)[:2])
        for raw in (marked, again):
            assert read_header(raw).delete_horizon_ms == 123_456
        assert read_records(again) == read_records(whole)[:2]


class TestBuilder:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_batch_builder_writes_the_same_bytes_as_write_batch(self, codec: Codec) -> None:
        builder = BatchBuilder(10_000, codec)
        for item in THREE:
            assert builder.append(item.timestamp, item.key, item.value, item.headers)
        assert builder.count == 3
        built = builder.build(producer_id=5, producer_epoch=1, base_sequence=7, is_transactional=True)
        assert built == write_batch(
            THREE, codec=codec, producer_id=5, producer_epoch=1, base_sequence=7, is_transactional=True
        )

    def test_its_size_is_that_of_the_batch(self) -> None:
        builder = BatchBuilder(10_000)
        assert builder.size_bytes == BATCH_HEADER_BYTES
        for item in THREE:
            builder.append(item.timestamp, item.key, item.value, item.headers)
            assert builder.size_bytes == len(builder.build())

    def test_batch_builder_refuses_records_above_the_size_and_is_unchanged(self) -> None:
        builder = BatchBuilder(BATCH_HEADER_BYTES + 20)
        assert builder.append(100, None, b"12345")
        before = builder.build()
        assert not builder.append(10**12, None, b"1" * 20)
        assert (builder.count, builder.build()) == (1, before)
        assert builder.append(101, None, b"")
        assert builder.size_bytes <= BATCH_HEADER_BYTES + 20

    def test_the_first_record_always_fits(self) -> None:
        builder = BatchBuilder(10)
        assert builder.append(1, b"k" * 100, None)
        assert not builder.append(1, None, None)
        assert read_records(builder.build()) == [Record(0, 1, b"k" * 100, None)]

    def test_a_batch_may_be_built_again_for_another_producer(self) -> None:
        builder = BatchBuilder(1000)
        builder.append(1, b"k", b"v")
        first, second = builder.build(producer_id=1, base_sequence=0), builder.build(producer_id=2, base_sequence=5)
        assert (read_header(first).producer_id, read_header(second).producer_id) == (1, 2)
        assert read_records(first) == read_records(second)


def test_batches_back_to_back_are_found_by_their_sizes() -> None:
    raw: Buffer = b"".join(write_pairs([(b"k", b"v" * size)], 1, base_offset=size) for size in range(50))
    assert [header.base_offset for _, header in headers(raw)] == list(range(50))
    assert [len(item.value or b"") for item in read_all(raw)] == list(range(50))
