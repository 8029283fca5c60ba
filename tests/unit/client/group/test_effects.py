"""Effects are values, and do not share what can change."""

from __future__ import annotations

from rota.client.group.effects import Assign, Note, RunHook
from rota.client.types import TopicPartition


def test_effects_are_values() -> None:
    item = TopicPartition("t", 0)
    assert RunHook(1, Assign((item,), ())) == RunHook(1, Assign((item,), ()))
    assert RunHook(1, Assign((item,), ())) != RunHook(1, Assign((item,), (item,)))


def test_notes_do_not_share_their_fields() -> None:
    assert Note("info", "x").fields is not Note("info", "x").fields
