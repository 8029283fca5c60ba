"""Offset ranges are split for Spark's tasks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.options import batch_options, stream_options
from rota.spark_connector.plan import (
    JoinedInputPartition,
    KafkaInputPartition,
    join_small,
    parts_of,
    plan_input_partitions,
    split_ranges,
)

RANGES = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 10_000)), max_size=8).map(
    lambda found: [OffsetRange("t", at, start, start + length) for at, (start, length) in enumerate(found)]
)


def test_without_options_a_range_is_not_split() -> None:
    assert split_ranges([OffsetRange("t", 0, 3, 9), OffsetRange("t", 1, 4, 4)]) == (OffsetRange("t", 0, 3, 9),)


def test_the_longest_ranges_are_split_most() -> None:
    cut = split_ranges([OffsetRange("t", 0, 0, 300), OffsetRange("t", 1, 0, 100)], partitions_min=4)
    assert [(item.partition, item.start, item.end) for item in cut] == [
        (0, 0, 100),
        (0, 100, 200),
        (0, 200, 300),
        (1, 0, 100),
    ]


class MeasuredRange(OffsetRange):
    """A range that counts how often its length is read."""

    reads = 0

    @property
    def length(self) -> int:
        MeasuredRange.reads += 1
        return self.end - self.start


def test_sp21_many_ranges_are_split_in_a_time_that_grows_with_their_number() -> None:
    ranges = [MeasuredRange("t", number, 0, number % 7 + 2) for number in range(400)]
    MeasuredRange.reads = 0
    assert len(split_ranges(ranges, partitions_min=600)) == 600
    assert MeasuredRange.reads < 20 * len(ranges)


@given(RANGES, st.none() | st.integers(1, 50), st.none() | st.integers(1, 5_000))
def test_the_splits_cover_the_ranges(given: list[OffsetRange], least: int | None, most: int | None) -> None:
    cut = split_ranges(given, partitions_min=least, records_max=most)
    for whole in given:
        parts = [item for item in cut if item.partition == whole.partition]
        assert sum(item.length for item in parts) == whole.length
        assert all(item.length > 0 for item in parts)
        assert all(before.end == after.start for before, after in pairwise(parts))
        assert not parts or (parts[0].start, parts[-1].end) == (whole.start, whole.end)
        assert most is None or all(item.length <= most for item in parts)
    if least is not None:
        assert len(cut) >= min(least, sum(item.length for item in given))


def test_input_partitions_are_split_by_max_records_per_partition() -> None:
    servers = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
    options = batch_options({**servers, "subscribe": "t", "maxRecordsPerPartition": "6"})
    planned = plan_input_partitions([OffsetRange("t", 0, 2, 12), OffsetRange("u", 1, 0, 5)], options, {"t": b"id"})
    found = [(item.offsets, item.topic_id) for item in planned if isinstance(item, KafkaInputPartition)]
    assert found == [
        (OffsetRange("t", 0, 2, 7), b"id"),
        (OffsetRange("t", 0, 7, 12), b"id"),
        (OffsetRange("u", 1, 0, 5), None),
    ]


@given(RANGES, st.none() | st.integers(0, 30_000), st.none() | st.integers(1, 20_000))
def test_small_ranges_share_a_task(given: list[OffsetRange], least: int | None, most: int | None) -> None:
    chosen = {"minRecordsPerPartition": least, "maxRecordsPerPartition": most}
    options = stream_options(
        {
            "kafka.bootstrap.servers": "127.0.0.1:9092",
            "subscribe": "t",
            **{name: str(value) for name, value in chosen.items() if value is not None},
        }
    )
    parts = plan_input_partitions(given, options, {})
    tasks = [[part.offsets for part in parts_of(task)] for task in join_small(parts, options)]
    assert sorted(offsets for task in tasks for offsets in task) == sorted(part.offsets for part in parts), (
        "each range once"
    )
    lengths = [sum(offsets.length for offsets in task) for task in tasks]
    least = 5_000 if least is None else least
    if most is not None:
        assert max(lengths, default=0) <= most
        least = min(least, most // 2)
    assert sum(length < least for length in lengths) <= 1
    assert all(len(task) == 1 or all(offsets.length < least for offsets in task) for task in tasks)


def test_with_min_partitions_no_range_shares_a_task() -> None:
    servers = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "t"}
    ranges = [OffsetRange("t", at, 0, 3) for at in range(3)]
    for options, tasks in ((servers, 1), ({**servers, "minPartitions": "1"}, 3)):
        parts = plan_input_partitions(ranges, parsed := stream_options(options), {})
        assert [isinstance(task, JoinedInputPartition) for task in join_small(parts, parsed)] == [tasks == 1] * tasks
