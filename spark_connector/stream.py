"""A streaming query: offsets in, offsets out, pieces in between; the checkpoint is the truth.

Laws
    The same start and end give the same pieces, whenever they are planned: a restart reads what the batch read.
    A start that could not be found again (the end of a log, a group's offsets) is written down by an empty first
    micro-batch before anything is read from it.
    A partition that appears during the stream is read from its beginning; so is a log that was made anew.
    Under Trigger.AvailableNow nothing is read that came after the query began.
    The group's progress follows the checkpoint: a commit that fails is logged, a later one makes up for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from rota.client.log import logger
from rota.spark_connector import data_loss as losses
from rota.spark_connector import offset_bounds as edges
from rota.spark_connector.batch import Piece, planned, unknown_in
from rota.spark_connector.broker import Brokers
from rota.spark_connector.errors import DataLost
from rota.spark_connector.offsets import OffsetRange, Offsets, from_tree, to_tree
from rota.spark_connector.options import ReadOptions
from rota.spark_connector.progress import Progress
from rota.spark_connector.read import read

_log = logger("rota.spark")
Tree = dict[str, dict[str, int]]
TOLD_MAX: Final = 10  # partitions in a message


class RotaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives on the driver for as long as the query; pickled, each task reads with it."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._asked = Brokers(options.client)
        self._progress = Progress(options.group_id)
        self._initial: Offsets | None = None
        self._opening = False  # the first micro-batch of a new query is being made or run
        self._is_made = False  # and Spark has its end
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._latest: Offsets = {}
        self._ids: dict[str, bytes] = {}  # of the topics that were read
        self._batch_at: float | None = None  # when the last batch with records was planned

    def initialOffset(self) -> Tree:  # Spark's name
        """Where a new query starts: Spark asks several times, and is told the same."""
        if self._initial is None:
            partitions = self._asked.partitions(self._options.topics)
            self._initial = edges.starts(self._options, partitions, self._asked)
            self._opening = True
        return to_tree(self._initial)

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
        self._target = self._now({})

    def reportLatestOffset(self) -> Tree | None:
        """For the query's progress: where the logs ended when they were last asked."""
        return to_tree(self._latest) if self._latest else None

    def latestOffset(self, start: Tree, limit: ReadLimit) -> Tree:
        """Where the next micro-batch ends; `start` when there is nothing to read yet. Raises DataLost, KafkaError."""
        begin = from_tree(start)
        if self._opening and not self._is_made:
            self._is_made = True
            if not edges.can_be_found_again(self._options):
                self._latest = self._now({})
                self._batch_at = time.monotonic()
                return start
        else:
            self._opening = False
            self._progress.reached(begin, self._asked)  # Spark goes on from what it is done with
        return self._next(start, begin, limit)

    def partitions(self, start: Tree, end: Tree) -> Sequence[InputPartition]:
        """The pieces between two offsets of this query. Raises DataLost."""
        self._is_made = True
        wanted = self._spans(from_tree(start), from_tree(end))
        if not wanted:
            return []
        there = self._asked.existing(one.of for one in wanted)
        last = self._asked.latest_at_least({one.of: one.end for one in wanted}, there)
        kept, told = losses.readable(wanted, self._asked.earliest(there), last)
        self._judge(told)
        return planned(kept, self._options)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one piece as Arrow batches."""
        assert isinstance(partition, Piece)
        return read(partition.piece, self._options)

    def commit(self, end: Tree) -> None:
        """Spark says so when the next micro-batch begins: `latestOffset` has known it before."""
        self._progress.reached(from_tree(end), self._asked)

    def stop(self) -> None:
        """The query is over. What Spark is done with is not told here: the group hears of it when it starts again."""
        self._asked.close()

    def _next(self, start: Tree, begin: Offsets, limit: ReadLimit) -> Tree:
        latest, told, ids = self._looked(begin)
        self._judge(told)
        if self._target is None and self._options.fail_on_data_loss:
            self._asked.require(self._options.topics)
        new = unknown_in(begin, latest)
        first = self._asked.earliest((*new, *(one for one in told if one in latest)))
        again = losses.back(begin, told, first)
        begin = {**begin, **{one: first[one] for one in new}}
        waiting = sum(max(0, at - again.get(one, begin[one])) for one, at in latest.items())
        if self._waits(waiting, limit):
            return start
        self._ids.update(ids)
        return to_tree(losses.ends(begin, again, latest, limit.max_rows if isinstance(limit, ReadMaxRows) else None))

    def _looked(self, begin: Offsets) -> tuple[Offsets, losses.Told, dict[str, bytes]]:
        """Where the logs end, what of this query is lost, and which topics they are. Asks again before it says so: a
        broker that has just come back may not know everything yet, and a topic may change while it is asked about."""
        latest, tries = self._ends(begin), 0
        known: dict[str, bytes] | None = None
        while True:
            ids = self._ids_of(begin, latest)
            anew = {topic for topic, one in ids.items() if self._ids.get(topic, one) != one}
            told = losses.lost(begin, latest, anew)
            if not told:
                self._ids.update(ids)
            if not told or (anew and ids == known) or tries == self._options.offset_tries:
                return latest, told, ids
            if tries and not anew:
                time.sleep(self._options.offset_pause_ms / 1000)
            tries, known = tries + 1, ids
            latest = self._now(begin) if self._target is None else self._within_target(begin)

    def _ids_of(self, begin: Offsets, latest: Offsets) -> dict[str, bytes]:
        """The topics' ids, asked for after their offsets: they are those of these logs, or newer ones."""
        if latest != begin:
            self._asked.existing(latest)
        return self._asked.ids({one.topic for one in (*begin, *latest)})

    def _ends(self, begin: Offsets) -> Offsets:
        """Where the logs end or, under Trigger.AvailableNow, where they ended when the run began. A target that is
        below what the query has read is looked at again: the high watermark may have been behind then."""
        if self._target is None:
            return self._now(begin)
        if any(at < begin.get(one, at) for one, at in self._target.items()):
            return self._within_target(begin)
        return dict(self._target)

    def _within_target(self, begin: Offsets) -> Offsets:
        """What there is now, and no more than there was when the run began."""
        target = self._target or {}
        self._target = {
            one: min(at, max(target.get(one, 0), begin.get(one, 0)))
            for one, at in self._now(begin).items()
            if one in target or one in begin
        }
        return dict(self._target)

    def _now(self, begin: Offsets) -> Offsets:
        """Where the logs end. Waits for high watermarks that are below what the query has read."""
        self._latest = self._asked.latest_at_least(begin, self._asked.present(self._options.topics))
        return dict(self._latest)

    def _judge(self, told: losses.Told) -> None:
        """Lost data is an error, or, with failOnDataLoss=false, a warning."""
        if not told:
            return
        some = "; ".join([*told.values()][:TOLD_MAX]) + (f"; and {len(told) - TOLD_MAX} more" * (len(told) > TOLD_MAX))
        if self._options.fail_on_data_loss:
            raise DataLost(f"records are gone that the query had to read, or may be: {some}. {edges.REMEDY}")
        _log.warning("Reading what there is: records are gone, or may be", lost=some)

    def _spans(self, begin: Offsets, stop: Offsets) -> list[OffsetRange]:
        """What lies between. A new partition is read from its beginning, and so is one whose offset goes back."""
        goes_back = () if self._opening else tuple(one for one, at in stop.items() if at < begin.get(one, at))
        fresh = (*unknown_in(begin, stop), *goes_back)
        if fresh:
            begin = {**begin, **self._asked.earliest(self._asked.existing(fresh))}
        return [
            OffsetRange(one.topic, one.partition, begin[one], at)
            for one, at in sorted(stop.items())
            if begin.get(one, at) < at
        ]

    def _waits(self, waiting: int, limit: ReadLimit) -> bool:
        """Fewer than minOffsetsPerTrigger, and the last batch is not yet maxTriggerDelay ago."""
        least, now = self._options.offsets_per_trigger_min, time.monotonic()
        if least is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        late = self._batch_at is None or now - self._batch_at >= self._options.trigger_delay_max_ms / 1000
        if waiting < least and not late:
            return True
        self._batch_at = now if waiting else self._batch_at
        return False
