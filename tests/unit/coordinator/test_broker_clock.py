"""A whole broker whose clocks a test moves: a step of the wall clock harms no producer and no session (T5, T6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.chaos.line import Line
from tests.chaos.requests import commit, create_topic, produce, produced

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.scheduling.clock import Clock
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rota.protocol.records.record import Record, write_batch

DAY_S = 86_400
SESSION_MS = 10_000
START_S = 1_700_000_000.0
UPTIME_S = 5_000.0  # far from the epoch, so that the two clocks cannot be taken for each other
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.message.timestamp.before.max.ms": "3600000",
}


class World:
    """`after` lets time pass on both clocks; `step` moves the wall clock alone, as NTP or a resume does."""

    def __init__(self) -> None:
        self.wall_s, self.monotonic_s = START_S, UPTIME_S
        clock = Clock(lambda: self.wall_s, lambda: self.monotonic_s)
        self.broker = Broker(BrokerConfig(SETTINGS), memory=True, clock=clock)

    async def open(self) -> None:
        host, port = await self.broker.start()
        self.line = await Line.open(f"{host}:{port}")
        assert not (await self.line.send_request(FindCoordinatorRequest(key="g"), 2)).error_code
        await create_topic(self.line)

    async def close(self) -> None:
        await self.line.close()
        await self.broker.stop()

    def step(self, seconds: float) -> None:
        self.wall_s += seconds
        self.broker.timers.fire()

    def after(self, ms: int) -> None:
        self.monotonic_s += ms / 1000
        self.wall_s += ms / 1000
        self.broker.timers.fire()

    async def produce(self, at_s: float) -> ErrorCode:
        """The code of a record with that create time."""
        batch = write_batch([Record(0, int(at_s * 1000), None, b"v", ())])
        return produced(await self.line.send_request(produce(0, batch), 9))[0]

    async def join(self) -> JoinGroupResponse:
        """A group of one that has its assignment."""
        protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0"),)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            member_id="",
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=protocols,
        )
        waiting = self.line.send(request, 3)
        while not waiting.done():  # the rebalance ends by a timer
            self.after(1)
            await asyncio.sleep(0)
        joined: JoinGroupResponse = waiting.result()
        assert not joined.error_code
        shares = (SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all"),)
        synced = await self.line.send_request(
            SyncGroupRequest(
                group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=shares
            ),
            3,
        )
        assert not synced.error_code
        return joined

    async def heartbeat(self, member: JoinGroupResponse) -> ErrorCode:
        request = HeartbeatRequest(group_id="g", generation_id=member.generation_id, member_id=member.member_id)
        return ErrorCode((await self.line.send_request(request, 3)).error_code)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await world.open()
    yield world
    await world.close()


@pytest.mark.parametrize("step_s", [DAY_S, -DAY_S])
async def test_records_of_the_present_are_accepted_after_a_step_of_the_wall_clock(world: World, step_s: int) -> None:
    assert await world.produce(world.wall_s) is ErrorCode.NONE
    world.step(step_s)
    assert await world.produce(world.wall_s) is ErrorCode.NONE
    assert await world.produce(world.wall_s - step_s) is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("step_s", [DAY_S, -DAY_S])
async def test_a_step_of_the_wall_clock_neither_ends_a_session_nor_keeps_it(world: World, step_s: int) -> None:
    member = await world.join()
    world.step(step_s)
    assert await world.heartbeat(member) is ErrorCode.NONE
    world.after(SESSION_MS - 1)
    assert await world.heartbeat(member) is ErrorCode.NONE
    world.after(SESSION_MS)
    assert await world.heartbeat(member) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_commits_are_stamped_with_the_time_of_day(world: World) -> None:
    for offset, step_s in enumerate((0, DAY_S, -2 * DAY_S)):
        world.step(step_s)
        await world.line.send_request(commit("s", 0, offset), 8)
        (group,) = [group for group in world.broker.groups.machines() if group.group_id == "s"]
        assert group.offsets["t", 0].commit_ms == int(world.wall_s * 1000)


async def test_offsets_expire_by_the_time_of_day(world: World) -> None:
    await world.line.send_request(commit("s", 0, 1), 8)
    retention_ms = world.broker.config.offsets_retention_minutes * 60_000
    world.step(retention_ms / 1000 - 1)
    world.after(world.broker.config.offsets_retention_check_interval_ms)
    await asyncio.sleep(0)  # they expire at the end of a tick
    assert not [group for group in world.broker.groups.machines() if group.group_id == "s"]


async def test_a_group_keeps_the_time_of_day_at_which_its_state_began(world: World) -> None:
    await world.join()
    (group,) = [group for group in world.broker.groups.machines() if group.group_id == "g"]
    assert START_S * 1000 <= group.state_ms <= world.wall_s * 1000
