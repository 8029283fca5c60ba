"""Ranges in pieces for Spark's tasks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.plan import pieces

RANGES = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 10_000)), max_size=8).map(
    lambda found: [OffsetRange("t", at, start, start + length) for at, (start, length) in enumerate(found)]
)


def test_a_range_stays_whole_when_nothing_is_asked() -> None:
    assert pieces([OffsetRange("t", 0, 3, 9), OffsetRange("t", 1, 4, 4)]) == (OffsetRange("t", 0, 3, 9),)


def test_the_longest_ranges_are_split_most() -> None:
    cut = pieces([OffsetRange("t", 0, 0, 300), OffsetRange("t", 1, 0, 100)], partitions_min=4)
    assert [(one.partition, one.start, one.end) for one in cut] == [
        (0, 0, 100),
        (0, 100, 200),
        (0, 200, 300),
        (1, 0, 100),
    ]


@given(RANGES, st.none() | st.integers(1, 50), st.none() | st.integers(1, 5_000))
def test_pieces_are_the_ranges(given: list[OffsetRange], least: int | None, most: int | None) -> None:
    cut = pieces(given, partitions_min=least, records_max=most)
    for whole in given:
        parts = [one for one in cut if one.partition == whole.partition]
        assert sum(one.length for one in parts) == whole.length
        assert all(one.length > 0 for one in parts)
        assert all(before.end == after.start for before, after in pairwise(parts))
        assert not parts or (parts[0].start, parts[-1].end) == (whole.start, whole.end)
        assert most is None or all(one.length <= most for one in parts)
    if least is not None:
        assert len(cut) >= min(least, sum(one.length for one in given))
