"""One segment: finding batches with and without its memory of the last ones, cuts, big batches, indexes let go."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log.folder import Folder
from rota.coordinator.log.index_files import LoadedIndexes
from rota.coordinator.log.segment import RECENT_BATCHES_MAX, RELATIVE_OFFSET_MAX, Segment
from rota.coordinator.log.store import MemoryStore, OpenFiles
from rota.protocol.records.batch import BATCH_HEADER_BYTES, headers, stamp
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import write_pairs

from .log_kit import values

BASE = 50


def append(segment: Segment, data: bytes, offset: int | None = None) -> None:
    placed = bytearray(data)
    found = list(headers(placed))
    offset = segment.next_offset if offset is None else offset
    for position, header in found:
        stamp(placed, position, base_offset=offset, leader_epoch=0)
        header.base_offset, offset = offset, offset + header.last_offset_delta + 1
    segment.append(placed, found)


def filled(counts: list[int], interval: int = 200) -> Segment:
    segment = Segment(BASE, MemoryStore(), None, index_interval_bytes=interval)
    for number, count in enumerate(counts):
        append(segment, values(count, timestamp=1000 + number))
    return segment


class CountingStore(MemoryStore):
    """Counts the bytes that are read."""

    __slots__ = ("read_bytes",)

    def __init__(self) -> None:
        super().__init__()
        self.read_bytes = 0

    def read(self, position: int, count: int, *, wait: bool = True) -> bytes:
        data = super().read(position, count, wait=wait)
        self.read_bytes += len(data)
        return data


def test_of_a_batch_that_does_not_fit_only_the_header_is_read() -> None:
    """F8."""
    store = CountingStore()
    segment = Segment(BASE, store, None, index_interval_bytes=200)
    append(segment, values(500))
    size_bytes = segment.size_bytes
    assert segment.read(0, size_bytes - 1, size_bytes, first_whole=False) == b""
    assert store.read_bytes == BATCH_HEADER_BYTES
    assert len(segment.read(0, size_bytes, size_bytes, first_whole=False)) == size_bytes


def partition_lookup(segment: Segment) -> list[tuple[int, int, int]]:
    """(position, base, last) of each batch."""
    return [(position, header.base_offset, header.last_offset) for position, header in segment.walk()]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.booleans())
def test_every_offset_is_found(counts: list[int], fresh: bool) -> None:
    segment = filled(counts)
    if not fresh:
        segment.seal()  # forgets the last batches: the index and a walk have to do
    for position, base, last in partition_lookup(segment):
        for offset in range(base, last + 1):
            assert segment.position_of(offset) == position
    assert segment.position_of(segment.next_offset) == segment.size_bytes


def test_the_memory_of_the_last_batches_is_bounded_and_right() -> None:
    segment = filled([1] * (3 * RECENT_BATCHES_MAX))
    assert len(segment._recent_offsets) < 2 * RECENT_BATCHES_MAX
    found = partition_lookup(segment)
    assert [segment.position_of(base) for _, base, _ in found] == [position for position, _, _ in found]


def test_a_gap_between_offsets_leads_to_the_next_batch() -> None:
    segment = filled([2, 2])
    append(segment, values(1), offset=BASE + 10)
    assert segment.position_of(BASE + 7) == partition_lookup(segment)[2][0]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30), st.data())
def test_a_truncated_segment_equals_one_without_the_removed_batches(counts: list[int], data: st.DataObject) -> None:
    segment = filled(counts)
    offset = data.draw(st.integers(BASE, segment.next_offset))
    kept = [place for place in partition_lookup(segment) if place[2] < offset]
    size_bytes, cut = segment.size_bytes, segment.index_reader().find_cut(offset)
    assert (segment.size_bytes, len(partition_lookup(segment))) == (size_bytes, len(counts))
    segment.truncate(cut)
    assert segment.next_offset == (kept[-1][2] + 1 if kept else BASE)
    assert partition_lookup(segment) == kept
    like = filled(counts[: len(kept)])
    assert segment.largest == like.largest
    append(segment, values(3, timestamp=5000))
    append(like, values(3, timestamp=5000))
    assert (segment.offsets.to_bytes(), segment.times.to_bytes()) == (like.offsets.to_bytes(), like.times.to_bytes())


@given(st.lists(st.integers(1, 5), max_size=30))
def test_rebuilt_indexes_equal_the_originals(counts: list[int]) -> None:
    segment, again = filled(counts), filled(counts)
    again.rebuild()
    assert again.offsets.to_bytes() == segment.offsets.to_bytes()
    assert again.times.to_bytes() == segment.times.to_bytes()
    assert (again.next_offset, again.largest) == (segment.next_offset, segment.largest)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=60))
def test_append_own_updates_the_segment_as_a_parsed_header_does(counts: list[int]) -> None:
    segment = Segment(BASE, MemoryStore(), None, index_interval_bytes=200)
    for number, count in enumerate(counts):
        base, now_ms = segment.next_offset, 1000 + number
        segment.append_own(
            write_pairs([(None, b"v")] * count, now_ms, base_offset=base), base, base + count - 1, now_ms
        )
    found = (partition_lookup(segment), segment.offsets.to_bytes(), segment.times.to_bytes(), segment.largest)
    segment.rebuild()
    assert (partition_lookup(segment), segment.offsets.to_bytes(), segment.times.to_bytes(), segment.largest) == found
    assert segment.next_offset == BASE + sum(counts)


def test_a_read_returns_the_first_batch_whole_and_may_cut_the_last() -> None:
    segment = filled([20, 20])
    first, second = (position for position, _, _ in partition_lookup(segment))
    assert len(segment.read(first, 0, segment.size_bytes)) == second
    assert len(segment.read(first, second + 10, segment.size_bytes)) == second + 10
    assert len(segment.read(first, 1 << 20, second)) == second


def test_a_batch_larger_than_one_read() -> None:
    segment = filled([1, 3_000, 200_000, 1])
    sizes = [header.size_bytes for _, header in segment.walk()]
    assert max(sizes) > 1 << 20
    assert [len(batch) for _, _, batch in segment.scan()] == sizes
    assert sum(sizes) == segment.size_bytes


def test_damage_is_corrupt_batch() -> None:
    segment = filled([5, 5])
    segment.store.truncate(segment.size_bytes - 1)
    with pytest.raises(CorruptBatch):
        list(segment.scan())


def test_an_index_reaches_only_so_far() -> None:
    segment = filled([])
    assert segment.can_hold(BASE + RELATIVE_OFFSET_MAX)
    assert not segment.can_hold(BASE + RELATIVE_OFFSET_MAX + 1)


def test_times() -> None:
    segment = filled([])
    assert (segment.largest, segment.first_timestamp) == ((-1, BASE), -1)
    for timestamp in (500, 900, 900, 100):
        append(segment, values(2, timestamp=timestamp))
    assert (segment.largest, segment.first_timestamp) == ((900, BASE + 3), 500)


def test_indexes_of_sealed_segments_are_loaded_and_evicted(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "t-0", OpenFiles(), LoadedIndexes(limit=1))
    folder.open(200)
    first, second = folder.create(BASE, 200, 0), folder.create(BASE + 1000, 200, 0)
    for segment in (first, second):
        for number in range(20):
            append(segment, values(2, timestamp=number))
        segment.seal()
    assert first.largest_timestamp == second.largest_timestamp == 19
    for segment in (first, second, first):
        assert segment.position_of(segment.base_offset + 31) == partition_lookup(segment)[15][0]
    assert (first._offsets is None, second._offsets is None) == (False, True)
