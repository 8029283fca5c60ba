"""Events are values: the same words, the same event."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from rota.coordinator.group.events import NOBODY, Heartbeat, MemberId, Token


def test_events_are_values() -> None:
    event = Heartbeat(Token(1), MemberId("a"), None, 3)
    assert event == Heartbeat(Token(1), MemberId("a"), None, 3)
    with pytest.raises(FrozenInstanceError):
        event.generation = 4  # type: ignore[misc]


def test_nobody_is_the_empty_id_of_the_wire() -> None:
    assert NOBODY == ""
