"""An internal topic whose partitions carry the machines of a coordinator: groups, transactional ids.

Law
    A shard is led exactly where its partition is led, and a standby is kept where the partition is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import structlog

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.metadata.changes import Change, PartitionsChanged, TopicCreated
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import Refusal, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.replica.partition import Partition, Watch
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.runtime.coordinator import CoordinatorRuntime
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

log = structlog.get_logger("rota.broker")

LOAD_BEFORE_LISTENING_MS: Final = 150  # machines that come back this fast are never seen loading
SEGMENT_BYTES_MIN: Final = 1 << 20  # of segment.bytes; the property of an internal topic may say less


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What an internal topic is created with; `min_isr` is at most the number of replicas, None for the default."""

    partitions: int
    replication_factor: int
    segment_bytes: int
    min_isr: int | None = None
    configs: tuple[tuple[str, str], ...] = ()


class HostedTopic:
    """Create it first, then the coordinator on it, then `host` that coordinator."""

    def __init__(
        self,
        name: str,
        settings: TopicSettings,
        topics: Topics,
        partitions: Partitions,
        *,
        node_id: int,
        replicas_for: Callable[[int], int],
        now_ms: Callable[[], int],
    ) -> None:
        """`replicas_for` returns the number of replicas from the configured replication factor."""
        self.name, self._settings, self._node_id = name, settings, node_id
        self._topics, self._partitions = topics, partitions
        self._replicas_for, self._now_ms = replicas_for, now_ms
        self._watched: dict[int, tuple[Partition, Watch]] = {}  # under standbys, by shard
        self._runtime: CoordinatorRuntime[Any]

    @property
    def shards(self) -> int:
        """The number of partitions, those of the settings before the topic exists."""
        topic = self._topics.get(self.name)
        return self._settings.partitions if topic is None else len(topic.partitions)

    def partition(self, index: int) -> Partition:
        """Return the partition under a shard. Raises StorageFailed."""
        found = self._partitions.get(self.name, index)
        if found is None:
            raise StorageFailed(f"{self.name}-{index} does not live here")
        return found

    def leader(self, index: int) -> int | None:
        """Return the broker that leads a partition; None while no broker does."""
        state = self._topics.partition(self.name, index)
        return None if state is None or state.leader not in self._topics.brokers else state.leader

    async def ensure(self) -> bool:
        """Create the topic unless it exists; False when that fails."""
        if self.name in self._topics:
            return True
        settings = self._settings
        copies = self._replicas_for(settings.replication_factor)
        configs = {
            "cleanup.policy": "compact",
            "segment.bytes": str(max(settings.segment_bytes, SEGMENT_BYTES_MIN)),
            **dict(settings.configs),
        }
        if settings.min_isr is not None:
            configs["min.insync.replicas"] = str(min(settings.min_isr, copies))
        try:
            created = await self._topics.create(self.name, settings.partitions, copies, configs=configs)
        except StoreFailed as failure:
            created = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
        if isinstance(created, Refusal) and self.name not in self._topics:
            log.error("Internal topic could not be created", topic=self.name, reason=created.message)
        return self.name in self._topics

    # ---- hosting

    def host(self, runtime: CoordinatorRuntime[Any]) -> None:
        """Let this coordinator lead and follow shards as the topic's partitions are led, from now on."""
        self._runtime = runtime
        topic = self._topics.get(self.name)
        if topic is not None:
            self._host_shards(topic)
            self._load()

    def changed(self, change: Change) -> None:
        """Follow a change of the metadata."""
        match change:
            case TopicCreated(topic) if topic.name == self.name:
                self._host_shards(topic)
                self._load()
            case PartitionsChanged(topic, indexes) if topic.name == self.name:
                self._host_shards(topic, indexes)

    def storage_changed(self, partition: Partition) -> None:
        """A1. A log failed, or was recovered and may have lost its tail: the shard of the partition drops its state."""
        if partition.topic != self.name or partition.index >= len(self._runtime.shards):
            return
        if partition.offline is not None:
            self._runtime.storage_failed(self._runtime.shards[partition.index], StorageFailed(partition.offline))
        else:
            self._host_shard(partition.index)

    def truncated(self, partition: Partition) -> None:
        """Restart the standby, which may have replayed records that its log has lost."""
        if partition.topic == self.name and self._runtime.is_standby(partition.index):
            self._runtime.follow(partition.index)

    def resign(self) -> None:
        """Write what is decided (CO9), then lead and follow no shard any more: their logs are being closed."""
        self._runtime.flush()
        for index in range(len(self._runtime.shards)):
            self._stop_watching(index)
            self._runtime.resign(index)

    def _host_shards(self, topic: Topic, indexes: Iterable[int] | None = None) -> None:
        """Lead, follow or drop the shards of these partitions, or of all."""
        self._runtime.resize(len(topic.partitions))
        for index in range(len(topic.partitions)) if indexes is None else indexes:
            self._host_shard(index)

    def _host_shard(self, index: int) -> None:
        """Lead the shard of a partition that this broker leads; keep a standby of one that it follows."""
        runtime = self._runtime
        state, partition = self._topics.partition(self.name, index), self._partitions.get(self.name, index)
        if state is None or partition is None:
            runtime.resign(index)
            self._stop_watching(index)
        elif self._topics.is_leader(state):
            self._stop_watching(index)
            runtime.lead(index, state.leader_epoch)
        else:
            was_leader = state.leader == self._node_id  # in an earlier registration
            runtime.resign(index, None if was_leader else state.leader_epoch)
            self._watch(partition)
            if not runtime.is_standby(index):
                runtime.follow(index)

    def _watch(self, partition: Partition) -> None:
        """Let a standby read on whenever the high watermark of its partition moves."""
        index = partition.index
        if index not in self._watched or self._watched[index][0] is not partition:
            self._stop_watching(index)
            self._watched[index] = partition, partition.watch(partial(self._runtime.log_grew, index))

    def _stop_watching(self, index: int) -> None:
        partition, watch = self._watched.pop(index, (None, None))
        if partition is not None and watch is not None:
            partition.unwatch(watch)

    def _load(self) -> None:
        """Load for a moment before the broker listens: machines that come back that fast are never seen loading."""
        deadline_ms = self._now_ms() + LOAD_BEFORE_LISTENING_MS
        while not self._runtime.load_slice() and self._now_ms() < deadline_ms:
            pass
