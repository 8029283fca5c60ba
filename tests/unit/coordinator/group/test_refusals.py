"""Refusals are counted: the timeline is told of the first, the tenth, the hundredth, and of the last count."""

from __future__ import annotations

from rota.coordinator.group.refusals import NO_MEMBER, REFUSALS_MAX, Refusals
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember

STALE = ErrorCode.ILLEGAL_GENERATION


def test_powers_of_ten_are_noted_and_the_last_count_at_the_end() -> None:
    refusals, member = Refusals(), EventMember(member_id="a")
    noted = [n for n in range(1, 151) if refusals.add("x", member, "offset-commit", STALE) is not None]
    assert noted == [1, 10, 100]
    (last,) = refusals.finish()
    assert (last.count, last.noted) == (150, 100)
    assert list(refusals.finish()) == []


def test_a_count_that_was_noted_is_not_noted_again() -> None:
    refusals = Refusals()
    refusals.add("x", EventMember(member_id="a"), "offset-commit", STALE)
    assert list(refusals.finish()) == []


def test_members_and_codes_are_counted_apart_up_to_a_bound() -> None:
    refusals = Refusals()
    for number in range(REFUSALS_MAX + 5):
        refusals.add("x", EventMember(member_id=f"m{number}"), "offset-commit", STALE)
    last = list(refusals.finish())
    assert [(refusal.member, refusal.count) for refusal in last] == [(NO_MEMBER, 5)]
