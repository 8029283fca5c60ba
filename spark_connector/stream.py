"""A streaming query: offsets in, offsets out, input partitions in between; the checkpoint is the truth.

Laws
    The same start and end give the same input partitions, whenever they are planned: a restart reads what the
    micro-batch read.
    A start that is not reproducible (the end of a log, a group's offsets) is put into the checkpoint by an empty first
    micro-batch before any record is read from it.
    A partition that appears during the stream is read from the start of its log, as is a topic that was created again.
    Under Trigger.AvailableNow no record is read that was written after the query began.
    The group's progress follows the checkpoint: a commit that fails is logged, and a later one includes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rota.client.log import logger
from rota.client.types import TopicPartition
from rota.spark_connector.batch_progress import batch_progress
from rota.spark_connector.broker import DriverClient
from rota.spark_connector.data_loss import Losses, detect_losses, next_end, readable_ranges, restart_offsets
from rota.spark_connector.driver_rows import DriverRows
from rota.spark_connector.errors import REMEDY, DataLost
from rota.spark_connector.offset_bounds import is_reproducible, starting_offsets
from rota.spark_connector.offsets import OffsetRange, Offsets, from_json_tree, to_json_tree
from rota.spark_connector.options import ReadOptions
from rota.spark_connector.plan import JoinedInputPartition, KafkaInputPartition, join_small, plan_input_partitions
from rota.spark_connector.progress import GroupProgress
from rota.spark_connector.read import read
from rota.spark_connector.shipping import Shipped
from rota.spark_connector.spark_api import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

_log = logger("rota.spark")
JsonTree = dict[str, dict[str, int]]
LOSSES_SHOWN_MAX: Final = 10  # in one message


class RotaStreamReader(Shipped, DriverRows, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives on the driver as long as the query; pickled, it reads in each task."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client = DriverClient(options.client)
        self._progress = GroupProgress(options.group_id)
        self._initial: Offsets | None = None
        self._is_first_batch = False  # the first micro-batch of a new query is planned or runs
        self._has_first_end = False  # and Spark has its end
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._latest: Offsets = {}
        self._topic_ids: dict[str, bytes] = {}  # of the topics that were read
        self._batch_at_s: float | None = None  # when the last micro-batch with records was planned

    def initialOffset(self) -> JsonTree:  # Spark's name
        """Return where a new query starts. Spark calls it several times and gets the same offsets."""
        if self._initial is None:
            partitions = self._client.partitions(self._options.topics)
            self._initial = starting_offsets(self._options, partitions, self._client)
            self._is_first_batch = True
        return to_json_tree(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:
        """maxOffsetsPerTrigger, or minOffsetsPerTrigger alone."""
        if self._options.offsets_per_trigger_max is not None:
            return ReadMaxRows(self._options.offsets_per_trigger_max)
        if self._options.offsets_per_trigger_min is not None:
            return ReadMinRows(self._options.offsets_per_trigger_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of this run: the current ends of the logs."""
        self._target = self._log_ends({})

    def reportLatestOffset(self) -> JsonTree | None:
        """The ends of the logs as last listed, for the query's progress."""
        return to_json_tree(self._latest) if self._latest else None

    def latestOffset(self, start: JsonTree, limit: ReadLimit) -> JsonTree:
        """The end of the next micro-batch; `start` when there is nothing to read yet. Raises DataLost, KafkaError."""
        begin = from_json_tree(start)
        if self._is_first_batch and not self._has_first_end:
            self._has_first_end = True
            if not is_reproducible(self._options):
                self._latest = self._log_ends({})
                self._batch_at_s = time.monotonic()
                return start
        else:
            self._is_first_batch = False
            self._progress.advance(begin, self._client)  # Spark has processed what is below `start`
        return self._next_end(start, begin, limit)

    def partitions(self, start: JsonTree, end: JsonTree) -> Sequence[InputPartition]:
        """The input partitions between two offsets of this query. Raises DataLost, KafkaError."""
        self._has_first_end = True
        ranges = self._ranges(from_json_tree(start), from_json_tree(end))
        if not ranges:
            return []
        existing = self._client.existing(offsets.topic_partition for offsets in ranges)
        latest = self._client.latest_at_least({offsets.topic_partition: offsets.end for offsets in ranges}, existing)
        readable, losses = readable_ranges(ranges, self._client.earliest_of_existing(existing), latest)
        self._report(losses)
        _log.info("Planned a micro-batch", **batch_progress(readable, latest))
        topic_ids = self._client.topic_ids({partition.topic for partition in existing})
        parts = plan_input_partitions(readable, self._options, {**topic_ids, **self._topic_ids})
        planned = join_small(parts, self._options)
        self.keep_small(planned, self._options, self._client)
        return planned

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one input partition as Arrow batches."""
        assert isinstance(partition, KafkaInputPartition | JoinedInputPartition)
        return read(partition, self._options)

    def commit(self, end: JsonTree) -> None:
        """Spark calls it when the next micro-batch begins; `latestOffset` has usually committed before."""
        self._progress.advance(from_json_tree(end), self._client)

    def stop(self) -> None:
        """Close the connections. The end of the last micro-batch is committed when the query starts again."""
        self._client.close()

    def _next_end(self, start: JsonTree, begin: Offsets, limit: ReadLimit) -> JsonTree:
        latest, losses, topic_ids = self._inspect_logs(begin)
        self._report(losses)
        if self._target is None and self._options.fail_on_data_loss:
            self._client.require(self._options.topics)
        new = _missing_in(begin, latest)
        found = (*new, *(partition for partition in losses if partition in latest))
        earliest = self._client.earliest_of_existing(found)
        latest = {
            partition: offset for partition, offset in latest.items() if partition in begin or partition in earliest
        }
        restarts = restart_offsets(begin, losses, earliest)
        begin = {**begin, **{partition: earliest[partition] for partition in new if partition in earliest}}
        backlog = sum(
            max(0, offset - restarts.get(partition, begin[partition])) for partition, offset in latest.items()
        )
        if self._is_delayed(backlog, limit):
            return start
        self._topic_ids.update(topic_ids)
        return to_json_tree(
            next_end(begin, restarts, latest, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        )

    def _inspect_logs(self, begin: Offsets) -> tuple[Offsets, Losses, dict[str, bytes]]:
        """The ends of the logs, the losses of this query, and the topic ids. Repeats the requests before it reports a
        loss: a broker that has just started may not know everything yet, and a topic may change between requests."""
        latest, retries = self._batch_ends(begin), 0
        last_ids: dict[str, bytes] | None = None
        while True:
            topic_ids = self._list_topic_ids(begin, latest)
            recreated = {
                topic for topic, topic_id in topic_ids.items() if self._topic_ids.get(topic, topic_id) != topic_id
            }
            losses = detect_losses(begin, latest, recreated)
            if not losses:
                self._topic_ids.update(topic_ids)
            is_confirmed = bool(recreated) and topic_ids == last_ids
            if not losses or is_confirmed or retries == self._options.offset_retries:
                return latest, losses, topic_ids
            if retries and not recreated:
                time.sleep(self._options.offset_retry_interval_ms / 1000)
            retries, last_ids = retries + 1, topic_ids
            latest = self._log_ends(begin) if self._target is None else self._lower_target(begin)

    def _list_topic_ids(self, begin: Offsets, latest: Offsets) -> dict[str, bytes]:
        """The topic ids, from metadata that are newer than the offsets: they belong to these logs or to newer ones."""
        if latest != begin:
            self._client.existing(latest)
        return self._client.topic_ids({partition.topic for partition in (*begin, *latest)})

    def _batch_ends(self, begin: Offsets) -> Offsets:
        """The ends of the logs or, under Trigger.AvailableNow, the target of the run. A target that is below what the
        query has read is listed again: the high watermark may have been behind."""
        if self._target is None:
            return self._log_ends(begin)
        if any(offset < begin.get(partition, offset) for partition, offset in self._target.items()):
            return self._lower_target(begin)
        return dict(self._target)

    def _lower_target(self, begin: Offsets) -> Offsets:
        """Move the target to the current ends of the logs where those are lower."""
        target = self._target or {}
        self._target = {
            partition: min(offset, max(target.get(partition, 0), begin.get(partition, 0)))
            for partition, offset in self._log_ends(begin).items()
            if partition in target or partition in begin
        }
        return dict(self._target)

    def _log_ends(self, begin: Offsets) -> Offsets:
        """The ends of the logs. Waits for high watermarks that are below `begin`, up to which the query has read."""
        self._latest = self._client.latest_at_least(begin, self._client.present_partitions(self._options.topics))
        return dict(self._latest)

    def _report(self, losses: Losses) -> None:
        """Raises DataLost or, with failOnDataLoss=false, logs a warning."""
        if not losses:
            return
        described = "; ".join([*losses.values()][:LOSSES_SHOWN_MAX])
        if len(losses) > LOSSES_SHOWN_MAX:
            described += f"; and {len(losses) - LOSSES_SHOWN_MAX} more"
        if self._options.fail_on_data_loss:
            raise DataLost(f"records that the query has to read are lost, or may be: {described}. {REMEDY}")
        _log.warning("Records are lost, or may be; reading the records that exist", losses=described)

    def _ranges(self, begin: Offsets, end: Offsets) -> list[OffsetRange]:
        """The ranges from `begin` to `end`. A new partition, and one whose offset goes back, is read from the start of
        its log."""
        back = () if self._is_first_batch else [key for key, offset in end.items() if offset < begin.get(key, offset)]
        from_start = (*_missing_in(begin, end), *back)
        if from_start:
            begin = {**begin, **self._client.earliest_of_existing(self._client.existing(from_start))}
        return [
            OffsetRange(partition.topic, partition.partition, begin[partition], offset)
            for partition, offset in sorted(end.items())
            if begin.get(partition, offset) < offset
        ]

    def _is_delayed(self, backlog: int, limit: ReadLimit) -> bool:
        """Whether the backlog is below minOffsetsPerTrigger and maxTriggerDelay has not passed since the last batch."""
        least, now_s = self._options.offsets_per_trigger_min, time.monotonic()
        if least is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        delay_s = self._options.trigger_delay_max_ms / 1000
        is_late = self._batch_at_s is None or now_s - self._batch_at_s >= delay_s
        if backlog < least and not is_late:
            return True
        self._batch_at_s = now_s if backlog else self._batch_at_s
        return False


def _missing_in(begin: Offsets, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """The partitions that `begin` does not have: they have appeared since."""
    return tuple(partition for partition in partitions if partition not in begin)
