"""KT1: an advance that ends sessions ends those of members that heartbeat meanwhile, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.chaos.line import Line
from tests.chaos.requests import create_topic

from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.consumer_group.steps import extend_deadline
from rota.coordinator.group.heartbeat import heartbeat
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rota.testing.advance import advance
from rota.testing.commands import Commands
from rota.testing.host import Host
from rota.testing.hosted_broker import HostedBroker
from rota.testing.sessions import end_overdue, session_ends

SESSION_MS = {"classic": 10_000, "consumer": 45_000}  # the latter is the broker's default
SUBSCRIPTION = b"\0\0" + b"\0" * 8
EVERY_MS = 500


async def classic_member(line: Line) -> str:
    """A classic group of one, in the state Stable."""
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS["classic"],
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    )
    joined = await line.send_request(join, 3)
    shares = (SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b""),)
    sync = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=shares
    )
    assert (await line.send_request(sync, 3)).error_code == ErrorCode.NONE
    return str(joined.member_id)


async def consumer_member(line: Line) -> str:
    """A group of the consumer protocol, of one member that has its partitions."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    assert (await line.send_request(request, 1)).error_code == ErrorCode.NONE
    return "m"


@asynccontextmanager
async def group_of_one(protocol: str) -> AsyncIterator[tuple[Host, HostedBroker, HostedGroup, str]]:
    host = Host({"group.initial.rebalance.delay.ms": "0"})
    await host.start()
    line = await Line.open(host.bootstrap)
    try:
        assert not (await line.send_request(FindCoordinatorRequest(key="g"), 2)).error_code
        await create_topic(line)
        member_id = await (classic_member if protocol == "classic" else consumer_member)(line)
        (group,) = host.get().broker.groups.machines()
        yield host, host.get(), group, member_id
    finally:
        await line.close()
        await host.stop()


def renew(hosted: HostedBroker, group: HostedGroup, member_id: str) -> None:
    """Renew the session in each turn of the timers, for as long as the member is there."""
    now_ms = hosted.broker.now_ms()
    if group.consumer is not None and member_id in group.consumer.members:
        extend_deadline(group.consumer, member_id, now_ms)
    elif group.consumer is None and member_id in group.members.by_id:
        assert heartbeat(group, group.members.by_id[member_id].member_id, None, group.generation, now_ms) == 0
    hosted.broker.timers.at("renewals", now_ms + EVERY_MS, lambda: renew(hosted, group, member_id))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_heartbeats_within_an_advance_prolong_no_session_that_shall_end(protocol: str) -> None:
    async with group_of_one(protocol) as (host, hosted, group, member_id):
        renew(hosted, group, member_id)
        await advance(host, SESSION_MS[protocol] - EVERY_MS, expire_sessions=True)
        assert group.summary.member_count == 1
        renew(hosted, group, member_id)
        await advance(host, SESSION_MS[protocol], expire_sessions=True)
        assert group.summary.member_count == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_member_that_leaves_and_a_broker_that_stops_have_no_session_to_end(protocol: str) -> None:
    async with group_of_one(protocol) as (host, hosted, _, member_id):
        ends = session_ends([hosted])
        assert [end.member_id for end in ends] == [member_id]
        await Commands(host).perform("expire_member", {"group": "g", "member": member_id})
        hosted.clock.advance(SESSION_MS[protocol])
        events = hosted.broker.groups.events_of("g")
        end_overdue(ends)
        assert hosted.broker.groups.events_of("g") == events
        await hosted.stop()
        end_overdue(ends)
