from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.metadata.placement import assign_manually, assign_round_robin
from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode


@given(st.sets(st.integers(0, 1000), min_size=1, max_size=9), st.integers(0, 50), st.integers(1, 40), st.data())
def test_striping_is_even(brokers: set[int], first: int, count: int, data: st.DataObject) -> None:
    replication = data.draw(st.integers(1, len(brokers)))
    states = assign_round_robin(tuple(brokers), first, count, replication)
    assert not isinstance(states, Refusal)
    assert [state.index for state in states] == list(range(first, first + count))
    leaders = Counter(state.leader for state in states)
    assert max(leaders.values()) - min(leaders.get(broker, 0) for broker in brokers) <= 1
    for state in states:
        assert len(set(state.replicas)) == replication
        assert set(state.replicas) <= brokers
        assert state.isr == state.replicas
        assert state.leader == state.replicas[0]


def test_more_replicas_than_brokers() -> None:
    refusal = assign_round_robin((1,), 0, 1, 3)
    assert isinstance(refusal, Refusal)
    assert refusal.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "only 1 broker(s) are registered" in refusal.message


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
    assert assign_manually((1, 2), 0, assignment) == Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def test_all_partitions_have_as_many_replicas() -> None:
    assert isinstance(assign_manually((1, 2), 0, [(0, [1, 2]), (1, [2])]), Refusal)
    assert isinstance(assign_manually((1, 2), 4, [(4, [1])], replication=2), Refusal)
    assert not isinstance(assign_manually((1, 2), 4, [(4, [2, 1])], replication=2), Refusal)
