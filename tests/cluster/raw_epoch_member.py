"""A member of the consumer protocol (KIP-848) that heartbeats on demand, at whichever broker coordinates the group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from tests.cluster.brokers import Brokers
from tests.cluster.raw_member import RawMember

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

REBALANCE_MS: Final = 30_000


class RawEpochMember(RawMember):
    """`epoch` is that of the last response, `owned` the partitions of topic t that the member has taken over."""

    def __init__(self, brokers: Brokers, name: str, group: str = "g") -> None:
        super().__init__(brokers, name, group)
        self.member_id, self.epoch = name, 0
        self.owned: frozenset[int] = frozenset()
        self.target: frozenset[int] = frozenset()

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """All fields, as after a response that was lost."""
        owned = (
            (TopicPartitions(topic_id=self._topic_id(), partitions=tuple(sorted(self.owned))),) if self.owned else ()
        )
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=("t",),
            topic_partitions=owned,
        )

    async def heartbeat(self) -> ErrorCode:
        """One heartbeat; a new assignment becomes the target, and what is not in it is given up at once."""
        response: ConsumerGroupHeartbeatResponse = await self.send_request(self.request())
        if response.error_code == ErrorCode.NONE:
            assert response.member_epoch >= self.epoch, "epochs of a member only grow (G2)"
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.target = frozenset(
                    number for topic in response.assignment.topic_partitions for number in topic.partitions
                )
        return ErrorCode(response.error_code)

    def take_over(self) -> None:
        """Own the target."""
        self.owned = self.target


async def reconcile(members: Sequence[RawEpochMember], partitions: int) -> None:
    """Heartbeats until the members own all partitions in one epoch. At no time has a partition two owners (G1)."""
    async with asyncio.timeout(30):
        while True:
            for member in members:
                assert await member.heartbeat() is ErrorCode.NONE
                member.take_over()
                owned = [number for each in members for number in each.owned]
                assert len(owned) == len(set(owned)), "a partition has two owners"
            if len(owned) == partitions and len({member.epoch for member in members}) == 1:
                return
            await asyncio.sleep(0.01)
