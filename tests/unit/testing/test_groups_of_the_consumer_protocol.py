"""The kit's assertions and faults on groups of the consumer protocol (KIP-848), with members of librdkafka."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from confluent_kafka import Consumer
from tests.unit.testing.clients import epoch_member, produce, take

from rota.testing import CommandRefused, RunningBroker

POLLS_MAX = 1_000  # of 10 ms


class Polled:
    """Polls members in a thread, so that they revoke what they have to, until the end of the block."""

    def __init__(self, *members: Consumer) -> None:
        self._members, self._is_over, self._pool = members, Event(), ThreadPoolExecutor(1)

    def __enter__(self) -> None:
        self._work = self._pool.submit(self._poll)

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._work.result()
        self._pool.shutdown()

    def _poll(self) -> None:
        while not self._is_over.is_set():
            for member in self._members:
                member.poll(0.01)


def test_settled_waits_for_a_later_epoch_and_the_timeline_has_the_moves(broker: RunningBroker) -> None:
    broker.create_topic("four", partitions=4)
    group, at = broker.group("epochs"), broker.bootstrap_servers
    with epoch_member(at, "epochs", "four", client_id="a") as first, Polled(first):
        assert group.settled(1) == {"a": [("four", index) for index in range(4)]}
        epoch = group.generation
        with epoch_member(at, "epochs", "four", client_id="b") as second, Polled(second):
            shares = group.settled(2, after=epoch)
            assert sorted(map(len, shares.values())) == [2, 2]
            names = [event["name"] for event in group.timeline()]
            assert names[-4:] == ["rebalance-started", "assigned", "reconciliation-started", "reconciled"]
            moves = group.timeline()[-3]["moves"]
            assert sorted((move["gained_count"], move["lost_count"]) for move in moves) == [(0, 2), (2, 0)]
            why = " ".join(group.why())
            assert "because member b (127.0.0.1) joined." in why
            assert "; the slowest to revoke some was member a (127.0.0.1), in " in why
    group.empty()


def test_a_rebalance_begins_now(broker: RunningBroker, topic: str) -> None:
    group = broker.group("begun")
    with epoch_member(broker.bootstrap_servers, "begun", topic, client_id="a") as member, Polled(member):
        group.settled(1)
        epoch = group.generation
        group.rebalance()
        assert group.settled(1, after=epoch) == {"a": [(topic, 0)]}
        assert group.generation == epoch + 1
        assert "the test kit was asked for a rebalance" in group.why()[0]
    group.empty()
    with pytest.raises(CommandRefused, match="has no members"):
        group.rebalance()


def test_a_member_expires_now_and_joins_again(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    with epoch_member(broker.bootstrap_servers, "expelled", topic, client_id="c") as member:
        take(member, 1)
        group = broker.group("expelled")
        group.settled(1)
        epoch = group.generation
        with pytest.raises(CommandRefused, match="0 members are 'nobody'"):
            group.expire("nobody")
        with Polled(member):
            group.expire("c")
            group.settled(1, after=epoch + 1)
        names = [event["name"] for event in group.timeline()]
        assert names[names.index("member-expired") :][:2] == ["member-expired", "rebalance-started"]


def test_an_advance_leaves_a_live_member_its_session_and_its_time_to_revoke(broker: RunningBroker) -> None:
    broker.create_topic("kept", partitions=2)
    group, at = broker.group("kept"), broker.bootstrap_servers
    with epoch_member(at, "kept", "kept", client_id="a", revokes_in_poll=True) as first:
        with Polled(first):
            group.settled(1)
            broker.advance(days=2)
            assert group.settled(1, after=-1) == {"a": [("kept", 0), ("kept", 1)]}
        epoch = group.generation  # `a` does not poll from here on, and so keeps what it has to revoke
        with epoch_member(at, "kept", "kept", client_id="b") as second:
            _poll_until(second, lambda: group.timeline()[-1]["name"] == "reconciliation-started")
            with broker.faults.delay(1, "ConsumerGroupHeartbeat", "a") as heartbeats:
                _poll_until(second, lambda: heartbeats.hits >= 2)  # it knows what it has to revoke
            broker.advance(minutes=30)
            assert [each["client_id"] for each in group.describe()["members"]].count("a") == 1
            with Polled(first, second):
                assert sorted(map(len, group.settled(2, after=epoch).values())) == [1, 1]
    names = [event["name"] for event in group.timeline()]
    assert {"member-expired", "members-not-revoked"}.isdisjoint(names)


def test_every_member_expires_on_request(broker: RunningBroker, topic: str) -> None:
    group = broker.group("over")
    with epoch_member(broker.bootstrap_servers, "over", topic) as member, Polled(member):
        group.settled(1)
        broker.advance(minutes=1, expire_sessions=True)
        assert "member-expired" in [event["name"] for event in group.timeline()]


def _poll_until(member: Consumer, condition: Callable[[], bool]) -> None:
    for _ in range(POLLS_MAX):
        member.poll(0.01)
        if condition():
            return
    raise AssertionError("it did not happen")
