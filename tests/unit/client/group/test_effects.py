"""Effects are values, and do not share what can change."""

from __future__ import annotations

from rota.client.group.effects import Assign, Note, Run
from rota.client.types import TopicPartition


def test_effects_are_values() -> None:
    one = TopicPartition("t", 0)
    assert Run(1, Assign((one,), ())) == Run(1, Assign((one,), ()))
    assert Run(1, Assign((one,), ())) != Run(1, Assign((one,), (one,)))


def test_notes_do_not_share_their_fields() -> None:
    assert Note("info", "x").fields is not Note("info", "x").fields
