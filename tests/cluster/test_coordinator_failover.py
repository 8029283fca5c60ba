"""R15: a coordinator dies in each of the five stages of a rebalance; the group ends up correct."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.cluster.brokers import Brokers, until
from tests.cluster.raw_member import RawMember, join_all, settle

from rota.protocol.errors import ErrorCode

REFUSED = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)


class Group:
    """Two members, stable in one generation, and a third one that may come."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.a, self.b, self.c = (RawMember(brokers, name) for name in "abc")
        self.pending: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        broker = self.brokers.by_id[1]
        await broker.topics.create("t", 1, 3)
        assert await broker.groups.ensure_topic()
        await until(lambda: self.brokers.coordinator("g") > 0)
        await settle([self.a, self.b])

    async def crash(self) -> None:
        victim = self.brokers.coordinator("g")
        await self.brokers.crash(victim)
        await until(lambda: self.brokers.coordinator("g") not in (-1, victim), "a new coordinator")

    def begin(self, work: Awaitable[object]) -> None:
        """Do something beside the crash."""

        async def run() -> None:
            await work

        self.pending.append(asyncio.create_task(run()))

    async def coordinator_knows(self, condition: Callable[[], bool]) -> None:
        await until(condition, "the coordinator")

    async def finished(self) -> None:
        for task in self.pending:
            task.cancel()
        await asyncio.gather(*self.pending, return_exceptions=True)


@pytest.fixture
async def group() -> AsyncIterator[Group]:
    async with Brokers(3) as brokers:
        group = Group(brokers)
        await group.start()
        yield group
        await group.finished()


async def is_correct(members: list[RawMember], before: int) -> None:
    """One generation above `before`, one owner of each assignment; the generation before is refused (G1-G3)."""
    assert len({member.generation for member in members}) == 1
    assert len({member.assignment for member in members}) == len(members)
    for member in members:
        assert await member.heartbeat() is ErrorCode.NONE
        assert member.generation > before
        assert await member.heartbeat(before) in REFUSED
        assert await member.commit(before) in REFUSED
        assert await member.commit(member.generation) is ErrorCode.NONE


async def test_it_dies_when_the_trigger_is_noticed(group: Group) -> None:
    before = group.a.generation
    await group.b.leave()
    await group.crash()
    await settle([group.a])
    await is_correct([group.a], before)
    assert await group.b.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


async def test_it_dies_when_members_learn_of_the_rebalance(group: Group) -> None:
    before = group.a.generation
    group.begin(group.c.join())
    async with asyncio.timeout(10):
        while await group.a.heartbeat() is not ErrorCode.REBALANCE_IN_PROGRESS:
            pass
    await group.crash()
    await group.finished()
    await settle([group.a, group.b, group.c])
    await is_correct([group.a, group.b, group.c], before)


async def test_it_dies_when_joins_arrive(group: Group) -> None:
    before = group.a.generation
    group.begin(group.c.join())
    async with asyncio.timeout(10):
        while await group.a.heartbeat() is not ErrorCode.REBALANCE_IN_PROGRESS:
            pass
    group.begin(group.a.join())
    machine = group.brokers.group("g")
    await until(lambda: machine.members.awaiting_join > 1)
    await group.crash()
    await group.finished()
    await settle([group.a, group.b, group.c])
    await is_correct([group.a, group.b, group.c], before)


async def test_it_dies_when_generation_and_assignment_are_written(group: Group) -> None:
    before = group.a.generation
    members = [group.a, group.b, group.c]
    leader = await join_all(members)
    group.begin(leader.send_request_once(leader.sync_request()))
    machine, generation = group.brokers.group("g"), leader.generation
    await until(lambda: any(member.assignment for member in machine.members))
    await group.crash()
    await group.finished()
    assert generation > before
    await settle(members)
    await is_correct(members, before)


async def test_it_dies_when_answers_are_sent(group: Group) -> None:
    """The assignment is committed: members fetch it from the new coordinator and need not join again."""
    before = group.a.generation
    members = [group.a, group.b, group.c]
    leader = await join_all(members)
    generation = leader.generation
    assert await leader.sync() is ErrorCode.NONE
    await group.crash()
    for member in members:
        assert await member.sync() is ErrorCode.NONE
        assert member.generation == generation
    await is_correct(members, before)
