from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.placement import assign_manually, assign_round_robin, start_of
from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode


def registered(*brokers: int, racks: str | None = None) -> dict[int, BrokerRegistration]:
    """`racks` has a letter for each broker."""
    names = racks or [None] * len(brokers)
    return {
        broker: BrokerRegistration(broker_id=broker, epoch=100 + broker, rack=rack)
        for broker, rack in zip(brokers, names, strict=True)
    }


@given(
    st.sets(st.integers(0, 1000), min_size=1, max_size=9), st.integers(0, 50), st.integers(1, 40), st.text(), st.data()
)
def test_striping_is_even(brokers: set[int], first: int, count: int, name: str, data: st.DataObject) -> None:
    replication = data.draw(st.integers(1, len(brokers)))
    states = assign_round_robin(registered(*brokers), first, count, replication, start=start_of(name))
    assert not isinstance(states, Refusal)
    assert [state.index for state in states] == list(range(first, first + count))
    leaders = Counter(state.leader for state in states)
    assert max(leaders.values()) - min(leaders.get(broker, 0) for broker in brokers) <= 1
    for state in states:
        assert len(set(state.replicas)) == replication
        assert set(state.replicas) <= brokers
        assert state.isr == state.replicas
        assert state.leader == state.replicas[0]
        assert state.leader_broker_epoch == 100 + state.leader


def test_more_replicas_than_brokers() -> None:
    refusal = assign_round_robin(registered(1), 0, 1, 3)
    assert isinstance(refusal, Refusal)
    assert refusal.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "only 1 broker(s) are registered" in refusal.message


def test_absent_brokers_get_the_last_replicas_outside_of_the_isr() -> None:
    """Law PL2."""
    states = assign_round_robin(registered(1, 2), 0, 2, 3, absent={9, 3})
    assert not isinstance(states, Refusal)
    assert [(state.replicas, state.isr, state.leader) for state in states] == [
        ((1, 2, 3), (1, 2), 1),
        ((2, 1, 9), (2, 1), 2),
    ]
    fewer = assign_round_robin(registered(1), 5, 4, 3, absent={9, 3, 4})
    assert not isinstance(fewer, Refusal)
    others = [(9, 3), (3, 4), (4, 9), (9, 3)]
    assert [state.replicas for state in fewer] == [(1, *each) for each in others], "they take turns"
    few = assign_round_robin(registered(1, 2), 0, 1, 2, absent={3})
    assert not isinstance(few, Refusal)
    assert few[0].replicas == few[0].isr == (1, 2), "live brokers are preferred"
    assert isinstance(assign_round_robin({}, 0, 1, 1, absent={3}), Refusal)


def test_a_manual_assignment_may_name_absent_brokers_beside_live_ones() -> None:
    """Law PL2. The first live one leads."""
    states = assign_manually(registered(1), 0, [(0, [3, 1])], absent={3})
    assert not isinstance(states, Refusal)
    assert (states[0].replicas, states[0].isr, states[0].leader) == ((3, 1), (1,), 1)
    fenced = assign_manually(registered(1), 0, [(0, [3])], absent={3})
    assert isinstance(fenced, Refusal)
    assert fenced.message.endswith("for partition 0 are fenced or in controlled shutdown.")


@pytest.mark.parametrize(
    ("assignment", "why"),
    [
        ([(0, [])], "The manual partition assignment includes an empty replica list."),
        ([(0, [5])], "The manual partition assignment includes broker 5, but no such broker is registered."),
        ([(0, [1, 1])], "The manual partition assignment includes the broker 1 more than once."),
        ([(0, [1]), (0, [2])], "Found multiple manual partition assignments for partition 0"),
        ([(0, [1]), (2, [2])], "partitions should be a consecutive 0-based integer sequence"),
        ([(1, [1])], "partitions should be a consecutive 0-based integer sequence"),
    ],
)
def test_wrong_assignments_are_refused_in_kafkas_words(assignment: list[tuple[int, list[int]]], why: str) -> None:
    assert assign_manually(registered(1, 2), 0, assignment) == Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def test_all_partitions_have_as_many_replicas() -> None:
    assert isinstance(assign_manually(registered(1, 2), 0, [(0, [1, 2]), (1, [2])]), Refusal)
    assert isinstance(assign_manually(registered(1, 2), 4, [(4, [1])], replication=2), Refusal)
    assert not isinstance(assign_manually(registered(1, 2), 4, [(4, [2, 1])], replication=2), Refusal)


def replicas(brokers: dict[int, BrokerRegistration], count: int, replication: int, start: int = 0) -> list[list[int]]:
    states = assign_round_robin(brokers, 0, count, replication, start=start)
    assert not isinstance(states, Refusal)
    return [list(state.replicas) for state in states]


def test_the_followers_shift_with_each_lap_of_the_ring() -> None:
    """Kafka's own example: a broker's leaderships go to different brokers when it dies."""
    assert replicas(registered(0, 1, 2, 3, 4), 10, 3) == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4, 0],
        [4, 0, 1],
        [0, 2, 3],
        [1, 3, 4],
        [2, 4, 0],
        [3, 0, 1],
        [4, 1, 2],
    ]


def test_brokers_alternate_between_racks() -> None:
    """Kafka's own example: racks 1 (brokers 0, 3, 4), 2 (1, 5), 3 (2)."""
    brokers = registered(0, 1, 2, 3, 4, 5, racks="123112")
    assert [ids[0] for ids in replicas(brokers, 6, 1)] == [0, 1, 2, 3, 5, 4]


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=9).map("".join),
    st.integers(1, 9),
    st.integers(0, 99),
)
def test_replicas_are_spread_over_the_racks(racks: str, replication: int, start: int) -> None:
    replication = min(replication, len(racks))
    brokers = registered(*range(len(racks)), racks=racks)
    for ids in replicas(brokers, 12, replication, start):
        used = Counter(racks[broker] for broker in ids)
        assert len(used) == min(replication, len(set(racks)))
        assert len(set(ids)) == replication


def test_topics_of_one_partition_start_at_different_brokers() -> None:
    brokers = registered(1, 2, 3)
    leaders = {replicas(brokers, 1, 3, start_of(f"topic-{number}"))[0][0] for number in range(20)}
    assert leaders == {1, 2, 3}
