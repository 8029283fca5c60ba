"""Effects are values, and do not share what can change."""

from __future__ import annotations

from rota.client.group.effects import Assign, Note, RunHook
from rota.client.types import TopicPartition


def test_effects_are_values() -> None:
    one = TopicPartition("t", 0)
    assert RunHook(1, Assign((one,), ())) == RunHook(1, Assign((one,), ()))
    assert RunHook(1, Assign((one,), ())) != RunHook(1, Assign((one,), (one,)))


def test_notes_do_not_share_their_fields() -> None:
    assert Note("info", "x").fields is not Note("info", "x").fields
