"""A batch query: what there was between two offsets when it was planned.

Laws
    The plan is made once, on the driver; what the tasks read is what the plan says, whatever is written meanwhile.
    Filters narrow the plan before anything is read, and never leave out a row that they let through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from rota.client.types import TopicPartition
from rota.spark_connector import offset_bounds as edges
from rota.spark_connector.broker import Brokers
from rota.spark_connector.filters import Narrowing, narrowed
from rota.spark_connector.offsets import OffsetRange, Offsets, ranges
from rota.spark_connector.options import ReadOptions
from rota.spark_connector.plan import pieces
from rota.spark_connector.read import read


class Piece(InputPartition):
    """What one task reads: offsets of one partition."""

    def __init__(self, piece: OffsetRange) -> None:
        super().__init__(piece)
        self.piece = piece


class RotaReader(DataSourceReader):
    """The driver plans with it; pickled, each task reads with it."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._narrowing = Narrowing()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # Spark's name
        """Take what the ranges keep by themselves; the rest stays with Spark."""
        self._narrowing, rest = narrowed(filters)
        return rest

    def partitions(self) -> Sequence[InputPartition]:
        """The pieces to read. Raises OptionError, DataLost, KafkaError."""
        asked = Brokers(self._options.client)
        try:
            whole = self._ranges(asked)
        finally:
            asked.close()
        return planned(whole, self._options)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one piece as Arrow batches."""
        if not isinstance(partition, Piece):  # Spark makes a task even of a plan without pieces
            return iter(())
        return read(partition.piece, self._options)

    def _ranges(self, asked: Brokers) -> list[OffsetRange]:
        partitions = asked.partitions(self._options.topics)
        start = edges.starts(self._options, partitions, asked)
        end = edges.ends(self._options, partitions, asked, start)
        kept = [self._narrowing.cut(one) for one in ranges(start, end)]
        return self._after_time([one for one in kept if one.length > 0], asked)

    def _after_time(self, kept: list[OffsetRange], asked: Brokers) -> list[OffsetRange]:
        """A filter on the timestamp: what lies before the first record of that time is not read."""
        if self._narrowing.time_ms is None or not kept:
            return kept
        times = dict.fromkeys((one.of for one in kept), self._narrowing.time_ms)
        found = asked.at_times(times)
        if missing := {one.of: one.end for one in kept if found[one.of] is None}:
            # a new leader does not search beyond its high watermark: look again when that has reached the planned end
            asked.latest_at_least(missing, tuple(missing))
            found |= asked.at_times({partition: times[partition] for partition in missing})
        return [one for one in (_from(one, found[one.of]) for one in kept) if one.length > 0]


def _from(one: OffsetRange, first: int | None) -> OffsetRange:
    start = one.end if first is None else min(max(one.start, first), one.end)
    return OffsetRange(one.topic, one.partition, start, one.end)


def planned(wanted: Iterable[OffsetRange], options: ReadOptions) -> list[InputPartition]:
    """The pieces of these ranges, as the options want them cut."""
    told = options.min_partitions, options.max_records_per_partition
    return [Piece(one) for one in pieces(wanted, partitions_min=told[0], records_max=told[1])]


def unknown_in(start: Offsets, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Those that have appeared since."""
    return tuple(one for one in partitions if one not in start)
