"""Several real brokers on one event loop, with real sockets, over one shared metadata tree."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

from rota.coordinator.broker import Broker
from rota.coordinator.cluster import Cluster
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.group.machine import Group
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import Store
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.metadata.tree_session import TreeSession
from rota.coordinator.runtime.routing import shard_of

PATIENCE_SECONDS = 20
PROPERTIES = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}


async def until(condition: Callable[[], bool], why: str = "") -> None:
    """Wait until the condition holds. Raises TimeoutError."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise TimeoutError(why or "the condition never held") from None


def _has_received_from_all(broker: Broker) -> bool:
    cluster = broker.metadata
    assert isinstance(cluster, Cluster)
    assert cluster._swim is not None
    return all(member.last_received_ms is not None for member in cluster._swim.swim.members.values())


class Brokers:
    """`async with Brokers(3) as brokers`: brokers 1, 2 and 3 in memory."""

    def __init__(self, count: int, properties: Mapping[str, str] | None = None) -> None:
        self.tree = SharedTree()
        self.properties = {**PROPERTIES, **(properties or {})}
        self.ids = range(1, count + 1)
        self.by_id: dict[int, Broker] = {}
        self.sessions: dict[int, TreeSession] = {}

    async def __aenter__(self) -> Self:
        for broker_id in self.ids:
            await self.start(broker_id)
        await self.see_each_other()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for broker_id in list(self.by_id):
            await self.stop(broker_id)
        await self.tree.close()

    async def start(self, broker_id: int) -> Broker:
        config = BrokerConfig({**self.properties, "node.id": str(broker_id)})
        broker = self.by_id[broker_id] = Broker(config, memory=True, open_store=self._opener(broker_id))
        await broker.start()
        return broker

    async def stop(self, broker_id: int) -> None:
        await self.by_id.pop(broker_id).stop()

    async def crash(self, broker_id: int) -> None:
        """End a broker as SIGKILL does: its sockets close, it says nothing, its session lasts until it expires."""
        broker = self.by_id.pop(broker_id)
        self.sessions[broker_id].suspend()
        cluster = broker.metadata
        assert isinstance(cluster, Cluster)
        cluster._leaving = True
        if cluster._swim is not None:
            await cluster._swim.stop()
        for server in broker.listener._servers:
            server.close()
        for connection in list(broker.listener.connections._open):
            if connection._transport is not None:
                connection._transport.abort()
        for task in (cluster._controller._task, cluster._joining):
            if task is not None:
                task.cancel()
        if cluster._replication is not None:
            await cluster._replication.stop()
        await cluster._updater.close()
        await broker.http.stop()
        await broker.upkeep.stop()
        broker.timers.stop()

    async def see_each_other(self) -> None:
        """Wait until each broker has the others in its image, and its failure detector has heard them."""
        await until(lambda: all(set(b.topics.brokers) == set(self.by_id) for b in self.by_id.values()), "registrations")
        await until(lambda: all(_has_received_from_all(broker) for broker in self.by_id.values()), "failure detectors")

    def bootstrap(self, *broker_ids: int) -> str:
        """HOST:PORT,... of these brokers, or of all."""
        addresses = (self.by_id[broker_id].address for broker_id in broker_ids or self.by_id)
        return ",".join(f"{host}:{port}" for host, port in addresses)

    def leader(self, topic: str, index: int) -> int:
        """The leader that most brokers know; -1 for none."""
        known = [state.leader for b in self.by_id.values() if (state := b.topics.partition(topic, index)) is not None]
        return max(set(known), key=known.count) if known else -1

    def _opener(self, broker_id: int) -> Callable[[], Awaitable[Store]]:
        async def open_store() -> Store:
            session = self.sessions[broker_id] = TreeSession(self.tree)
            return session

        return open_store

    def high_watermarks(self, topic: str) -> int:
        """The sum over the partitions that are led."""
        return sum(
            partition.high_watermark
            for broker in self.by_id.values()
            for partition in broker.partitions.all()
            if partition.topic == topic and partition.is_leader
        )

    def coordinator(self, group_id: str) -> int:
        """The broker that coordinates the group, as most brokers know it."""
        count = len(next(iter(self.by_id.values())).groups.shards)
        return self.leader(CONSUMER_OFFSETS, shard_of(group_id, count))

    def group(self, group_id: str) -> Group:
        """The group, at its coordinator."""
        groups = self.by_id[self.coordinator(group_id)].groups
        return groups.group(groups.shards[shard_of(group_id, len(groups.shards))], group_id)
