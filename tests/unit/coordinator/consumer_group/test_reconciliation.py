"""Each state of a member and where it leads, as in Kafka's CurrentAssignmentBuilderTest."""

from __future__ import annotations

import pytest

from rota.coordinator.consumer_group.member import Member, MemberState, Partitions
from rota.coordinator.consumer_group.reconciliation import Target, reconcile

A, B = b"a" * 16, b"b" * 16
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def target(partitions: Partitions, *, epoch: int = 11, topics: tuple[bytes, ...] = (A, B), **more: object) -> Target:
    taken = more.pop("taken", ())
    return Target(
        epoch=epoch,
        partitions=partitions,
        topic_ids=topics,
        is_owned=lambda topic_id, index: (topic_id, index) in taken,  # type: ignore[operator]
        **more,  # type: ignore[arg-type]
    )


def member(state: MemberState = STABLE, **more: object) -> Member:
    return Member(member_id="m", epoch=10, previous_epoch=9, state=state, **more)  # type: ignore[arg-type]


def parts(*indexes: int) -> frozenset[int]:
    return frozenset(indexes)


def test_stable_stays_when_the_target_has_not_changed() -> None:
    before = member(assigned={A: {1: 10}})
    assert reconcile(before, target({A: parts(1)}, epoch=10), None) is before


def test_stable_takes_what_is_free() -> None:
    after = reconcile(member(assigned={A: {1: 10}}), target({A: parts(1, 2), B: parts(3)}), None)
    assert (after.state, after.epoch, after.previous_epoch) == (STABLE, 11, 10)
    assert after.assigned == {A: {1: 10, 2: 11}, B: {3: 11}}


def test_stable_to_unrevoked_keeps_its_epoch() -> None:
    after = reconcile(member(assigned={A: {1: 10, 2: 10}}), target({A: parts(2)}), None)
    assert (after.state, after.epoch, after.previous_epoch) == (UNREVOKED, 10, 10)
    assert (after.assigned, after.pending) == ({A: {2: 10}}, {A: {1: 10}})


def test_stable_goes_on_when_it_has_revoked_already() -> None:
    after = reconcile(member(assigned={A: {1: 10, 2: 10}}), target({A: parts(2)}), [(A, (2,))])
    assert (after.state, after.epoch, after.assigned, after.pending) == (STABLE, 11, {A: {2: 10}}, {})


def test_stable_to_unreleased_takes_the_free_part() -> None:
    after = reconcile(member(), target({A: parts(1, 2)}, taken={(A, 2)}), None)
    assert (after.state, after.epoch, after.assigned) == (UNRELEASED, 11, {A: {1: 11}})


@pytest.mark.parametrize("reported", [None, [(A, (1, 2))]])
def test_unrevoked_waits_for_the_revocation(reported: object) -> None:
    before = member(UNREVOKED, assigned={A: {2: 10}}, pending={A: {1: 10}})
    assert reconcile(before, target({A: parts(2)}), reported) is before  # type: ignore[arg-type]


def test_unrevoked_takes_back_its_own_pending_partition() -> None:
    before = member(UNREVOKED, assigned={A: {2: 10}}, pending={A: {1: 10}})
    after = reconcile(before, target({A: parts(1, 2)}, taken={(A, 1), (A, 2)}), [(A, (2,))])
    assert (after.state, after.assigned, after.pending) == (STABLE, {A: {1: 11, 2: 10}}, {})


def test_unrevoked_to_unrevoked_when_the_target_has_changed_again() -> None:
    before = member(UNREVOKED, assigned={A: {2: 10, 3: 10}}, pending={A: {1: 10}})
    after = reconcile(before, target({A: parts(3)}), [(A, (2, 3))])
    assert (after.state, after.epoch, after.assigned, after.pending) == (UNREVOKED, 10, {A: {3: 10}}, {A: {2: 10}})


def test_unreleased_stays_until_its_partitions_are_free() -> None:
    before = Member(member_id="m", epoch=11, previous_epoch=11, state=UNRELEASED, assigned={A: {1: 11}})
    assert reconcile(before, target({A: parts(1, 2)}, taken={(A, 1), (A, 2)}), None) == before
    after = reconcile(before, target({A: parts(1, 2)}, taken={(A, 1)}), None)
    assert (after.state, after.assigned) == (STABLE, {A: {1: 11, 2: 11}})


def test_unreleased_to_unrevoked() -> None:
    before = member(UNRELEASED, assigned={A: {1: 10}})
    after = reconcile(before, target({A: parts(2)}, taken={(A, 1), (A, 2)}), None)
    assert (after.state, after.epoch, after.pending) == (UNREVOKED, 10, {A: {1: 10}})


def test_a_topic_without_a_subscription_is_not_assigned() -> None:
    after = reconcile(member(), target({A: parts(1), B: parts(1)}, topics=(A,)), None)
    assert after.assigned == {A: {1: 11}}


@pytest.mark.parametrize("state", [STABLE, UNREVOKED])
def test_a_lost_topic_is_revoked_in_the_present_epoch(state: MemberState) -> None:
    pending = {A: {5: 9}} if state is UNREVOKED else {}
    before = member(state, assigned={A: {1: 10}, B: {1: 10}}, pending=pending)
    goal = target({A: parts(1), B: parts(1)}, epoch=10, topics=(B,), has_subscription_changed=True)
    after = reconcile(before, goal, None)
    assert (after.state, after.epoch, after.assigned) == (UNREVOKED, 10, {B: {1: 10}})
    assert after.pending == {A: {1: 10} | pending.get(A, {})}


def test_a_lost_topic_that_is_revoked_already_leaves_the_state_as_it_is() -> None:
    before = member(assigned={A: {1: 10}, B: {1: 10}})
    goal = target({}, epoch=10, topics=(B,), has_subscription_changed=True)
    after = reconcile(before, goal, [(B, (1,))])
    assert (after.state, after.assigned, after.pending) == (STABLE, {B: {1: 10}}, {})


def test_a_member_in_a_state_of_a_newer_broker_begins_again() -> None:
    before = member(MemberState.UNKNOWN, assigned={A: {1: 10}})
    assert reconcile(before, target({A: parts(1, 2)}), []).epoch == 11
