"""Events are values: the same words, the same event."""

from __future__ import annotations

from rota.client.group.events import CommitRefused, HookDone, TimerExpired


def test_events_are_values() -> None:
    assert TimerExpired("session") == TimerExpired("session")
    assert TimerExpired("session") != TimerExpired("poll")
    assert not hasattr(TimerExpired("session"), "__dict__")


def test_optional_fields_default_to_none() -> None:
    assert HookDone(1).error is None
    assert CommitRefused(22).generation is None
