"""kill -9 in every phase of a rebalance: generations are not given twice, nobody stale gets in. G1-G4, R15."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.chaos.daemon import Daemon
from tests.chaos.line import Line
from tests.chaos.requests import create_topic
from tests.simulation.member import Member, Trace

from rota.protocol.errors import ErrorCode

SETTLE_S_MAX = 60.0


class Clients:
    """Clients and their connections; all of them lose theirs when the broker crashes."""

    def __init__(self, daemon: Daemon, trace: Trace) -> None:
        self.daemon, self.trace = daemon, trace
        self.lines: dict[Member, Line] = {}

    def member(self, name: str, **more: Any) -> Member:
        return Member("g", self.trace, Random(name), **more)

    async def line(self, member: Member) -> Line:
        """Its own, opened anew when the last one broke."""
        line = self.lines.get(member)
        if line is None or line.is_cut:
            line = self.lines[member] = await self.daemon.line()
        return line

    async def send(self, member: Member, request: Any, version: int) -> Any:
        """Ask, and have the member hear the answer; None when the broker is gone."""
        answer = await (await self.line(member)).send(request, version)
        member.received(request, answer, time.monotonic())
        return answer

    async def step(self, member: Member) -> Any:
        return await self.send(member, *member.next(time.monotonic()))

    async def heartbeat(self, member: Member) -> ErrorCode:
        return ErrorCode((await self.send(member, member.heartbeat(), 4)).error_code)

    async def commit(self, member: Member, partition: int, generation: int) -> ErrorCode:
        answer = await self.send(member, member.commit_as(time.monotonic(), partition, generation), 8)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def settle(self, *members: Member) -> None:
        """Until all are in, and own everything between them."""

        def is_settled() -> bool:
            inside = all(member.state == "inside" for member in members)
            owned = sorted(partition for member in members for partition in member.owned)
            return inside and owned == list(range(3)) and len({member.generation for member in members}) == 1

        async with asyncio.timeout(SETTLE_S_MAX), asyncio.TaskGroup() as tasks:
            for member in members:
                tasks.create_task(self._until(member, is_settled))

    async def _until(self, member: Member, is_settled: Any) -> None:
        while not is_settled():
            if member.state == "inside":
                if await self.heartbeat(member) is ErrorCode.NONE:
                    await asyncio.sleep(0.005)
            else:
                await self.step(member)

    def end(self) -> None:
        for member in self.lines:
            member.claim(time.monotonic())


@pytest.fixture
async def clients(tmp_path: Path) -> Any:
    async with Daemon(tmp_path / "data") as daemon:
        await create_topic(await daemon.line(), partitions=4)
        clients = Clients(daemon, Trace())
        yield clients
        clients.end()
    clients.trace.check()


async def until_parked(clients: Clients, witness: Member) -> None:
    """The next member's join has arrived when one that is in is told of the rebalance."""
    request, version = witness.heartbeat(), 4
    line = await clients.line(witness)
    while (await line.send_request(request, version)).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
        await asyncio.sleep(0.002)


async def joining(clients: Clients, first: Member, second: Member) -> asyncio.Task[Any]:
    """`first` is in the group, the JoinGroup of `second` waits for it: the task that awaits its reply."""
    await clients.settle(first)
    await clients.step(second)  # is given its id
    parked = asyncio.create_task(clients.step(second))
    await until_parked(clients, first)
    return parked


async def test_killed_while_joins_are_parked(clients: Clients) -> None:
    first, second = clients.member("first"), clients.member("second")
    parked = await joining(clients, first, second)
    await clients.daemon.crash()
    assert await parked is None
    generation = first.generation
    assert await clients.heartbeat(first) is ErrorCode.NONE  # the rebalance is forgotten, its generation is not
    assert await clients.commit(first, 0, generation) is ErrorCode.NONE
    await clients.settle(first, second)
    assert first.generation > generation
    assert await clients.commit(first, 0, generation) is ErrorCode.ILLEGAL_GENERATION


async def test_killed_between_join_and_sync(clients: Clients) -> None:
    first, second = clients.member("first"), clients.member("second")
    parked = await joining(clients, first, second)
    before = first.generation
    await clients.send(first, first.join(), 9)
    await parked
    generation = second.generation
    assert (first.state, second.state, generation) == ("joined", "joined", before + 1)
    await clients.daemon.crash()
    assert await clients.commit(first, 0, before) is ErrorCode.ILLEGAL_GENERATION
    await clients.settle(first, second)
    assert first.generation >= generation


async def test_killed_while_a_sync_is_parked(clients: Clients) -> None:
    first, second = clients.member("first"), clients.member("second")
    parked = await joining(clients, first, second)
    await clients.send(first, first.join(), 9)
    await parked
    follower = second if first.members else first
    waits = asyncio.create_task(clients.step(follower))
    await asyncio.sleep(0.02)
    await clients.daemon.crash()
    assert await waits is None
    await clients.settle(first, second)


async def test_a_static_member_keeps_its_part(clients: Clients) -> None:
    first, second = clients.member("first", instance="i-1"), clients.member("second", instance="i-2")
    await clients.settle(first, second)
    await clients.daemon.crash()
    assert await clients.heartbeat(first) is ErrorCode.NONE
    first.claim(time.monotonic())
    again = clients.member("again", instance="i-1")
    await clients.step(again)
    await clients.step(again)
    assert (again.generation, again.owned) == (first.generation, first.owned)
    assert again.member_id != first.member_id
    line = await clients.line(first)
    assert (await line.send_request(first.heartbeat(), 4)).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert await clients.heartbeat(second) is ErrorCode.NONE
    first.owned = ()
    await clients.daemon.crash()
    assert await clients.heartbeat(again) is ErrorCode.NONE
    assert (
        await (await clients.line(first)).send_request(first.heartbeat(), 4)
    ).error_code == ErrorCode.FENCED_INSTANCE_ID


async def live(clients: Clients, member: Member, random: Random) -> None:
    """Until the broker dies, be it while the connection is opened. Whoever left comes back as somebody else."""
    try:
        line = await clients.line(member)
    except ConnectionError:
        return
    while not line.is_cut:
        if member.state == "left":
            member.member_id, member.state = "", "outside"
        await clients.step(member)
        await asyncio.sleep(random.random() / 100)


async def test_a_broker_that_is_dead_before_a_member_connects_is_no_failure(clients: Clients) -> None:
    member = clients.member("late")
    clients.daemon.kill()
    await live(clients, member, Random(1))
    await clients.daemon.start()
    await clients.settle(member)


async def test_members_join_and_leave_while_brokers_die(seed: int, clients: Clients) -> None:
    random = Random(seed)
    members = [clients.member(f"{seed}-{at}", session_ms=1_500, instance="i" if at == 0 else None) for at in range(4)]
    for _ in range(4):
        async with asyncio.TaskGroup() as tasks:
            for member in members:
                tasks.create_task(live(clients, member, random))
            await asyncio.sleep(0.05 + random.random() / 3)
            clients.daemon.kill()
        await clients.daemon.start()
    await clients.settle(*members)
    assert len(clients.trace.answers) >= len(members)
