"""What an assignor is given and gives back."""

from __future__ import annotations

import dataclasses

import pytest

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription, RebalanceProtocol


def test_a_subscription_has_empty_defaults() -> None:
    member = MemberSubscription(("t",))
    assert (member.owned, member.generation_id, member.user_data) == ((), -1, None)
    assert (member.group_instance_id, member.rack) == (None, None)


def test_an_assignment_has_no_user_data_by_default() -> None:
    assert GroupAssignment({"m": []}).user_data == {}


def test_a_subscription_is_immutable() -> None:
    member = MemberSubscription(("t",))
    with pytest.raises(dataclasses.FrozenInstanceError):
        member.generation_id = 7  # type: ignore[misc]


def test_cooperative_is_the_higher_protocol() -> None:
    assert RebalanceProtocol.COOPERATIVE.value > RebalanceProtocol.EAGER.value
