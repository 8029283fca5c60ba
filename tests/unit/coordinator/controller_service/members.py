"""Brokers of one cluster as their controllers see it: a shared tree, an image and a controller service for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Self

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.controller_service.requests import ClusterRequests
from rota.coordinator.controller_service.service import ControllerConfig, ControllerService
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.image_updater import ImageUpdater
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.metadata.tree_session import TreeSession
from rota.coordinator.scheduling.timers import Timers

TURNS_MAX = 2_000  # of the loop: a test waits for something that takes a few

_TOPIC_IDS = count(1)


async def until(condition: Callable[[], object]) -> None:
    """Let the tasks run until it is so."""
    for _ in range(TURNS_MAX):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come to that")


class Member:
    """One broker. `kill` ends its session without a word to its tasks' peers."""

    def __init__(self, cluster: Members, broker_id: int) -> None:
        self.cluster, self.broker_id = cluster, broker_id
        self.store = TreeSession(cluster.shared)
        self.is_frozen, self.pings = False, 0
        self.updater = ImageUpdater()
        self.topics = Topics(
            self.store,
            broker_id=broker_id,
            fresh_uuid=lambda: next(_TOPIC_IDS).to_bytes(16, "big"),
            watch=self.updater.changed,
        )
        self.timers = Timers(lambda: cluster.now_ms)
        self.service = ControllerService(
            self.topics,
            ControllerConfig(allows_unclean=lambda topic: topic.configs.get("unclean") == "true"),
            timers=self.timers,
            now_ms=lambda: cluster.now_ms,
            wall_ms=lambda: cluster.now_ms,
            ping_dead=self._ping_dead,
        )
        self.requests = ClusterRequests(self.topics)

    def _ping_dead(self) -> None:
        self.pings += 1

    async def start(self) -> None:
        await self.updater.follow(self.topics)
        await self.register()
        await self.updater.wait_until_applied()
        await self.service.start()

    async def register(self) -> None:
        endpoint = Endpoint("PLAINTEXT", "localhost", 9090 + self.broker_id)
        node = znodes.json_bytes({"version": 5, "endpoints": [str(endpoint)], "rack": None})
        await self.store.create(znodes.broker_path(self.broker_id), node, ephemeral=True)

    async def kill(self) -> None:
        """kill -9, noticed by the store."""
        await self.freeze()
        await self.store.close()

    async def freeze(self) -> None:
        """Stop its tasks; its session and what belongs to it live on."""
        self.is_frozen = True
        self.timers.stop()
        await self.updater.close()
        if self.service._task is not None:
            self.service._task.cancel()

    @property
    def epoch(self) -> int:
        """Of its registration."""
        return self.cluster.shared.tree.stat(znodes.broker_path(self.broker_id)).created


class Members:
    """`async with Members(3) as cluster: cluster[1]`. Time stands still but for `pass_ms`."""

    def __init__(self, brokers: int = 3) -> None:
        self.shared, self.now_ms = SharedTree(), 1_000
        self._ids = range(1, brokers + 1)
        self._members: dict[int, Member] = {}

    def __getitem__(self, broker_id: int) -> Member:
        return self._members[broker_id]

    async def __aenter__(self) -> Self:
        for broker_id in self._ids:
            await self.start(broker_id)
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in self._members.values():
            await member.kill()
        await self.shared.close()

    async def start(self, broker_id: int) -> Member:
        """Start a broker, also again."""
        member = self._members[broker_id] = Member(self, broker_id)
        await member.start()
        return member

    async def create(self, name: str = "t", *replicas: tuple[int, ...], **configs: str) -> Topic:
        """Create a topic with these replicas, and wait until each broker knows it."""
        topics = self._any().topics
        states = tuple(
            PartitionState(
                index=index,
                leader=ids[0],
                replicas=ids,
                isr=ids,
                leader_broker_epoch=topics.brokers[ids[0]].epoch,
            )
            for index, ids in enumerate(replicas or [(1, 2, 3)])
        )
        topic_id = next(_TOPIC_IDS).to_bytes(16, "big")
        topic = await topics.add(Topic(name=name, topic_id=topic_id, partitions=states, configs=configs))
        assert isinstance(topic, Topic)
        await self.wait_until_applied()
        return topic

    def state(self, name: str = "t", index: int = 0) -> PartitionState:
        """What the store has."""
        topic_data = self.shared.tree.nodes[znodes.topic_path(name)].data
        _, states = znodes.read_topic(topic_data)
        node = self.shared.tree.nodes[znodes.state_path(name, index)]
        return znodes.read_state(node.data, node.version, list(states)[index])

    async def write(self, name: str, state: PartitionState) -> None:
        """Set a state as a leader would."""
        await self._any().store.set(znodes.state_path(name, state.index), znodes.state_node(state), state.version)

    def controllers(self) -> list[int]:
        """The live brokers that take themselves for the controller."""
        members = self._members.items()
        return [broker_id for broker_id, m in members if m.service.is_controller and not m.is_frozen]

    async def wait_until_applied(self) -> None:
        """Wait until nothing changes any more."""
        idle, last = 0, -1
        while idle < 50:
            await asyncio.sleep(0)
            changed = self.shared.tree.last_change != last or any(
                member.updater._reads for member in self._members.values() if not member.is_frozen
            )
            idle, last = 0 if changed else idle + 1, self.shared.tree.last_change

    async def pass_ms(self, ms: int) -> None:
        """Let time pass, and what is due happen."""
        self.now_ms += ms
        for member in self._members.values():
            member.timers.fire()
        await self.wait_until_applied()

    def _any(self) -> Member:
        return next(m for m in self._members.values() if self.shared.is_open(m.store.session_id))
