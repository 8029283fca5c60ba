"""The verbs of a member: tickets, timers, the table of states."""

from __future__ import annotations

import pytest
from tests.unit.client.group.script import CONFIG, stable

from rota.client.config import ConsumerConfig
from rota.client.group import effects as out
from rota.client.group.assignors.range import RangeAssignor
from rota.client.group.state import Member, new_member
from rota.client.group.states import MemberState


def member() -> Member:
    return new_member(ConsumerConfig(**CONFIG), [RangeAssignor()])


def test_a_new_member_has_no_generation_and_nothing_to_do() -> None:
    new = member()
    assert (new.state, new.generation, new.is_due) == (MemberState.DOWN, -1, False)
    assert new.group.member_id == ""


def test_only_listed_state_transitions_are_allowed() -> None:
    with pytest.raises(AssertionError, match="DOWN -> STABLE"):
        member().move(MemberState.STABLE)


def test_only_an_armed_timer_is_disarmed() -> None:
    new = member()
    new.arm("heartbeat", 5)
    new.disarm("heartbeat", "session")
    new.disarm("heartbeat")
    assert new.out == [out.Arm("heartbeat", 5), out.Disarm("heartbeat")]


def test_no_ticket_is_given_twice() -> None:
    new = member()
    assert len({new.ticket() for _ in range(10)}) == 10


def test_out_of_group_keeps_the_owned_partitions() -> None:
    joined = stable().m
    owned = joined.owned
    joined.out_of_group("a test", keep_id=True)
    assert joined.owned == owned
    assert joined.generation == -1
    assert joined.is_due
