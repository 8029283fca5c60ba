from __future__ import annotations

from dataclasses import replace

from tests.unit.coordinator.controller.kit import brief, live, partition

from rota.coordinator.controller.reassignment import begin, cancel, complete, is_under_way, original_of, target_of
from rota.coordinator.metadata.topic import PartitionState

ALL = live(1, 2, 3, 4, 5)
Replicas = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def replicas(state: PartitionState | None) -> Replicas | None:
    return None if state is None else (state.replicas, state.adding, state.removing)


def test_replicas_are_added_first_and_removed_when_those_are_in_the_isr() -> None:
    state = begin(partition((1, 2)), (3, 2), ALL)
    assert state is not None
    assert replicas(state) == ((3, 2, 1), (3,), (1,))
    assert brief(state) == (1, (1, 2), 5)
    assert (target_of(state), original_of(state), is_under_way(state)) == ((3, 2), (2, 1), True)
    assert complete(state, ALL) is None
    done = complete(replace(state, isr=(1, 2, 3)), ALL)
    assert replicas(done) == ((3, 2), (), ())
    assert brief(done) == (3, (2, 3), 6)


def test_the_leader_stays_when_it_is_in_the_target() -> None:
    state = begin(partition((1, 2)), (1, 3), ALL)
    assert state is not None
    assert brief(complete(replace(state, isr=(1, 2, 3)), ALL)) == (1, (1, 3), 6)


def test_replicas_in_another_order_are_a_complete_reassignment() -> None:
    state = begin(partition((1, 2, 3)), (3, 1, 2), ALL)
    assert replicas(state) == ((3, 1, 2), (), ())
    assert brief(state) == (1, (1, 2, 3), 5)


def test_replicas_that_are_only_removed_go_at_the_next_look() -> None:
    state = begin(partition((1, 2, 3)), (2,), ALL)
    assert replicas(state) == ((2, 1, 3), (), (1, 3))
    assert state is not None
    assert brief(complete(state, ALL)) == (2, (2,), 6)


def test_it_waits_for_a_target_in_the_isr() -> None:
    state = begin(partition((1, 2), isr=(1,)), (2,), ALL)
    assert state is not None
    assert complete(state, ALL) is None


def test_a_cancelled_reassignment_leaves_the_original_replicas() -> None:
    state = begin(partition((1, 2)), (3, 4), ALL)
    assert state is not None
    assert replicas(cancel(state, ALL)) == ((1, 2), (), ())
    assert brief(cancel(state, ALL)) == (1, (1, 2), 6)
    moved = replace(state, isr=(1, 3), leader=3)
    assert brief(cancel(moved, ALL)) == (1, (1,), 6)
    assert cancel(replace(state, isr=(3,), leader=3), ALL) is None


def test_another_target_replaces_the_reassignment_that_is_under_way() -> None:
    state = begin(partition((1, 2)), (3, 2), ALL)
    assert state is not None
    again = begin(replace(state, isr=(1, 2, 3)), (4, 1), ALL)
    assert replicas(again) == ((4, 1, 2), (4,), (2,))
    assert brief(again) == (1, (1, 2), 6)
    assert begin(replace(state, isr=(3,), leader=3), (4, 1), ALL) is None


def test_a_removed_replica_grows_the_epoch_also_when_it_was_not_in_the_isr() -> None:
    state = begin(partition((1, 2), isr=(1,)), (1,), ALL)
    assert state is not None
    assert brief(complete(state, ALL)) == (1, (1,), 6)


def test_it_waits_for_min_insync_replicas_of_its_target() -> None:
    """RA1. Replica 1 is dead, 2 and 3 have all records: without 2, only 3 would be left."""
    state = partition((3, 1, 2), isr=(2, 3), leader=2, adding=(3,), removing=(2,))
    assert complete(state, ALL, 2) is None
    assert brief(complete(state, ALL, 1)) == (3, (3,), 6)
    assert brief(complete(replace(state, isr=(2, 3, 1)), ALL, 2)) == (3, (3, 1), 6)


def test_a_replica_that_is_removed_is_not_eligible() -> None:
    """ELR1."""
    done = complete(partition((3, 1, 2), isr=(3,), elr=(1, 2), adding=(), removing=(2,)), ALL, 1)
    assert done is not None
    assert done.elr == ()
    begun = begin(partition((1, 2), isr=(1,), elr=(2,)), (3, 1), ALL, 2)
    assert begun is not None
    assert (begun.replicas, begun.elr) == ((3, 1, 2), (2,))
