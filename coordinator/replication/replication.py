"""Replication on one broker: a fetcher for each leader, as the image of the cluster says; lag of followers.

Laws
    RP1 A partition that follows is copied by exactly one fetcher, that of its leader; one that leads, has no leader or
        is offline, by none: the leader's fetch session forgets how far a log that failed had come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata.changes import (
    BrokersChanged,
    Change,
    PartitionsChanged,
)
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.replica.partition import Partition, TimerService
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.replica.state import Role
from rota.coordinator.replication.fetch_session import Key
from rota.coordinator.replication.fetcher import Fetcher, FetchSettings
from rota.coordinator.replication.throttles import follower_throttle
from rota.coordinator.security.broker_connections import connect_to_broker, security_between_brokers
from rota.protocol.messages.fetch import ReplicaState
from rota.transport.connection import Connection
from rota.transport.errors import Unreachable

SETUP_SECONDS: Final = 2.0  # of a connection between brokers
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class Replication:
    """Copies the partitions that this broker follows, from `start` to `stop`.

    Create it after `partitions`, whose listeners of the image must be called first. `on_unreachable` is called with the
    id of a broker to which no connection could be opened, or whose connection was lost. Raises ConfigRefused when the
    settings of the inter-broker listener cannot be used.
    """

    def __init__(
        self,
        image: Image,
        partitions: Partitions,
        config: BrokerConfig,
        *,
        timers: TimerService,
        now_ms: Callable[[], int],
        on_unreachable: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._image, self._partitions, self._config = image, partitions, config
        self._timers, self._now_ms, self._on_unreachable = timers, now_ms, on_unreachable
        self._settings = fetch_settings(config)
        security_between_brokers(config)  # refused now, not at each connection
        self._throttle = follower_throttle(image, config, now_ms)
        self._fetchers: dict[tuple[int, int], Fetcher] = {}  # by leader and number
        self._assigned: dict[Key, Fetcher] = {}
        self._is_running = False
        image.on_change(self._changed)
        image.after_partitions_added(self._assign_added)
        image.after_partitions_removed(self._release_removed)

    def start(self) -> None:
        """Follow all partitions that are led elsewhere, and look for followers that lag."""
        self._is_running = True
        for topic in self._image:
            self._assign(topic, range(len(topic.partitions)))
        self._tick_later()

    def storage_changed(self, partition: Partition) -> None:
        """RP1. The log of that partition has failed, or is used again: with another end, perhaps."""
        topic = self._image.by_id(partition.topic_id)
        if self._is_running and topic is not None:
            self._assign(topic, (partition.index,))

    def reconfigure(self) -> None:
        """num.replica.fetchers may have changed: share the partitions among so many connections to each leader."""
        if self._is_running:
            for topic in self._image:
                self._assign(topic, range(len(topic.partitions)))

    async def stop(self) -> None:
        """Copy nothing more; connections are closed."""
        self._is_running = False
        self._timers.cancel("replication lag")
        fetchers, self._fetchers = list(self._fetchers.values()), {}
        self._assigned.clear()
        await asyncio.gather(*(fetcher.stop() for fetcher in fetchers))

    def _tick_later(self) -> None:
        half_ms = max(self._config.replica_lag_time_max_ms // 2, 1)
        self._timers.at("replication lag", self._now_ms() + half_ms, self._tick)

    def _tick(self) -> None:
        self._partitions.tick()
        self._tick_later()

    # ---- the image

    def _changed(self, change: Change) -> None:
        if not self._is_running:
            return
        match change:
            case PartitionsChanged(topic, indexes):
                self._assign(topic, indexes)
            case BrokersChanged():
                for fetcher in self._fetchers.values():
                    fetcher.retry()
            case _:
                pass

    def _assign_added(self, topic: Topic, states: Sequence[PartitionState]) -> Iterator[None]:
        """Copy new partitions; each step begins with one. Their states may be other ones by now."""
        for state in states:
            current = self._image.by_id(topic.topic_id)
            if not self._is_running or current is None:
                return
            self._assign_one(current, current.partitions[state.index])
            yield

    def _release_removed(self, topic: Topic, states: Sequence[PartitionState]) -> Iterator[None]:
        """Copy the partitions of a deleted topic no longer; each step releases one."""
        for state in states:
            self._release((topic.topic_id, state.index))
            yield

    def _assign(self, topic: Topic, indexes: Iterable[int]) -> None:
        for index in indexes:
            self._assign_one(topic, topic.partitions[index])

    def _assign_one(self, topic: Topic, state: PartitionState) -> None:
        key = (topic.topic_id, state.index)
        partition = self._partitions.get_by_id(*key)
        is_led_elsewhere = state.leader not in (-1, self._image.broker_id)
        if partition is None or not is_led_elsewhere or partition.state.role is not Role.FOLLOWER:
            self._release(key)
            return
        fetcher = self._fetcher(state.leader, state.index)
        if self._assigned.get(key) is not fetcher:
            self._release(key)
        self._assigned[key] = fetcher
        fetcher.follow(partition)

    def _release(self, key: Key) -> None:
        fetcher = self._assigned.pop(key, None)
        if fetcher is not None:
            fetcher.unfollow(key)

    # ---- fetchers

    def _fetcher(self, leader: int, index: int) -> Fetcher:
        number = index % self._config.num_replica_fetchers
        fetcher = self._fetchers.get((leader, number))
        if fetcher is None:
            fetcher = self._fetchers[leader, number] = Fetcher(
                leader,
                lambda: self._connect(leader, number),
                self._replica,
                self._settings,
                self._on_unreachable,
                self._throttle,
            )
        return fetcher

    def _replica(self) -> ReplicaState:
        return ReplicaState(replica_id=self._image.broker_id, replica_epoch=self._image.broker_epoch)

    def _ended(self, leader: int, connection: Connection) -> None:
        """Report a connection that has just broken: clients of that leader will request another leader at once."""
        if isinstance(connection.failure, Unreachable):
            self._on_unreachable(leader)

    async def _connect(self, leader: int, number: int) -> Connection:
        """Raises KafkaError."""
        return await connect_to_broker(
            leader,
            self._image.brokers,
            self._config,
            f"broker-{self._image.broker_id}-fetcher-{number}",
            setup_seconds=SETUP_SECONDS,
            request_seconds=self._settings.timeout_ms / 1000,
            ended=lambda connection: self._ended(leader, connection),
        )


def fetch_settings(config: BrokerConfig) -> FetchSettings:
    """Return the settings of the properties replica.fetch.*."""
    return FetchSettings(
        partition_bytes_max=config.replica_fetch_max_bytes,
        response_bytes_max=config.replica_fetch_response_max_bytes,
        bytes_min=config.replica_fetch_min_bytes,
        wait_ms_max=config.replica_fetch_wait_max_ms,
        backoff_ms_max=config.replica_fetch_backoff_ms,
        timeout_ms=config.replica_socket_timeout_ms,
        sends_high_watermark=config.replica_selector_class == RACK_AWARE,
    )
