"""The progress of members towards the target assignment."""

from __future__ import annotations

from dataclasses import replace

from rota.coordinator.consumer_group.member import Member, MemberState
from rota.coordinator.consumer_group.progress import Progress

TOPIC = b"t" * 16
A = Member(member_id="a", epoch=2, assigned={TOPIC: {0: 2, 1: 2}})
REVOKING = replace(A, state=MemberState.UNREVOKED_PARTITIONS, assigned={TOPIC: {0: 2}}, pending={TOPIC: {1: 2}})
DONE = replace(A, epoch=3, assigned={TOPIC: {0: 2}})


def begun() -> Progress:
    progress = Progress()
    progress.begin([A, Member(member_id="b", epoch=3)], 3, 100)
    return progress


def test_members_without_their_target_lag() -> None:
    assert begun().lagging == {"a"}


def test_tl12_a_revocation_lasts_from_the_answer_to_the_report() -> None:
    progress = begun()
    progress.advance(A, REVOKING, 3, 1_000)
    progress.advance(REVOKING, DONE, 3, 1_500)
    assert not progress.lagging
    assert [(member.member_id, member.wait_ms) for member in progress.finish()] == [("a", 500)]
    assert progress.finish() == ()


def test_tl12_partitions_that_are_taken_before_the_others_are_revoked_belong_to_the_same_revocation() -> None:
    progress = begun()
    more = replace(REVOKING, assigned={}, pending={TOPIC: {0: 2, 1: 2}})
    progress.advance(A, REVOKING, 3, 1_000)
    progress.advance(REVOKING, more, 3, 2_000)
    assert progress.revoking_since == {"a": 1_000}


def test_tl12_partitions_that_are_taken_afterwards_are_another_revocation() -> None:
    progress = begun()
    other = replace(REVOKING, assigned={}, pending={TOPIC: {0: 2}})
    progress.advance(A, REVOKING, 3, 1_000)
    progress.advance(REVOKING, other, 3, 2_000)
    assert progress.revoking_since == {"a": 2_000}
    assert progress.revoked["a"].wait_ms == 1_000


def test_nobody_waits_for_a_member_that_is_gone() -> None:
    progress = begun()
    progress.advance(A, REVOKING, 3, 1_000)
    progress.remove("a")
    assert (progress.lagging, progress.revoking_since, progress.finish()) == (set(), {}, ())


def test_a_member_that_is_away_counts_in_a_reconciliation_that_has_begun() -> None:
    progress = begun()
    progress.pause("b")
    assert progress.lagging == {"a"}
    progress.is_noted = True
    progress.pause("b")
    assert progress.lagging == {"a", "b"}


def test_tl15_a_member_that_lacks_an_old_target_begins_a_reconciliation() -> None:
    progress = Progress()
    progress.begin([DONE], 3, 100)
    assert not progress.lagging
    progress.advance(DONE, replace(REVOKING, epoch=3), 3, 9_000)
    assert (progress.lagging, progress.started_ms) == ({"a"}, 9_000)
    progress.is_noted = True
    progress.remove("a")
    progress.await_member("a2", 9_500)
    assert progress.started_ms == 9_000
