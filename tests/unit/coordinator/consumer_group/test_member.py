from __future__ import annotations

from rota.coordinator.consumer_group.member import Member, MemberState, is_subset

T = b"t" * 16


def test_a_member_is_reconciled_when_it_is_stable_at_the_epoch() -> None:
    assert Member(member_id="m", epoch=3).is_reconciled_to(3)
    assert not Member(member_id="m", epoch=2).is_reconciled_to(3)
    assert not Member(member_id="m", epoch=3, state=MemberState.UNRELEASED_PARTITIONS).is_reconciled_to(3)


def test_the_assignment_epoch_is_that_of_an_owned_or_a_pending_partition() -> None:
    member = Member(member_id="m", assigned={T: {0: 3}}, pending={T: {1: 2}})
    assert [member.assignment_epoch(T, index) for index in range(3)] == [3, 2, None]


def test_what_a_member_reports_is_a_subset_of_what_it_owns_or_not() -> None:
    owned = {T: {0: 3, 1: 3}}
    assert is_subset([(T, (0,))], owned)
    assert is_subset([], owned)
    assert not is_subset([(T, (0, 2))], owned)
    assert not is_subset([(b"u" * 16, (0,))], owned)


def test_the_timeline_names_a_member_by_its_client() -> None:
    named = Member(member_id="m", instance_id="i", client_id="c", client_host="/h").as_event_member()
    assert (named.member_id, named.instance_id, named.client_id, named.client_host) == ("m", "i", "c", "/h")
