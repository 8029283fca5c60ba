"""An administrator in a simulated cluster: topics are created, moved to other brokers and deleted while brokers die.

Laws, when everything has healed
    RA1  Each reassignment is completed or was never begun: no replica is being added or removed, all are in the ISR.
    IM1  Every broker has the same topics, with the same states, as the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from tests.chaos.line import Line

from rota.coordinator.metadata.topic import PartitionState
from rota.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.wire import UUID_ZERO

if TYPE_CHECKING:
    from tests.simulation.cluster_world import BrokerProcess, ClusterWorld

NAMES = ("x1", "x2", "x3")
PARTITIONS, REPLICAS = 2, 2
TIMEOUT_MS = 3_000


class Administrator:
    """Each method asks one broker for one thing, which may fail, or be done although the answer is lost."""

    def __init__(self, world: ClusterWorld, random: Random) -> None:
        self.world, self.random, self.answers = world, random, 0

    async def create(self) -> None:
        name = self.random.choice(NAMES)
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=REPLICAS)
        await self._send_request(f"create {name}", CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS), 7)

    async def delete(self) -> None:
        name = self.random.choice(NAMES)
        topics = (DeleteTopicState(name=name, topic_id=UUID_ZERO),)
        await self._send_request(f"delete {name}", DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 6)

    async def reassign(self) -> None:
        """Other replicas for one partition, more of them or fewer; or the end of such a reassignment."""
        name, index = self.random.choice(NAMES), self.random.randrange(PARTITIONS)
        brokers = sorted(self.world.brokers)
        target = tuple(self.random.sample(brokers, self.random.choice((1, 2, 2, 3))))
        replicas = None if self.random.random() < 0.2 else target
        partitions = (ReassignablePartition(partition_index=index, replicas=replicas),)
        topics = (ReassignableTopic(name=name, partitions=partitions),)
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics)
        await self._send_request(f"move {name}-{index} to {replicas}", request, 1)

    async def _send_request(self, what: str, request: Any, version: int) -> None:
        up = [process for process in self.world.brokers.values() if process.is_up]
        if not up:
            return
        await self.send_request_to(self.random.choice(up), what, request, version)

    async def send_request_to(self, process: BrokerProcess, what: str, request: Any, version: int) -> None:
        """Ask this broker; return when it has answered, or has not in time."""
        self.world.log_line(f"broker {process.broker_id} is asked to {what}")
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(TIMEOUT_MS / 1000):  # a broker that died silently never closes a connection
                line = await Line.open(f"{process.host}:{process.port}")
                try:
                    await line.send_request(request, version)
                    self.answers += 1
                finally:
                    line.abort()

    # ---- laws

    def unsettled(self) -> Iterator[str]:
        """The partitions of these topics that are not as they have to be in the end."""
        for name, state in self.world.named_states():
            if name in NAMES and (state.adding or state.removing or set(state.isr) != set(state.replicas)):
                yield f"{name}: {state}"

    def check_images(self) -> None:
        """IM1."""
        stored = _by_partition(self.world.named_states())
        for process in self.world.brokers.values():
            assert process.broker is not None
            image = ((topic.name, state) for topic in process.broker.topics for state in topic.partitions)
            assert _by_partition(image) == stored, f"IM1: the image of broker {process.broker_id} is not the store's"


def _by_partition(states: Iterator[tuple[str, PartitionState]]) -> dict[tuple[str, int], PartitionState]:
    return {(name, state.index): state for name, state in states}
