"""A batch query: the records between two offsets that are fixed when the query is planned.

Laws
    The driver plans once; the tasks read what the plan says, whatever is written meanwhile.
    Filters narrow the plan before any record is fetched, and never exclude a row that passes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rota.client.types import TopicPartition
from rota.spark_connector.broker import DriverClient
from rota.spark_connector.filters import PushedFilters, push_filters
from rota.spark_connector.offset_bounds import ending_offsets, starting_offsets
from rota.spark_connector.offsets import OffsetRange, offset_ranges
from rota.spark_connector.options import ReadOptions
from rota.spark_connector.plan import KafkaInputPartition, plan_input_partitions
from rota.spark_connector.read import read
from rota.spark_connector.shipping import Shipped
from rota.spark_connector.spark_api import Filter


class RotaReader(Shipped, DataSourceReader):
    """Plans on the driver; pickled, it reads in each task."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pushed = PushedFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # Spark's name
        """Take the filters that bounds imply; return the others, which Spark evaluates."""
        self._pushed, remaining = push_filters(filters)
        return remaining

    def partitions(self) -> Sequence[InputPartition]:
        """The input partitions. Raises OptionError, DataLost, KafkaError."""
        client = DriverClient(self._options.client)
        try:
            ranges = self._ranges(client)
            topic_ids = client.topic_ids({offsets.topic for offsets in ranges})
        finally:
            client.close()
        return plan_input_partitions(ranges, self._options, topic_ids)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one input partition as Arrow batches."""
        if not isinstance(partition, KafkaInputPartition):  # Spark runs one task for an empty plan
            return iter(())
        return read(partition, self._options)

    def _ranges(self, client: DriverClient) -> list[OffsetRange]:
        partitions = client.partitions(self._options.topics)
        start = starting_offsets(self._options, partitions, client)
        end = ending_offsets(self._options, partitions, client, start)
        narrowed = [self._pushed.narrow(offsets) for offsets in offset_ranges(start, end)]
        return self._from_min_time([offsets for offsets in narrowed if offsets.length > 0], client)

    def _from_min_time(self, ranges: list[OffsetRange], client: DriverClient) -> list[OffsetRange]:
        """The ranges without the records before the first one that a filter on the timestamp lets through."""
        time_ms = self._pushed.min_time_ms
        if time_ms is None or not ranges:
            return ranges
        ends = {offsets.topic_partition: offsets.end for offsets in ranges}
        first = _first_offsets(ends, time_ms, client)
        later = [
            offsets._replace(start=min(max(offsets.start, first[offsets.topic_partition]), offsets.end))
            for offsets in ranges
        ]
        return [offsets for offsets in later if offsets.length > 0]


def _first_offsets(ends: dict[TopicPartition, int], time_ms: int, client: DriverClient) -> dict[TopicPartition, int]:
    """The first offset at or after a time, or the end where no record is that young. A new leader does not search
    beyond its high watermark: it is asked again when that has reached the end."""
    found = client.offsets_for_times(dict.fromkeys(ends, time_ms))
    without = {partition: ends[partition] for partition, offset in found.items() if offset is None}
    if without:
        client.latest_at_least(without, tuple(without))
        found |= client.offsets_for_times(dict.fromkeys(without, time_ms))
    return {partition: ends[partition] if offset is None else offset for partition, offset in found.items()}
