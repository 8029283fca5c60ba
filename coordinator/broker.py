"""One broker: creates the parts and connects them. Only the command line and `testing` import it.

Laws
    It accepts no connection before its logs are open and its groups are loaded, or are being loaded.
    A graceful stop writes the clean-shutdown marker last, when all else is on the medium.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import structlog

from rota.coordinator.api.node import Node
from rota.coordinator.api.routes import routes
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.config.topic import TopicConfig
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group_coordinator import GroupCoordinator
from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.metadata.changes import Change, TopicCreated, TopicDeleted
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.producer_ids import ProducerIds
from rota.coordinator.metadata.registration import claim_controller, register
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, Refusal, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.network.connections import Connections
from rota.coordinator.network.listener import Listener
from rota.coordinator.replica.durability import Durability
from rota.coordinator.replica.fetch_sessions import FetchSessions
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.scheduling.clock import Clock
from rota.coordinator.scheduling.tick_queue import TickQueue
from rota.coordinator.scheduling.timers import Timers
from rota.coordinator.storage import Disk, Memory
from rota.coordinator.upkeep import Upkeep
from rota.protocol.errors import ErrorCode

log = structlog.get_logger("rota.broker")

LOAD_BEFORE_LISTENING_MS: Final = 150  # groups that come back this fast are never seen loading
GATHER_MS_MIN: Final = 5  # of the initial rebalance delay: clients that start together make one generation
MINUTE_MS: Final = 60_000
SEGMENT_BYTES_MIN: Final = 1 << 20  # of segment.bytes; offsets.topic.segment.bytes may say less


class Broker:
    """`async with Broker(config, memory=True) as broker: broker.address`. Or start and stop it by hand."""

    def __init__(self, config: BrokerConfig, *, memory: bool = False, clock: Clock | None = None) -> None:
        """`clock` is that of the operating system by default."""
        self.config = config
        self.address: tuple[str, int] = ("", 0)
        clock = clock or Clock()
        self.now_ms, self.wall_ms = clock.now_ms, clock.wall_ms
        self.storage: Disk | Memory = (
            Memory() if memory else Disk(Path(config.log_dirs[0]), node_id=config.node_id, wall_ms=self.wall_ms)
        )
        self.timers = Timers(self.now_ms)
        self.durability = Durability()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> tuple[str, int]:
        """Open the logs, bring the groups back, listen. The address of the first listener, with its real port.

        Raises StorageFailed (the data folder), StoreFailed (its metadata journal), CannotListen (an address).
        """
        async with AsyncExitStack() as undo:  # a start that fails lets go of all that it took
            undo.callback(self.storage.abandon)
            self.storage.open()
            self.store = EmbeddedStore(self.storage.store_path)
            undo.push_async_callback(self.store.close)
            undo.callback(self.timers.stop)
            await self._open()
            self.listener = Listener(self._connections(), self.timers, self.now_ms)
            bound = await self.listener.start(self.config.listens)
            undo.push_async_callback(self.listener.stop, 0)
            await self._register(self.config.advertises or bound)
            undo.pop_all()
        self.address = (bound[0].host, bound[0].port)
        self.upkeep.start()
        self._every(self.config.offsets_retention_check_interval_ms, self._expire_offsets)
        return self.address

    async def stop(self) -> None:
        """Accept no more, finish what is under way within rota.drain.timeout.ms, put everything on the medium."""
        cut_off = await self.listener.stop(self.config.rota_drain_timeout_ms)
        if cut_off:
            log.warning("Connections cut off after the drain timeout", connections=cut_off)
        await self.upkeep.stop()
        self.groups.flush()
        await self.durability.drained()
        self.durability.close()
        self.timers.stop()
        self.storage.begin_checkpoint()  # notes the high watermarks, which `storage.close` writes
        self.partitions.close()
        await self.store.close()
        if self.store.failed is not None:  # what the medium holds is read again: nothing on it counts as clean
            self.storage.abandon()
            raise StoreFailed(self.store.failed)
        self.storage.close()

    # ---- wiring

    async def _open(self) -> None:
        self.topics = Topics(
            self.store,
            broker_id=self.config.node_id,
            fresh_uuid=lambda: os.urandom(16),
            cluster_id=self.storage.cluster_id,
        )
        await self.topics.load()
        self.storage.identify(self.topics.cluster_id)
        if not self.storage.was_clean:
            await self.topics.bump_leader_epochs()
        self.partitions = Partitions(
            self.topics,
            self.storage.open_log,
            self._log_config,
            timers=self.timers,
            flush_worker=self.durability,
            begin_open=self.storage.begin_open,
            remove_log=self.storage.remove_log,
            on_storage=self._storage_changed,
        )
        self.storage.high_watermarks = self.partitions.high_watermarks
        self.partitions.open()
        self.upkeep = Upkeep(
            self.partitions,
            self.storage,
            self.durability,
            self.timers,
            self.now_ms,
            self.wall_ms,
            retention_every_ms=self.config.log_retention_check_interval_ms,
        )
        loop = asyncio.get_running_loop()
        self.tick_queue = TickQueue(loop.call_soon, loop.call_exception_handler)
        self.groups = self._coordinator()
        self.topics.on_change(self._changed)
        topic = self.topics.get(CONSUMER_OFFSETS)
        if topic is not None:
            self._lead_groups(topic)

    async def _register(self, endpoints: Sequence[Endpoint]) -> None:
        await register(self.store, self.config.node_id, endpoints, rack=self.config.broker_rack, wall_ms=self.wall_ms())
        await claim_controller(self.store, self.config.node_id, wall_ms=self.wall_ms())

    def _coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(
            shards=self._shards(),
            config=group_config(self.config),
            partition=self._offsets_partition,
            timers=self.timers,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            tick_queue=self.tick_queue,
            ensure_offsets_topic=self._ensure_offsets_topic,
            commit_timeout_ms=self.config.offsets_commit_timeout_ms,
        )

    def _connections(self) -> Connections:
        node = Node(
            config=self.config,
            topics=self.topics,
            partitions=self.partitions,
            groups=self.groups,
            producer_ids=ProducerIds(self.store, broker_id=self.config.node_id),
            fetch_sessions=FetchSessions(self.config.max_incremental_fetch_session_cache_slots),
            timers=self.timers,
            durability=self.durability,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
        )
        return Connections(node, routes(), self.tick_queue)

    def _log_config(self, topic: Topic) -> LogConfig:
        return TopicConfig(topic.configs, self.config).log_config()

    # ---- the offsets topic

    def _shards(self) -> int:
        topic = self.topics.get(CONSUMER_OFFSETS)
        return self.config.offsets_topic_num_partitions if topic is None else len(topic.partitions)

    def _offsets_partition(self, index: int) -> Partition:
        partition = self.partitions.get(CONSUMER_OFFSETS, index)
        if partition is None:
            raise StorageFailed(f"{CONSUMER_OFFSETS}-{index} does not live here")
        return partition

    def _storage_changed(self, partition: Partition) -> None:
        """A1. A log failed, or was recovered and may have lost its tail: the shard above forgets what it holds."""
        if partition.topic != CONSUMER_OFFSETS or partition.index >= len(self.groups.shards):
            return
        if partition.offline is not None:
            self.groups.storage_failed(self.groups.shards[partition.index], StorageFailed(partition.offline))
        else:
            self.groups.lead(partition.index, partition.leader_epoch)

    async def _ensure_offsets_topic(self) -> bool:
        """Create the topic unless it exists; False when that fails.

        A lone broker keeps one copy, whatever the replication factor says.
        """
        if CONSUMER_OFFSETS in self.topics:
            return True
        live = len(self.topics.brokers)
        copies = self.config.offsets_topic_replication_factor
        if copies > live:
            log.info("Offsets topic gets fewer replicas than configured", replicas=live, configured=copies)
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(max(self.config.offsets_topic_segment_bytes, SEGMENT_BYTES_MIN)),
        }
        partitions = self.config.offsets_topic_num_partitions
        try:
            created = await self.topics.create(CONSUMER_OFFSETS, partitions, min(copies, live), configs=configs)
        except StoreFailed as failure:
            created = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
        if isinstance(created, Refusal) and CONSUMER_OFFSETS not in self.topics:
            log.error("Offsets topic could not be created", reason=created.message)
        return CONSUMER_OFFSETS in self.topics

    def _lead_groups(self, topic: Topic) -> None:
        for partition in topic.partitions:
            self.groups.lead(partition.index, partition.leader_epoch)
        deadline_ms = self.now_ms() + LOAD_BEFORE_LISTENING_MS
        while not self.groups.load_slice() and self.now_ms() < deadline_ms:
            pass

    def _changed(self, change: Change) -> None:
        match change:
            case TopicCreated(topic) if topic.name == CONSUMER_OFFSETS:
                self._lead_groups(topic)
            case TopicDeleted(topic):
                self.groups.topics_deleted([(topic.name, topic.topic_id)])

    # ---- periodic work

    def _every(self, period_ms: int, call: Callable[[], Any]) -> None:
        def ring() -> None:
            self.timers.at(("broker", call.__name__), self.now_ms() + period_ms, ring)
            call()

        self.timers.at(("broker", call.__name__), self.now_ms() + period_ms, ring)

    def _expire_offsets(self) -> None:
        self.groups.expire_offsets(self.config.offsets_retention_minutes * MINUTE_MS)


def group_config(config: BrokerConfig) -> GroupConfig:
    """Return the settings of groups from those of the broker.

    Without an initial delay Kafka still gathers who comes within a few ms, as answers wait for the append linger.
    """
    return GroupConfig(
        group_size_max=config.group_max_size,
        initial_rebalance_delay_ms=max(config.group_initial_rebalance_delay_ms, GATHER_MS_MIN),
        session_min_ms=config.group_min_session_timeout_ms,
        session_max_ms=config.group_max_session_timeout_ms,
        offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
        record_bytes_max=config.message_max_bytes,
    )
