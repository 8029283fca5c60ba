"""The replicas of partitions on this broker: their logs are opened, closed, reopened and removed as the topics change.

Laws
    A1  A storage failure takes one partition offline, with its reason in the log, and does not affect the others. Its
        log is reopened with recovery, with growing waits, until the partition is online in a new leader epoch.
    R1  A replica whose log has failed leaves the ISR, and stops leading, before its log is used again: recovery may
        have lost records that were acknowledged. It stays in the ISR only if it is the last member.
    RE3  A partition leads, follows or is removed according to the image of the cluster.
    RE4  A broker leads only partitions for which it was elected in its current registration: a broker that has lost its
        registration stops leading all partitions at once.
    A3  A deleted topic's records never appear under a later topic of the same name.
    A10 At the start of a member of a cluster, logs of partitions that the image does not place here are renamed, never
        deleted: their topics were deleted, or their replicas moved, while the broker was down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

import structlog

from rota.coordinator.log.contract import Log, LogConfig, StorageFailed
from rota.coordinator.metadata.changes import (
    BrokersChanged,
    Change,
    ConfigChanged,
    ControllerChanged,
    PartitionsAdded,
    PartitionsChanged,
    ResourceConfigChanged,
    TopicCreated,
    TopicDeleted,
)
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.replica.failed_logs import FailedLogs, NoteFailed, PartitionHandOver
from rota.coordinator.replica.partition import FlushWorker, IsrWriter, Partition, TimerService
from rota.coordinator.replica.retry_wait import RetryWaits
from rota.coordinator.replica.state import REPLICA_LAG_MS_MAX

__all__ = ["Partition", "Partitions"]

REOPEN_AFTER_MS: Final = 1_000  # after a partition went offline; doubled after each failed attempt
REOPEN_AFTER_MS_MAX: Final = 60_000
NO_LEADER: Final = -1
REOPENING_MAX: Final = 4  # logs that are recovered at the same time

OpenLog = Callable[[Topic, int, LogConfig], Log]  # raises StorageFailed
ConfigOf = Callable[[Topic], LogConfig]
PartitionKey = tuple[str, int]

logger = structlog.get_logger("rota.partitions")


class LogOpening(Protocol):
    """The opening of one log: it begins and finishes on the loop and runs in a thread."""

    def run(self) -> None:
        """Open and recover the log. Raises StorageFailed."""

    @property
    def log_end_offset(self) -> int:
        """The end of the log after `run`."""

    @property
    def high_watermark_before(self) -> int:
        """The high watermark that the checkpoint has; 0 without one."""

    def finish(self) -> Log:
        """The log."""


BeginOpen = Callable[[Topic, int, LogConfig], LogOpening]
RemoveLog = Callable[[Topic, int], None]  # raises StorageFailed


SetStraysAside = Callable[[Container[PartitionKey]], Mapping[PartitionKey, str]]  # raises StorageFailed


class Partitions:
    """`open_log` opens or creates the log of one partition; `config_of` returns the config of a topic's logs.

    `begin_open` does the same in three steps, for a log that has failed too; `remove_log` deletes a log, failed or not.
    `on_storage` is called when a partition was found offline, and when it was reopened.
    """

    def __init__(
        self,
        topics: Topics,
        open_log: OpenLog,
        config_of: ConfigOf,
        *,
        timers: TimerService | None = None,
        flush_worker: FlushWorker | None = None,
        begin_open: BeginOpen | None = None,
        remove_log: RemoveLog | None = None,
        on_storage: Callable[[Partition], None] = lambda _: None,
        isr_writer: IsrWriter | None = None,
        lag_ms_max: int = REPLICA_LAG_MS_MAX,
        now_ms: Callable[[], int] = lambda: 0,
        on_truncated: Callable[[Partition], None] = lambda _: None,
        hand_over: PartitionHandOver | None = None,
        set_strays_aside: SetStraysAside | None = None,
        note_failed: NoteFailed = lambda _: None,
        noted_as_failed: Collection[PartitionKey] = (),
    ) -> None:
        """`on_truncated` is called when a follower's log was truncated: its readers must replay it from the start.

        `hand_over` elects another member of a partition's ISR and removes this broker from it; None on a single broker.
        `set_strays_aside` renames the logs of partitions that are not placed here; None if the image may be incomplete.
        `note_failed` writes down which logs have failed, in any thread; `noted_as_failed` is what it wrote last.
        """
        self.topics = topics
        self._open_log, self._config_of, self._on_storage = open_log, config_of, on_storage
        self._begin_open, self._remove_log = begin_open, remove_log
        self._failed = FailedLogs(hand_over, on_storage, self._is_here, note_failed, noted_as_failed)
        self._set_strays_aside = set_strays_aside
        self._timers, self._flush_worker, self._isr_writer = timers, flush_worker, isr_writer
        self._lag_ms_max, self._now_ms, self._on_truncated = lag_ms_max, now_ms, on_truncated
        self._by_name: dict[PartitionKey, Partition] = {}
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._reopening: dict[PartitionKey, asyncio.Task[None]] = {}
        self._reopen_waits = RetryWaits[PartitionKey](REOPEN_AFTER_MS, REOPEN_AFTER_MS_MAX)
        topics.on_change(self._changed)
        topics.before_partitions_added(self._open)
        topics.after_partitions_removed(self._remove)

    def get(self, topic: str, index: int) -> Partition | None:
        """Return the replica of this broker, or None."""
        return self._by_name.get((topic, index))

    def _is_here(self, partition: Partition) -> bool:
        return self._by_id.get((partition.topic_id, partition.index)) is partition

    def known_end(self, key: tuple[str, int]) -> int:
        """Return the high watermark of the replica here of (topic, partition); -1 without one that can be read."""
        partition = self._by_name.get(key)
        return -1 if partition is None or partition.offline is not None else partition.high_watermark

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        return self._by_id.get((topic_id, index))

    @property
    def count(self) -> int:
        """The number of replicas here."""
        return len(self._by_id)

    def all(self) -> list[Partition]:
        return list(self._by_name.values())

    def high_watermarks(self) -> dict[PartitionKey, int]:
        """Return the high watermarks of the online partitions."""
        return {key: partition.high_watermark for key, partition in self._by_name.items() if partition.offline is None}

    def tick(self) -> None:
        """Remove followers that lag from the ISRs of their leaders. Call it every half of replica.lag.time.max.ms."""
        now_ms = self._now_ms()
        for partition in self.all():
            partition.tick(now_ms)

    def open(self) -> None:
        """Open the logs of all topics. Call `Topics.load` before."""
        for topic in self.topics:
            for _ in self._open(topic, topic.partitions):
                pass
        if self._set_strays_aside is not None:
            self._log_strays(self._set_strays_aside)

    def _log_strays(self, set_strays_aside: SetStraysAside) -> None:
        """A10."""
        try:
            for (name, index), folder in set_strays_aside(self._by_name).items():
                logger.warning("Stray log set aside", topic=name, partition=index, folder=folder)
        except StorageFailed as error:
            logger.warning("Stray logs could not be set aside", reason=str(error))

    def flush(self) -> None:
        """Flush all logs. Partitions whose flush fails go offline."""
        for partition in self.all():
            self._guard(partition, lambda log: log.flush())

    def reconfigure(self) -> None:
        """Apply changed broker settings to every log whose topic does not override them."""
        config_of: dict[frozenset[tuple[str, str]], LogConfig] = {}  # most topics have the same configs
        for topic in self.topics:
            own = frozenset(topic.configs.items())
            if own not in config_of:
                config_of[own] = self._config_of(topic)
            self._reconfigure(topic, config_of[own])

    def close(self) -> None:
        """Close every log; all waits are answered. Call `stop_reopening` before."""
        for partition in self.all():
            self._guard(partition, lambda log: log.close())
            partition.close()
        self._by_name.clear()
        self._by_id.clear()

    # ---- storage failures

    def reopen_failed(self, now_ms: int) -> None:
        """Begin to reopen the logs of offline partitions, at most REOPENING_MAX at a time, and leave all their ISRs.

        Call it periodically.
        """
        self._failed.found([partition for partition in self._by_name.values() if partition.offline is not None])
        for key, partition in self._by_name.items():
            if partition.offline is None or key in self._reopening or not self._reopen_waits.is_due(key, now_ms):
                continue
            if self.topics.by_id(partition.topic_id) is None:
                continue  # its log is about to be deleted
            if self._begin_open is None or len(self._reopening) >= REOPENING_MAX:
                return
            self._reopen_waits.delay(key, now_ms)
            self._reopening[key] = asyncio.get_running_loop().create_task(self._reopen(key, partition))

    async def stop_reopening(self) -> None:
        """Wait until no log is being reopened."""
        while tasks := [*self._reopening.values(), *self._failed.tasks]:
            await asyncio.wait(tasks)

    async def _reopen(self, key: PartitionKey, partition: Partition) -> None:
        name, index = key
        topic = self.topics.get(name)
        try:
            if topic is None or self._begin_open is None:
                return
            self._on_storage(partition)
            await self._failed.leave_isr(name, index)
            await self._recover(topic, partition, self._begin_open(topic, index, self._config_of(topic)))
        except (StorageFailed, StoreFailed) as error:
            logger.warning("Partition stays offline", topic=name, partition=index, reason=str(error))
            if isinstance(error, StorageFailed):
                await self._failed.give_way(name, index)
        finally:
            del self._reopening[key]
            if topic is not None and self._by_id.get((topic.topic_id, index)) is not partition:
                self._delete(topic, partition)

    async def _recover(self, topic: Topic, partition: Partition, opening: LogOpening) -> None:
        """Recover the log in a thread and take the partition online. Raises StorageFailed, StoreFailed."""
        await asyncio.to_thread(opening.run)
        end_before = max(partition.failed_log_end_offset, opening.high_watermark_before)
        lost_records = opening.log_end_offset < end_before
        # a fetch in flight at the failure may have added it to the ISR again
        await self._failed.leave_isr(topic.name, partition.index, lost_records=lost_records)
        placed = (self.topics.by_id(topic.topic_id) or topic).partitions[partition.index]
        if placed.leader == self.topics.broker_id:
            await self.topics.bump_leader_epoch(topic.name, partition.index)
        current = self.topics.by_id(topic.topic_id)
        if current is None:
            return  # it was deleted meanwhile
        log = opening.finish()
        log.config = self._config_of(current)
        self._failed.online_again(partition)
        partition.reopen(log, self._without_stale_leader(current.partitions[partition.index]), self._now_ms())
        fields = {"partition": partition.index, "leader_epoch": partition.leader_epoch}
        logger.info("Partition online again", topic=topic.name, **fields)
        self._on_storage(partition)

    # ---- topics

    def _changed(self, change: Change) -> None:
        match change:
            case TopicCreated(topic):
                self._place(topic, range(len(topic.partitions)))
            case PartitionsAdded(topic, before):
                self._place(topic, range(before, len(topic.partitions)))
            case PartitionsChanged(topic, indexes):
                self._place(topic, indexes)
            case BrokersChanged():
                for partition in list(self._by_id.values()):
                    partition.live_brokers_changed()
            case TopicDeleted() | ControllerChanged() | ResourceConfigChanged():
                pass
            case ConfigChanged(topic):
                self._reconfigure(topic, self._config_of(topic))

    def _place(self, topic: Topic, indexes: Iterable[int]) -> None:
        """RE3. Lead, follow, open or remove these partitions, as `topic` says."""
        for index in indexes:
            state = topic.partitions[index]
            partition = self._by_id.get((topic.topic_id, index))
            if self.topics.broker_id in state.replicas:
                if partition is None:
                    for _ in self._open(topic, (state,)):
                        pass
                elif not partition.is_placed_as(placed := self._without_stale_leader(state)):
                    partition.apply(placed, self._now_ms())
            elif partition is not None:
                self._drop(topic, index)

    def _without_stale_leader(self, state: PartitionState) -> PartitionState:
        """RE4. Return the state without a leader if the leader is this broker in an earlier registration."""
        if state.leader != self.topics.broker_id or self.topics.is_leader(state):
            return state
        return replace(state, leader=NO_LEADER)

    def _open(self, topic: Topic, states: Sequence[PartitionState]) -> Iterator[None]:
        """Open the logs of the partitions that are placed here; each step opens one."""
        config = self._config_of(topic)
        for state in states:
            if self.topics.broker_id not in state.replicas or (topic.topic_id, state.index) in self._by_id:
                continue
            partition = self._opened(topic, state, config)
            partition.on_truncated = partial(self._on_truncated, partition)
            self._by_name[topic.name, state.index] = partition
            self._by_id[topic.topic_id, state.index] = partition
            yield

    def _opened(self, topic: Topic, state: PartitionState, config: LogConfig) -> Partition:
        log: Log | None = None
        reason = "the log of a deleted topic of this name is still being recovered"
        if (topic.name, state.index) not in self._reopening:
            try:
                log = self._open_log(topic, state.index, config)
            except StorageFailed as error:
                reason = str(error)
        partition = Partition(
            topic.name,
            topic.topic_id,
            state.index,
            state.leader_epoch,
            log,
            broker_id=self.topics.broker_id,
            high_watermark=0 if log is None else log.high_watermark_checkpoint,
            timers=self._timers,
            flush_worker=self._flush_worker,
            isr_writer=self._isr_writer,
            lag_ms_max=self._lag_ms_max,
            placed=self._without_stale_leader(state),
            now_ms=self._now_ms(),
        )
        if log is None:
            partition.fail(reason)
        return partition

    def _remove(self, topic: Topic, states: Sequence[PartitionState]) -> Iterator[None]:
        """Delete the logs of these partitions of a deleted topic; each step deletes one."""
        for state in states:
            if self._drop(topic, state.index):
                yield

    def _drop(self, topic: Topic, index: int) -> bool:
        """Close the partition and delete its log. Return whether it was here."""
        partition = self._by_id.pop((topic.topic_id, index), None)
        if partition is None:
            return False
        if self._by_name.get((topic.name, index)) is partition:  # not of a later topic of this name
            del self._by_name[topic.name, index]
        if (topic.name, index) not in self._reopening:  # else it is deleted when that has ended
            self._delete(topic, partition)
        partition.close()
        return True

    def _delete(self, topic: Topic, partition: Partition) -> None:
        """Delete the log of a partition that is no longer placed here. A failure is logged and leaves files behind."""
        try:
            if self._remove_log is not None:
                self._remove_log(topic, partition.index)
            elif partition.offline is None:
                partition.log.destroy()
        except StorageFailed as error:
            logger.warning("Log could not be deleted", topic=topic.name, partition=partition.index, reason=str(error))

    def _reconfigure(self, topic: Topic, config: LogConfig) -> None:
        for state in topic.partitions:
            partition = self._by_name.get((topic.name, state.index))
            if partition is not None and partition.offline is None and partition.log.config != config:
                partition.configure(config)

    def _guard(self, partition: Partition, work: Callable[[Log], object]) -> None:
        """Call `work` with the log of a partition; a storage failure takes the partition offline."""
        if partition.offline is not None:
            return
        try:
            work(partition.log)
        except StorageFailed as error:
            partition.fail(str(error))
