"""A coordinator dies under a group of the consumer protocol (KIP-848): the broker that follows has the group."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.cluster.brokers import Brokers, until
from tests.cluster.raw_epoch_member import RawEpochMember, reconcile

from rota.protocol.errors import ErrorCode

PARTITIONS = 6


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    async with Brokers(3) as brokers:
        broker = brokers.by_id[1]
        await broker.topics.create("t", PARTITIONS, 3)
        assert await broker.groups.ensure_topic()
        await until(lambda: brokers.coordinator("g") > 0, "a coordinator")
        yield brokers


async def crash_the_coordinator(brokers: Brokers) -> None:
    victim = brokers.coordinator("g")
    await brokers.crash(victim)
    await until(lambda: brokers.coordinator("g") not in (-1, victim), "a new coordinator")


async def test_members_keep_epochs_partitions_and_offsets(brokers: Brokers) -> None:
    a, b = RawEpochMember(brokers, "a"), RawEpochMember(brokers, "b")
    await reconcile([a, b], PARTITIONS)
    before = {member.name: (member.epoch, member.owned) for member in (a, b)}
    assert await a.commit(a.epoch) is ErrorCode.NONE
    await crash_the_coordinator(brokers)
    for member in (a, b):
        member.target = frozenset()  # the response to a full heartbeat has the assignment
        assert await member.heartbeat() is ErrorCode.NONE
        assert (member.epoch, member.target) == before[member.name]
        assert await member.commit(member.epoch) is ErrorCode.NONE
        assert await member.commit(member.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH


async def test_a_reconciliation_goes_on(brokers: Brokers) -> None:
    """A third member has joined, and what it is to get was not yet revoked when the coordinator died."""
    a, b, c = (RawEpochMember(brokers, name) for name in "abc")
    await reconcile([a, b], PARTITIONS)
    epoch = a.epoch
    while not a.owned - a.target:
        assert await c.heartbeat() is ErrorCode.NONE
        assert not c.target, "nothing is free yet"
        assert await a.heartbeat() is ErrorCode.NONE
    await crash_the_coordinator(brokers)
    await reconcile([a, b, c], PARTITIONS)
    assert a.epoch > epoch
    assert [len(member.owned) for member in (a, b, c)] == [2, 2, 2]


async def test_a_member_that_left_is_not_back(brokers: Brokers) -> None:
    a, b = RawEpochMember(brokers, "a"), RawEpochMember(brokers, "b")
    await reconcile([a, b], PARTITIONS)
    b.epoch, b.owned, former = -1, frozenset(), b.epoch
    await b.send_request(b.request())
    await crash_the_coordinator(brokers)
    await reconcile([a], PARTITIONS)
    assert await b.commit(former) is ErrorCode.UNKNOWN_MEMBER_ID
