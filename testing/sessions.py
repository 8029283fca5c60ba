"""Ends sessions of members as if they had timed out, whatever heartbeats came meanwhile (KT1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.consumer_group.steps import SESSION
from rota.coordinator.group.events import MemberId
from rota.coordinator.group_coordinator import GroupShard
from rota.coordinator.runtime.contract import TimerFired
from rota.protocol.errors import ErrorCode
from rota.testing.hosted_broker import HostedBroker


class SessionEnd(NamedTuple):
    """When a member's session ends, in elapsed time of its coordinator."""

    hosted: HostedBroker
    group_id: str
    member_id: str
    deadline_ms: int


def session_ends(brokers: Iterable[HostedBroker]) -> list[SessionEnd]:
    """List the sessions of all members that these brokers coordinate."""
    return [
        SessionEnd(hosted, group.group_id, member_id, deadline_ms)
        for hosted in brokers
        for group in hosted.broker.groups.machines()
        for member_id, deadline_ms in _deadlines(group)
    ]


def end_overdue(ends: Iterable[SessionEnd]) -> None:
    """End those of these sessions whose time has passed. Members that left, and brokers that do not run, have none."""
    for end in ends:
        if not end.hosted.is_running or end.deadline_ms > end.hosted.broker.now_ms():
            continue
        shard = end.hosted.broker.groups.ready(end.group_id)
        if not isinstance(shard, ErrorCode) and (group := shard.machines.get(end.group_id)) is not None:
            end_session(end.hosted, shard, group, end.member_id)


def end_session(hosted: HostedBroker, shard: GroupShard, group: HostedGroup, member_id: str) -> None:
    """End a member's session now. A member that is not there, or whose request waits, stays as it is."""
    if group.consumer is not None:
        if member_id not in group.consumer.deadlines:
            return
        group.consumer.deadlines[member_id], timer = 0, SESSION + member_id
    else:
        member = group.members.get(MemberId(member_id))
        if member is None:
            return
        member.deadline_ms, timer = 0, member.timer
    broker = hosted.broker
    shard.perform(group, group.step(TimerFired(timer), broker.now_ms(), broker.wall_ms()))


def _deadlines(group: HostedGroup) -> Iterator[tuple[str, int]]:
    if group.consumer is not None:
        yield from group.consumer.deadlines.items()
    for member in group.members:
        yield member.member_id, member.deadline_ms
