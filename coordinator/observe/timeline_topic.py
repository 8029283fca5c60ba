"""The topic `__rota_group_timeline` in this broker: when it is created, and which of its partitions are led here.

Laws
    It is created with the first event of a group. In a cluster it has the partitions and the replicas of
    `__consumer_offsets`, so that one broker leads both; a broker alone needs one partition: 50 more logs would cost it
    20 ms with the first group and 10 ms at each start.
    TL9 In a cluster it gets the partitions that it lacks: a broker that was alone has become a member, or
        `__consumer_offsets` has more partitions than when the topic was created.
    TL1 A failed creation is logged once, and tried again with an event after RETRY_AFTER_MS. A stop waits for one at
        most STOP_WAIT_SECONDS: the events that wait for it are lost then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.metadata.changes import Change, PartitionsAdded, PartitionsChanged, TopicCreated, TopicDeleted
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, GROUP_TIMELINE, Refusal, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.observe.timeline import Timelines, TimelineStore
from rota.coordinator.observe.timeline_log import TimelineLog
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.runtime.coordinator import TimerService

log = structlog.get_logger("rota.timeline")

RETRY_AFTER_MS: Final = 10_000
STOP_WAIT_SECONDS: Final = 1.0
SEGMENT_BYTES: Final = 8 * 1024 * 1024


class TimelineTopic:
    """Creates the topic, and passes its leaderships on this broker to `timelines`."""

    def __init__(
        self,
        topics: Topics,
        partitions: Partitions,
        *,
        is_enabled: bool,
        is_cluster: bool,
        timers: TimerService,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tick_queue: Callable[[Callable[[], None]], object],
    ) -> None:
        """Without `is_enabled` the timelines are kept in memory alone, and the topic is left alone."""
        self._topics, self._partitions, self._now_ms = topics, partitions, now_ms
        self._is_cluster = is_cluster
        self._creation: asyncio.Task[Any] | None = None
        self._retry_ms: int | None = None  # a creation failed: not again before that time
        self._failure = ""
        topic = topics.get(GROUP_TIMELINE)
        self._log = TimelineLog(
            shards=1 if topic is None else len(topic.partitions),
            partition=self._partition,
            timers=timers,
            now_ms=now_ms,
            wall_ms=wall_ms,
            tick_queue=tick_queue,
            request_topic=self.request,
        )
        self._is_enabled = is_enabled
        self.timelines: TimelineStore = self._log if is_enabled else Timelines()
        if topic is not None:
            self._host(range(len(topic.partitions)))

    # ---- which partitions are led

    def changed(self, change: Change) -> None:
        """Take in a change of the cluster."""
        match change:
            case TopicCreated(topic) | PartitionsAdded(topic) if topic.name == GROUP_TIMELINE:
                self._host(range(len(topic.partitions)))
            case PartitionsChanged(topic, indexes) if topic.name == GROUP_TIMELINE:
                self._host(indexes)
                if self._topics.is_leader(topic.partitions[0]):  # one broker is enough
                    self.request()
            case TopicDeleted(topic) if topic.name == GROUP_TIMELINE:
                self.close()

    def storage_changed(self, partition: Partition) -> None:
        """A log failed, or was recovered."""
        if partition.topic != GROUP_TIMELINE or partition.index >= len(self._log.shards):
            return
        if partition.offline is not None:
            shard = self._log.shards[partition.index]
            self._log.storage_failed(shard, StorageFailed(partition.offline))
        else:
            self._host((partition.index,))

    def close(self) -> None:
        """Lead no partition any more."""
        for shard in self._log.shards:
            self._log.resign(shard.index)

    def _host(self, indexes: Iterable[int]) -> None:
        topic = self._topics.get(GROUP_TIMELINE)
        if topic is not None and len(topic.partitions) != len(self._log.shards):
            self._log.resize(len(topic.partitions))
        for index in indexes:
            state = self._topics.partition(GROUP_TIMELINE, index)
            is_here = self._is_enabled and self._partitions.get(GROUP_TIMELINE, index) is not None
            if is_here and state is not None and self._topics.is_leader(state):
                self._log.lead(index, state.leader_epoch)
            else:
                self._log.resign(index)

    def _partition(self, index: int) -> Partition:
        partition = self._partitions.get(GROUP_TIMELINE, index)
        if partition is None:
            raise StorageFailed(f"{GROUP_TIMELINE}-{index} does not live here")
        return partition

    # ---- creation

    def request(self) -> None:
        """Let the topic be created, or get the partitions that it lacks (TL9), unless that is being done."""
        if self._creation is not None or not self._is_enabled or self._is_complete():
            return
        if self._retry_ms is not None and self._now_ms() < self._retry_ms:
            return
        self._creation = asyncio.ensure_future(self._create())

    async def _create(self) -> None:
        try:
            refusal = await self._create_topic()
        except StoreFailed as failure:
            refusal = str(failure)
        except Exception as mistake:  # noqa: BLE001  # whatever it is: the next event must not try again at once
            refusal = repr(mistake)
        finally:
            self._creation = None
        if refusal is not None:
            self._retry_ms = self._now_ms() + RETRY_AFTER_MS
            if refusal != self._failure:
                self._failure = refusal
                log.warning("Timeline topic could not be created or extended; events wait in memory", reason=refusal)

    def _is_complete(self) -> bool:
        topic, offsets = self._topics.get(GROUP_TIMELINE), self._topics.get(CONSUMER_OFFSETS)
        if topic is None:
            return False
        return not self._is_cluster or offsets is None or len(topic.partitions) >= len(offsets.partitions)

    async def _create_topic(self) -> str | None:
        offsets, topic = self._topics.get(CONSUMER_OFFSETS), self._topics.get(GROUP_TIMELINE)
        if offsets is None:
            return f"{CONSUMER_OFFSETS} does not exist"
        if topic is not None:
            return await self._add_partitions(topic, offsets)
        placed = offsets.partitions if self._is_cluster else offsets.partitions[:1]
        created = await self._topics.create(
            GROUP_TIMELINE,
            assignment=[(state.index, state.replicas) for state in placed],
            configs={"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)},
        )
        return created.message if isinstance(created, Refusal) and GROUP_TIMELINE not in self._topics else None

    async def _add_partitions(self, topic: Topic, offsets: Topic) -> str | None:
        """TL9. Their replicas are those of `__consumer_offsets`, as many of them as the topic has."""
        count = topic.replication_factor
        replicas = [state.replicas[:count] for state in offsets.partitions[len(topic.partitions) :]]
        fits = all(len(each) == count for each in replicas)
        grown = await self._topics.add_partitions(GROUP_TIMELINE, len(offsets.partitions), replicas if fits else None)
        return grown.message if isinstance(grown, Refusal) and not self._is_complete() else None

    async def stop(self) -> None:
        """Wait shortly for a creation in progress, and write the events of this tick."""
        if self._creation is not None:
            creation = self._creation
            await asyncio.wait((creation,), timeout=STOP_WAIT_SECONDS)
            creation.cancel()
        self._log.flush()
