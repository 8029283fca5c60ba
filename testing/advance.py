"""Moves the clock of brokers ahead: what would have happened meanwhile happens now.

Laws
    KT1 A live member is not removed by an advance: it has as much of its session and of a rebalance left as before. A
        member is live while its request waits or the connection of its last request is open. `expire_sessions` removes
        those whose session would have ended, also when heartbeats come between the steps of the advance.
    KT2 When an advance returns, retention has run on every partition, and offsets past their retention expire.
    KT6 Brokers that do not run share the advance: one that starts again has the time of the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from rota.coordinator.broker import Broker
from rota.coordinator.consumer_group import steps as consumer_steps
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.group.machine import Group
from rota.coordinator.group.members import Member, pending_timer
from rota.coordinator.group.rebalance import JOIN, SYNC
from rota.coordinator.upkeep import ROUND_MS, ROUND_PARTITIONS_MAX
from rota.testing.hosted_broker import HostedBroker
from rota.testing.sessions import end_overdue, session_ends

OF_A_REBALANCE = (consumer_steps.REBALANCE, consumer_steps.JOIN, consumer_steps.SYNC)  # timers of the consumer protocol
TICKS_PER_STEP = 3  # of the loop: what timers began is under way afterwards


async def advance(hosted: Iterable[HostedBroker], by_ms: int, *, expire_sessions: bool = False) -> None:
    """Move the clocks of these brokers ahead by `by_ms`, mostly in one step.

    The other seconds are steps of one round of upkeep each, so that retention and compaction see every partition.
    Raises ValueError for a negative time.
    """
    everyone = list(hosted)
    ends = session_ends(_running(everyone)) if expire_sessions else []
    for step_ms in steps(by_ms, max((len(each.broker.partitions.all()) for each in _running(everyone)), default=0)):
        for each in _running(everyone):
            if not expire_sessions:
                _extend_sessions(each, step_ms)
            for connection in each.broker.listener.connections:
                connection.active = True  # else it would count as idle for all that time
        for each in everyone:
            each.clock.advance(step_ms)
        for each in _running(everyone):
            each.broker.timers.fire()
        end_overdue(ends)
        for _ in range(TICKS_PER_STEP):
            await asyncio.sleep(0)
        for broker in [each.broker for each in _running(everyone)]:  # one may be killed meanwhile
            await broker.upkeep.idle()


def _running(hosted: Iterable[HostedBroker]) -> list[HostedBroker]:
    return [each for each in hosted if each.is_running]


def steps(by_ms: int, partitions: int) -> Iterator[int]:
    """Split a time: a round of upkeep, one long step, then rounds of upkeep that see all partitions twice.

    A new broker has not looked for old records yet: the first round does. The sum is `by_ms`.
    """
    if by_ms < 0:
        raise ValueError(f"a clock cannot advance by {by_ms} ms")
    rounds = 2 * (partitions // ROUND_PARTITIONS_MAX + 2)
    long_ms = by_ms - (rounds + 1) * ROUND_MS
    if long_ms > 0:
        yield ROUND_MS
        yield long_ms
        by_ms = rounds * ROUND_MS
    while by_ms > 0:
        yield min(by_ms, ROUND_MS)
        by_ms -= ROUND_MS


def _extend_sessions(hosted: HostedBroker, by_ms: int) -> None:
    """KT1."""
    for group in hosted.broker.groups.machines():
        if group.consumer is not None:
            _extend_consumer(hosted, group, group.consumer, by_ms)
        live = [member for member in group.members if _is_live(hosted, group, member)]
        for member in live:
            member.deadline_ms += by_ms  # its timer fires earlier and is set again
        if live or group.members.pending:
            _postpone(hosted.broker, group, (JOIN, SYNC, *map(pending_timer, group.members.pending)), by_ms)


def _extend_consumer(hosted: HostedBroker, group: Group, members: ConsumerGroup, by_ms: int) -> None:
    for member_id in members.deadlines:
        if hosted.faults.is_connected(group.group_id, member_id):
            members.deadlines[member_id] += by_ms
            _postpone(hosted.broker, group, [timer + member_id for timer in OF_A_REBALANCE], by_ms)


def _is_live(hosted: HostedBroker, group: Group, member: Member) -> bool:
    waits = member.join is not None or member.sync is not None
    return waits or hosted.faults.is_connected(group.group_id, member.member_id)


def _postpone(broker: Broker, group: Group, keys: Iterable[str], by_ms: int) -> None:
    for key in keys:
        broker.timers.postpone(broker.groups.timer_key(group.group_id, key), by_ms)
