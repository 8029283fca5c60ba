"""Offset and time index: lookups against a plain search, Kafka's bytes, damaged files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log.index import BadIndex, OffsetIndex, TimeIndex

growing = st.lists(st.integers(1, 1000), min_size=1, max_size=30).map(
    lambda steps: [sum(steps[: n + 1]) for n in range(len(steps))]
)


def offset_index(offsets: list[int], base: int = 100) -> OffsetIndex:
    index = OffsetIndex(base)
    for number, offset in enumerate(offsets):
        index.append(base + offset, 50 * (number + 1))
    return index


@given(growing, st.integers(0, 40_000))
def test_floor_is_the_last_batch_that_ends_at_or_before(offsets: list[int], offset: int) -> None:
    index = offset_index(offsets)
    before = [50 * (number + 1) for number, known in enumerate(offsets) if 100 + known <= offset]
    assert index.floor(offset) == (before[-1] if before else 0)


@given(growing, st.integers(0, 3))
def test_offset_index_survives_its_file_and_its_unused_room(offsets: list[int], unused: int) -> None:
    index = offset_index(offsets)
    read = OffsetIndex.from_bytes(100, index.to_bytes() + bytes(8 * unused), log_bytes=50 * len(offsets) + 1)
    assert (len(read), read.last, read.to_bytes()) == (len(offsets), index.last, index.to_bytes())


@given(growing, st.integers(0, 40_000))
def test_a_truncated_offset_index_has_no_entry_of_removed_records(offsets: list[int], offset: int) -> None:
    index = offset_index(offsets)
    index.truncate(offset)
    assert len(index) == sum(100 + known < offset for known in offsets)


def test_bytes_are_kafkas() -> None:
    assert offset_index([1, 300]).to_bytes().hex() == "00000001000000320000012c00000064"
    times = TimeIndex(100)
    times.append(1_700_000_000_000, 103)
    assert times.to_bytes().hex() == "0000018bcfe5680000000003"


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x01" * 7,
        bytes.fromhex("00000005000000320000000500000064"),  # an offset twice
        bytes.fromhex("00000005000000640000000600000032"),  # positions go back
        bytes.fromhex("0000000500001000"),  # outside the segment
        bytes.fromhex("ffffff0000000032"),  # before the segment
    ],
)
def test_damaged_offset_index(damaged: bytes) -> None:
    with pytest.raises(BadIndex):
        OffsetIndex.from_bytes(0, damaged, log_bytes=4096)


def test_empty_files() -> None:
    assert OffsetIndex.from_bytes(7, b"", 0).last is None
    assert OffsetIndex.from_bytes(7, bytes(80), 1000).last is None
    assert TimeIndex.from_bytes(7, bytes(120)).last is None


@given(st.lists(st.integers(-1, 50), max_size=30), st.integers(-1, 60))
def test_everything_before_the_floor_is_older(timestamps: list[int], expected: int) -> None:
    index = TimeIndex(10)
    for number, timestamp in enumerate(timestamps):
        index.append(timestamp, 10 + number)
    floor = index.floor(expected)
    assert all(timestamp < expected for timestamp in timestamps[: floor - 10])
    assert index.last is None or index.last[0] == max(timestamps)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(0, 3), st.integers(0, 40))
def test_time_index_survives_its_file_and_a_cut(timestamps: list[int], unused: int, cut: int) -> None:
    index = TimeIndex(10)
    for number, timestamp in enumerate(timestamps):
        index.append(timestamp, 10 + number)
    read = TimeIndex.from_bytes(10, index.to_bytes() + bytes(12 * unused))
    assert read.to_bytes() == index.to_bytes()
    read.truncate(cut)
    assert read.last is None or read.last[1] < cut


@pytest.mark.parametrize("damaged", [bytes(11), bytes.fromhex("000000000000000900000001000000000000000800000002")])
def test_damaged_time_index(damaged: bytes) -> None:
    with pytest.raises(BadIndex):
        TimeIndex.from_bytes(0, damaged)
    with pytest.raises(BadIndex):
        TimeIndex.from_bytes(0, bytes.fromhex("0000000000000009ffffffff"))
