"""Events are values: the same words, the same event."""

from __future__ import annotations

from rota.client.group.events import HookDone, Rang, Stale


def test_events_are_values() -> None:
    assert Rang("session") == Rang("session")
    assert Rang("session") != Rang("poll")
    assert not hasattr(Rang("session"), "__dict__")


def test_what_is_left_out_means_nothing_special() -> None:
    assert HookDone(1).error is None
    assert Stale(22).generation is None
