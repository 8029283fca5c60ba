"""Split offset ranges into the input partitions that Spark's tasks read, and join small ones. Pure.

Laws
    The splits of a range are consecutive and cover the range without gap or overlap.
    Joined ranges are those that were planned, each once; one of minRecordsPerPartition or more stays alone.
    minPartitions is reached when there are enough records; a split has at most maxRecordsPerPartition offsets.
    A range gets splits in proportion to its length, so that tasks are of similar size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.options import ReadOptions


class KafkaInputPartition(InputPartition):
    """The offsets of one partition that one task reads. `topic_id` is None if the broker has no topic ids."""

    def __init__(self, offsets: OffsetRange, topic_id: bytes | None = None) -> None:
        super().__init__(offsets)
        self.offsets, self.topic_id = offsets, topic_id


class JoinedInputPartition(InputPartition):
    """The offsets of several partitions that one task reads, one after the other."""

    def __init__(self, parts: Sequence[KafkaInputPartition]) -> None:
        super().__init__(None)
        self.parts = tuple(parts)


Planned = KafkaInputPartition | JoinedInputPartition


def parts_of(planned: Planned) -> tuple[KafkaInputPartition, ...]:
    """What a task reads."""
    return planned.parts if isinstance(planned, JoinedInputPartition) else (planned,)


def join_small(parts: Sequence[KafkaInputPartition], options: ReadOptions) -> list[Planned]:
    """The input partitions of a micro-batch: those below minRecordsPerPartition share a task until it has so many."""
    least = records_min(options)
    joined: list[Planned] = [part for part in parts if part.offsets.length >= least]
    pending: list[KafkaInputPartition] = []
    records = 0
    for part in parts:
        if part.offsets.length < least:
            pending.append(part)
            records += part.offsets.length
            if records >= least:
                joined.append(JoinedInputPartition(pending))
                pending, records = [], 0
    if pending:
        joined.append(JoinedInputPartition(pending) if len(pending) > 1 else pending[0])
    return joined


def records_min(options: ReadOptions) -> int:
    """Of a task. With minPartitions nothing is joined, and no task gets more than maxRecordsPerPartition."""
    if options.min_partitions is not None:
        return 0
    if options.max_records_per_partition is None:
        return options.min_records_per_partition
    return min(options.min_records_per_partition, options.max_records_per_partition // 2)


def plan_input_partitions(
    ranges: Iterable[OffsetRange], options: ReadOptions, topic_ids: Mapping[str, bytes]
) -> list[KafkaInputPartition]:
    """The input partitions of these ranges, split as minPartitions and maxRecordsPerPartition say."""
    splits = split_ranges(ranges, partitions_min=options.min_partitions, records_max=options.max_records_per_partition)
    return [KafkaInputPartition(offsets, topic_ids.get(offsets.topic)) for offsets in splits]


def split_ranges(
    ranges: Iterable[OffsetRange], *, partitions_min: int | None = None, records_max: int | None = None
) -> tuple[OffsetRange, ...]:
    """Each range, split where the limits need it; empty ranges are dropped."""
    parts = [offsets for offsets in ranges if offsets.length > 0]
    if records_max is not None:
        parts = [part for offsets in parts for part in _split(offsets, -(-offsets.length // records_max))]
    if not parts or partitions_min is None or len(parts) >= partitions_min:
        return tuple(parts)
    counts = _split_counts(parts, partitions_min)
    return tuple(part for offsets, count in zip(parts, counts, strict=True) for part in _split(offsets, count))


def _split_counts(ranges: list[OffsetRange], partitions_min: int) -> list[int]:
    """The number of splits of each range: in proportion to its length, at least 1, `partitions_min` in total when the
    ranges have that many offsets."""
    total = sum(offsets.length for offsets in ranges)
    counts = [max(1, offsets.length * partitions_min // total) for offsets in ranges]
    by_size = [(-offsets.length / count, at) for at, (offsets, count) in enumerate(zip(ranges, counts, strict=True))]
    heapify(by_size)  # the largest splits first
    for _ in range(partitions_min - sum(counts)):
        at = by_size[0][1]
        if counts[at] >= ranges[at].length:
            break
        counts[at] += 1
        heapreplace(by_size, (-ranges[at].length / counts[at], at))
    return counts


def _split(offsets: OffsetRange, count: int) -> Iterable[OffsetRange]:
    count = min(count, offsets.length)
    bounds = [offsets.start + offsets.length * part // count for part in range(count + 1)]
    for start, end in pairwise(bounds):
        yield OffsetRange(offsets.topic, offsets.partition, start, end)
