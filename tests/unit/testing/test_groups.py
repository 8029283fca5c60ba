"""Assertions about groups, and the faults of their members."""

from __future__ import annotations

import pytest
from tests.unit.testing.clients import consumer, produce, take

from rota.testing import CommandRefused, NotInTime, RunningBroker


def test_settled_returns_the_partitions_of_each_member(broker: RunningBroker) -> None:
    broker.create_topic("two", partitions=2)
    group = broker.group("owners")
    with consumer(broker.bootstrap_servers, "owners", "two", client_id="a") as first:
        first.poll(0)
        assert group.settled(1) == {"a": [("two", 0), ("two", 1)]}
        generation = group.generation
        group.rebalance()
        while group.generation == generation:
            first.poll(0.01)
        assert group.settled(1, after=generation)
    group.empty()


def test_a_member_expires_now_and_joins_again(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    with consumer(broker.bootstrap_servers, "removed", topic, client_id="c") as member:
        take(member, 1)
        group = broker.group("removed")
        group.settled(1)
        generation = group.generation
        with pytest.raises(CommandRefused, match="0 members are 'nobody'"):
            group.expire("nobody")
        group.expire("c")
        group.empty()
        assert "member-expired" in [event["name"] for event in group.timeline()]
        assert "the session of member c (127.0.0.1) ended" in " ".join(group.why()), group.why()
        while group.generation <= generation + 1:
            member.poll(0.1)
        assert group.settled(1)


def test_a_timeout_raises_with_the_state_of_the_group(broker: RunningBroker) -> None:
    with pytest.raises(NotInTime, match=r'(?s)a stable group of 2 members.*"state"'):
        broker.group("nobody", within_s=0).settled(2)
    with pytest.raises(NotInTime, match="the offsets"):
        broker.group("nobody", within_s=0).committed({("t", 0): 5})


async def test_waiting_on_an_event_loop_is_refused(broker: RunningBroker) -> None:
    broker.group("nobody").empty()
    with pytest.raises(RuntimeError, match="to_thread"):
        broker.group("nobody").settled()
