"""A streaming query: offsets in, offsets out, pieces in between; the checkpoint is the truth.

Laws
    The same start and end give the same pieces, whenever they are planned: a restart reads what the batch read.
    No offset goes back. A partition that appears during the stream is read from its beginning.
    Under Trigger.AvailableNow nothing is read that came after the query began.
    The group's progress follows the checkpoint: a commit that fails is logged, the next one makes up for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from rota.client.errors import KafkaError
from rota.client.log import logger
from rota.client.types import TopicPartition
from rota.spark_connector import edges
from rota.spark_connector.batch import Piece, planned, unknown_in
from rota.spark_connector.broker import Brokers
from rota.spark_connector.errors import DataLost
from rota.spark_connector.offsets import Offsets, from_tree, limited, named, to_tree
from rota.spark_connector.options import ReadOptions
from rota.spark_connector.read import read

_log = logger("rota.spark")
Tree = dict[str, dict[str, int]]


class RotaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives on the driver for as long as the query; pickled, each task reads with it."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._asked = Brokers(options.client)
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._latest: Offsets = {}
        self._batch_at: float | None = None  # when the last batch with records was planned

    def initialOffset(self) -> Tree:  # Spark's name
        """Where a new query starts."""
        partitions = self._asked.partitions(self._options.topics)
        return to_tree(edges.starts(self._options, partitions, self._asked))

    def getDefaultReadLimit(self) -> ReadLimit:
        """maxOffsetsPerTrigger, or minOffsetsPerTrigger alone."""
        told = self._options
        if told.offsets_per_trigger_max is not None:
            return ReadMaxRows(told.offsets_per_trigger_max)
        if told.offsets_per_trigger_min is not None:
            return ReadMinRows(told.offsets_per_trigger_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """What there is now is all that this run reads."""
        self._target = self._now()

    def reportLatestOffset(self) -> Tree | None:
        """For the query's progress: where the logs ended when they were last asked."""
        return to_tree(self._latest) if self._latest else None

    def latestOffset(self, start: Tree, limit: ReadLimit) -> Tree:
        """Where the next micro-batch ends; `start` when there is nothing to read yet. Raises DataLost, KafkaError."""
        begin = from_tree(start)
        latest = self._now() if self._target is None else {**self._target}
        latest = self._kept(begin, latest)
        begin = {**begin, **self._first_seen(begin, latest)}
        waiting = sum(max(0, latest[one] - begin[one]) for one in latest)
        if self._waits(waiting, limit):
            return start
        if waiting:
            self._batch_at = time.monotonic()
        if isinstance(limit, ReadMaxRows):
            return to_tree(limited(begin, latest, limit.max_rows))
        return to_tree({one: max(at, begin[one]) for one, at in latest.items()})

    def partitions(self, start: Tree, end: Tree) -> Sequence[InputPartition]:
        """The pieces between two offsets of this query. Raises DataLost."""
        begin, stop = from_tree(start), from_tree(end)
        begin = {**begin, **self._first_seen(begin, stop)}
        begin = {one: at for one, at in begin.items() if one in stop and at < stop[one]}
        if not begin:
            return []
        stop = {one: stop[one] for one in begin}
        lossy = not self._options.fail_on_data_loss
        whole = tuple(sorted(begin))
        return planned(
            edges.within(begin, whole, self._asked, lossy=lossy),
            edges.within(stop, whole, self._asked, lossy=lossy),
            self._options,
        )

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one piece as Arrow batches."""
        assert isinstance(partition, Piece)
        return read(partition.piece, self._options)

    def commit(self, end: Tree) -> None:
        """The batch is in the checkpoint: tell the group, if there is one."""
        if self._options.group_id is None:
            return
        try:
            self._asked.commit(self._options.group_id, from_tree(end))
        except KafkaError as why:
            _log.warning("The group's progress was not committed", group=self._options.group_id, reason=str(why))

    def stop(self) -> None:
        """The query is over."""
        self._asked.close()

    def _now(self) -> Offsets:
        partitions = self._asked.partitions(self._options.topics)
        self._latest = self._asked.latest(partitions)
        return dict(self._latest)

    def _kept(self, begin: Mapping[TopicPartition, int], latest: Offsets) -> Offsets:
        """Partitions that are gone, and logs that are shorter than what was read: lost data, or left as they are."""
        gone = [one for one in begin if one not in latest]
        shorter = [one for one in begin if one in latest and latest[one] < begin[one]]
        if (gone or shorter) and self._options.fail_on_data_loss and self._target is None:
            told = [f"gone: {named(gone)}"] if gone else []
            told += [f"shorter than what was read: {named(shorter)}"] if shorter else []
            raise DataLost(
                f"partitions of this query, {'; '.join(told)}: a topic was deleted or made anew. {edges.REMEDY}"
            )
        return {one: max(at, begin.get(one, at)) for one, at in latest.items()}

    def _first_seen(self, begin: Offsets, latest: Offsets) -> Offsets:
        """Where partitions begin that the last batch did not know."""
        new = unknown_in(begin, latest)
        return self._asked.earliest(new) if new else {}

    def _waits(self, waiting: int, limit: ReadLimit) -> bool:
        """Fewer than minOffsetsPerTrigger, and the last batch is not yet maxTriggerDelay ago."""
        least = self._options.offsets_per_trigger_min
        if least is None or waiting >= least or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        if self._batch_at is None:
            self._batch_at = time.monotonic()
        return time.monotonic() - self._batch_at < self._options.trigger_delay_max_ms / 1000
