"""Events are values: the same words, the same event."""

from __future__ import annotations

from rota.coordinator.group.events import NO_MEMBER, Heartbeat, MemberId, Token


def test_events_are_values() -> None:
    assert Heartbeat(Token(1), MemberId("a"), None, 3) == Heartbeat(Token(1), MemberId("a"), None, 3)
    assert Heartbeat(Token(1), MemberId("a"), None, 3) != Heartbeat(Token(1), MemberId("a"), None, 4)


def test_events_carry_nothing_that_they_do_not_name() -> None:
    assert not hasattr(Heartbeat(Token(1), MemberId("a"), None, 3), "__dict__")


def test_no_member_is_the_empty_id() -> None:
    assert NO_MEMBER == ""
