"""Suspected and departed brokers, with a clock that only the test moves."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import StillLoop

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.lost_brokers import (
    CHECK_SLICE_MS,
    DEPARTED_MS,
    RECHECK_DELAY_MS,
    SUSPECT_MS_MAX,
    WAITING_MAX,
    LostBrokers,
)
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.timers import Timers


class World:
    """`leader` is the one that answers would name."""

    def __init__(self) -> None:
        self.now_ms, self.leader = 0, 2
        self.timers = Timers(lambda: self.now_ms, StillLoop())
        self.lost = LostBrokers(self.timers, lambda: self.now_ms)

    def wait(self) -> DelayedReply[bool]:
        return self.lost.wait(lambda: self.leader not in self.lost)

    def pass_ms(self, ms: int) -> None:
        for _ in range(ms):
            self.now_ms += 1
            self.timers.fire()


def registered(**epochs: int) -> dict[int, BrokerRegistration]:
    return {int(name[1:]): BrokerRegistration(broker_id=int(name[1:]), epoch=epoch) for name, epoch in epochs.items()}


@pytest.fixture
def world() -> World:
    return World()


def test_a_response_with_a_live_leader_waits_only_the_detection_time(world: World) -> None:
    reply = world.wait()
    world.pass_ms(RECHECK_DELAY_MS - 1)
    assert not reply.answered
    world.pass_ms(1)
    assert reply.answered


def test_a_suspicion_after_the_request_delays_the_response_until_the_election(world: World) -> None:
    reply = world.wait()
    world.pass_ms(RECHECK_DELAY_MS - 1)
    world.lost.suspect(2, 12)
    world.pass_ms(300)
    assert not reply.answered
    world.leader = 3
    world.lost.recheck_soon()
    world.pass_ms(RECHECK_DELAY_MS)
    assert reply.answered


def test_it_waits_no_longer_than_its_limit_and_for_each_life_once(world: World) -> None:
    """LB1."""
    world.lost.suspect(2, 12)
    reply = world.wait()
    world.pass_ms(SUSPECT_MS_MAX - 1)
    world.lost.suspect(2, 12)
    assert not reply.answered
    world.pass_ms(1)
    assert reply.answered
    world.lost.suspect(2, 12)
    assert 2 not in world.lost, "a suspicion that goes on does not begin anew"
    world.lost.suspect(2, 13)
    assert 2 in world.lost


def test_a_broker_that_answers_is_named_again(world: World) -> None:
    world.lost.suspect(2, 12)
    reply = world.wait()
    world.pass_ms(50)
    world.lost.trust(2)
    world.lost.trust(2)
    world.pass_ms(RECHECK_DELAY_MS)
    assert reply.answered
    world.lost.suspect(2, 12)
    assert 2 in world.lost


def test_a_broker_that_registers_again_is_not_lost(world: World) -> None:
    world.lost.brokers_changed(registered(b1=11, b2=12))
    world.lost.suspect(2, 12)
    world.lost.brokers_changed(registered(b1=11, b2=12))
    assert 2 in world.lost
    world.lost.brokers_changed(registered(b1=11, b2=20))
    assert 2 not in world.lost


def test_a_broker_that_has_left_is_listed_for_a_while(world: World) -> None:
    """LB2."""
    world.lost.brokers_changed(registered(b1=11, b2=12))
    assert world.lost.departed() == {}
    world.lost.brokers_changed(registered(b1=11))
    world.pass_ms(DEPARTED_MS - 1)
    world.lost.brokers_changed(registered(b1=11, b3=30))
    assert world.lost.departed() == registered(b2=12)
    world.pass_ms(1)
    assert world.lost.departed() == {}


def test_a_broker_that_is_back_is_not_listed_twice(world: World) -> None:
    world.lost.brokers_changed(registered(b2=12))
    world.lost.brokers_changed({})
    world.lost.brokers_changed(registered(b2=13))
    assert world.lost.departed() == {}


def test_a_client_that_disconnects_waits_no_more(world: World) -> None:
    reply = world.wait()
    reply.abandon()
    world.pass_ms(RECHECK_DELAY_MS)
    assert not reply.answered
    assert world.lost._waiting == {}


def test_answers_beyond_the_limit_are_given_at_once(world: World) -> None:
    replies = [world.wait() for _ in range(WAITING_MAX + 1)]
    assert [reply.answered for reply in replies[-2:]] == [False, True]
    world.pass_ms(RECHECK_DELAY_MS)
    assert all(reply.answered for reply in replies)


def test_many_long_answers_do_not_stop_the_event_loop(world: World) -> None:
    """LB3. Each takes 10 ms; those that still wait keep none of the others from being given."""

    def slow(is_settled: bool) -> bool:
        world.now_ms += 10
        return is_settled

    stuck = [world.lost.wait(lambda: slow(False)) for _ in range(10)]
    replies = [world.lost.wait(lambda: slow(True)) for _ in range(10)]
    while not all(reply.answered for reply in replies):
        answered, began_ms = sum(reply.answered for reply in replies), world.now_ms + RECHECK_DELAY_MS
        world.pass_ms(RECHECK_DELAY_MS)
        assert world.now_ms - began_ms <= CHECK_SLICE_MS + 10
        assert world.now_ms < 1_000, f"{answered} answers were given"
    assert not any(reply.answered for reply in stuck)
