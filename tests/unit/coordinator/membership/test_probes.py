"""Pings that wait, whose turn it is, local health."""

from __future__ import annotations

from random import Random

from rota.coordinator.membership.probes import (
    HEALTH_MAX,
    RELAYS_MAX,
    SEQUENCE_MAX,
    Health,
    Probes,
    Relay,
    Rotation,
    sample,
)


class TestProbes:
    def test_an_ack_ends_the_ping_that_it_answers_and_no_other(self) -> None:
        probes = Probes()
        first, second = probes.begin(2, 12, 0, 100), probes.begin(3, 13, 0, 100)
        assert probes.acknowledged(first.sequence, 3, 13) is None
        assert probes.acknowledged(first.sequence, 2, 99) is None
        assert probes.acknowledged(99, 2, 12) is None
        assert probes.acknowledged(first.sequence, 2, 12) is first
        assert probes.acknowledged(first.sequence, 2, 12) is None
        assert (probes.of(2), probes.of(3)) == (None, second)

    def test_a_ping_for_another_broker_is_acknowledged_too(self) -> None:
        probes, relay = Probes(), Relay(1, 77, 3, 13, 80)
        sequence = probes.relay(relay)
        assert sequence is not None
        assert probes.acknowledged(sequence, 3, 13) is relay
        assert probes.relays == {}

    def test_pings_for_others_are_bounded(self) -> None:
        probes = Probes()
        assert None not in [probes.relay(Relay(1, number, 3, 13, 80)) for number in range(RELAYS_MAX)]
        assert probes.relay(Relay(1, 0, 3, 13, 80)) is None

    def test_deadlines(self) -> None:
        probes = Probes()
        probe = probes.begin(2, 12, 0, 100)
        probe.resend_ms = 33
        probes.relay(Relay(1, 77, 3, 13, 80))
        assert sorted(probes.deadlines()) == [33, 80]
        probes.postpone(10)
        assert sorted(probes.deadlines()) == [43, 90]
        assert (probes.expired(109), probes.expired(110)) == ([], [probe])
        assert probes.take_expired_relays(89) == []
        assert [relay.requester for relay in probes.take_expired_relays(90)] == [1]
        assert probes.take_expired_relays(90) == []

    def test_pings_of_ended_registrations_are_dropped(self) -> None:
        probes = Probes()
        probes.begin(2, 12, 0, 100)
        probes.begin(3, 13, 0, 100)
        for requester in (1, 4):
            probes.relay(Relay(requester, 77, 3, 13, 80))
        probes.keep({1: 11, 2: 99, 3: 13})
        assert (probes.of(2), probes.of(3) is not None) == (None, True)
        assert [relay.requester for relay in probes.relays.values()] == [1]
        probes.keep({})
        assert not probes.own
        assert not probes.relays

    def test_sequence_numbers_begin_again_at_one(self) -> None:
        probes = Probes()
        probes._sequence = SEQUENCE_MAX - 1
        assert [probes.begin(2, 12, 0, 100).sequence for _ in range(2)] == [SEQUENCE_MAX, 1]

    def test_a_witness_is_every_helper(self) -> None:
        probe = Probes().begin(2, 12, 0, 100)
        assert not probe.has_witness()
        probe.helpers = 2
        probe.nacks.add(3)
        assert not probe.has_witness()
        probe.nacks.add(4)
        assert probe.has_witness()


class TestRotation:
    def test_every_broker_has_its_turn_in_each_round(self) -> None:
        """FD11."""
        rotation = Rotation(Random(1))
        rotation.reset([1, 2, 3, 4, 5])
        rounds = [[rotation.take() for _ in range(5)] for _ in range(20)]
        assert all(sorted(turn) == [1, 2, 3, 4, 5] for turn in rounds)
        assert len(set(map(tuple, rounds))) > 10, "the order is drawn anew"

    def test_a_broker_that_joins_waits_for_one_round_at_most(self) -> None:
        rotation = Rotation(Random(1))
        rotation.reset([1, 2, 3])
        rotation.take()
        rotation.reset([1, 2, 3, 4])
        assert 4 in [rotation.take() for _ in range(3)]

    def test_a_broker_that_left_has_no_turn(self) -> None:
        rotation = Rotation(Random(1))
        rotation.reset([1, 2, 3])
        rotation.reset([1, 3])
        assert 2 not in [rotation.take() for _ in range(10)]


def test_health_is_bounded() -> None:
    """FD12."""
    health = Health()
    assert health.factor == 1
    for _ in range(10):
        health.degrade()
    assert health.factor == HEALTH_MAX + 1
    for _ in range(10):
        health.recover()
    assert health.factor == 1


def test_a_sample_is_drawn_without_repeats() -> None:
    random, items = Random(1), list(range(10))
    drawn = [sample(random, items, 3) for _ in range(50)]
    assert all(len(set(each)) == 3 for each in drawn)
    assert len({tuple(each) for each in drawn}) > 10
    assert sample(random, items[:2], 3) == [0, 1]
    assert items == list(range(10))
