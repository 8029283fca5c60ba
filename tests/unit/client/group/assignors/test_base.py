"""What an assignor is given and gives back."""

from __future__ import annotations

import dataclasses

import pytest

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription, RebalanceProtocol


def test_a_member_that_tells_nothing_has_nothing() -> None:
    member = MemberSubscription(("t",))
    assert (member.owned, member.generation_id, member.user_data) == ((), -1, None)
    assert (member.group_instance_id, member.rack) == (None, None)


def test_an_assignment_brings_no_user_data_unless_told() -> None:
    assert GroupAssignment({"m": []}).user_data == {}


def test_what_a_member_told_stays_as_it_is() -> None:
    member = MemberSubscription(("t",))
    with pytest.raises(dataclasses.FrozenInstanceError):
        member.generation_id = 7  # type: ignore[misc]


def test_cooperative_is_the_higher_protocol() -> None:
    assert RebalanceProtocol.COOPERATIVE.value > RebalanceProtocol.EAGER.value
