"""The partitions that live on this broker: a log for each, opened, closed and removed as the topics change.

Laws
    A1  A storage failure takes one partition offline, with its reason in the log, and harms no other.
    A3  A deleted topic's records never appear under a later topic of the same name.
    A4  Upkeep does at most a slice of work per call, so that nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rota.coordinator.log.contract import Log, LogConfig, StorageFailed
from rota.coordinator.metadata.changes import Change, ConfigChanged, PartitionsAdded, TopicCreated, TopicDeleted
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.replica.partition import FlushWorker, Partition, TimerService

__all__ = ["Partition", "Partitions"]

OpenLog = Callable[[Topic, int, LogConfig], Log]  # raises StorageFailed
ConfigOf = Callable[[Topic], LogConfig]
_DONE = object()


class Partitions:
    """`open_log` opens or creates the log of one partition; `config_of` says how a topic's logs are kept.

    `retention_every_ms` is log.retention.check.interval.ms: old records stay until the next look for them.
    """

    def __init__(
        self,
        topics: Topics,
        open_log: OpenLog,
        config_of: ConfigOf,
        *,
        retention_every_ms: int = 0,
        timers: TimerService | None = None,
        flush_worker: FlushWorker | None = None,
    ) -> None:
        self.topics = topics
        self._timers, self._flush_worker = timers, flush_worker
        self._open_log, self._config_of = open_log, config_of
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._upkeep: Iterator[Partition] = iter(())
        self._retention_every_ms = retention_every_ms
        self._retained_ms: int | None = None  # when the last round with retention began
        self._retains = False
        self._compaction: tuple[Partition, Iterator[None]] | None = None
        topics.on_change(self._changed)
        topics.on_place(self._host)

    def get(self, topic: str, index: int) -> Partition | None:
        """None when it does not live here."""
        return self._by_name.get((topic, index))

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        return self._by_id.get((topic_id, index))

    def all(self) -> list[Partition]:
        return list(self._by_name.values())

    def open(self) -> None:
        """Open the logs of all topics that are there (`Topics.load` comes first)."""
        for topic in self.topics:
            for _ in self._host(topic, topic.partitions):
                pass

    def maintain(self, now_ms: int, wall_ms: int, slice_partitions: int = 16) -> bool:
        """Retention and compaction of the next few partitions, or the next slice of a compaction under way.

        Rounds are counted in `now_ms` (elapsed time), the age of records in `wall_ms` (since the epoch).
        Call it again and again; True asks to be called again soon, because a compaction is not done.
        """
        if self._compaction is not None:
            return self._compact_on(*self._compaction)
        for _ in range(min(slice_partitions, len(self._by_name))):
            partition = next(self._upkeep, None)
            if partition is None:
                self._begin_round(now_ms)
                break
            if self._tend(partition, wall_ms):
                return True
        return False

    def flush(self) -> None:
        """Everything appended so far is on the medium when this returns, but for partitions that failed."""
        for partition in self.all():
            self._guard(partition, lambda log: log.flush())

    def close(self) -> None:
        """Close every log, in order; whoever still waits is told."""
        for partition in self.all():
            self._guard(partition, lambda log: log.close())
            partition.close()
        self._by_name.clear()
        self._by_id.clear()

    def _changed(self, change: Change) -> None:
        match change:
            case TopicCreated() | PartitionsAdded():
                pass  # their logs were opened when they were placed
            case TopicDeleted(topic):
                self._remove(topic)
            case ConfigChanged(topic):
                self._reconfigure(topic)

    def _host(self, topic: Topic, states: Sequence[PartitionState]) -> Iterator[None]:
        """Open the logs of the partitions that are placed here; each step opens one."""
        config = self._config_of(topic)
        for state in states:
            if self.topics.broker_id not in state.replicas:
                continue
            partition = self._opened(topic, state, config)
            self._by_name[topic.name, state.index] = partition
            self._by_id[topic.topic_id, state.index] = partition
            yield

    def _opened(self, topic: Topic, state: PartitionState, config: LogConfig) -> Partition:
        log: Log | None = None
        reason = ""
        try:
            log = self._open_log(topic, state.index, config)
            if config.flush_messages is not None:
                log.flush()  # what a crash has left was acknowledged; it must not be less readable than before
        except StorageFailed as error:
            reason = str(error)
        partition = Partition(
            topic.name,
            topic.topic_id,
            state.index,
            state.leader_epoch,
            log,
            broker_id=self.topics.broker_id,
            timers=self._timers,
            flush_worker=self._flush_worker,
        )
        if log is None:
            partition.fail(reason)
        return partition

    def _remove(self, topic: Topic) -> None:
        for state in topic.partitions:
            partition = self._by_name.pop((topic.name, state.index), None)
            if partition is None:
                continue
            del self._by_id[topic.topic_id, state.index]
            self._guard(partition, lambda log: log.destroy())
            partition.close()

    def _reconfigure(self, topic: Topic) -> None:
        config = self._config_of(topic)
        for state in topic.partitions:
            partition = self._by_name.get((topic.name, state.index))
            if partition is not None and partition.offline is None:
                partition.configure(config)

    def _begin_round(self, now_ms: int) -> None:
        self._upkeep = iter(self.all())
        if self._retained_ms is None:
            self._retained_ms = now_ms
        self._retains = now_ms - self._retained_ms >= self._retention_every_ms
        if self._retains:
            self._retained_ms = now_ms

    def _tend(self, partition: Partition, wall_ms: int) -> bool:
        """Whether a compaction began that is not done."""
        if self._retains:
            self._guard(partition, lambda log: log.retain(wall_ms))
            self._guard(partition, lambda _: partition.log_start_moved())
        if partition.offline is not None or not partition.log.config.compact:
            return False
        return self._compact_on(partition, partition.log.compact_slices(wall_ms))

    def _compact_on(self, partition: Partition, slices: Iterator[None]) -> bool:
        """One more slice; False when there was none left, or the partition went offline or away."""
        self._compaction = None

        def one_more(_: Log) -> None:
            if next(slices, _DONE) is not _DONE:
                self._compaction = partition, slices

        self._guard(partition, one_more)
        return self._is_compacting()

    def _is_compacting(self) -> bool:
        return self._compaction is not None

    def _guard(self, partition: Partition, work: Callable[[Log], object]) -> None:
        """Do something to the log of one partition; a failure takes that one offline."""
        if partition.offline is not None:
            return
        try:
            work(partition.log)
        except StorageFailed as error:
            partition.fail(str(error))
