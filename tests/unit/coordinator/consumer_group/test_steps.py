"""Timers and epochs."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import Script
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group import steps
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Arm, Disarm, Step


def test_a_heartbeat_moves_the_deadline_and_not_the_timer() -> None:
    script = two_members()
    step = Step(10_000, 0)
    steps.refresh_session(script.group, "a", step)
    assert not step.effects
    assert script.group.deadlines["a"] == 55_000


def test_a_shorter_session_moves_the_timer() -> None:
    script = Script()
    script.join("a", "t")
    script.group.armed["a"] = 99_000
    step = Step(0, 0)
    steps.refresh_session(script.group, "a", step)
    assert step.effects == [Arm("session:a", 45_000)]


def test_the_timers_of_a_member_are_cancelled_once() -> None:
    script = two_members()
    step = Step(0, 0)
    steps.cancel_timers(script.group, "a", step)
    steps.cancel_timers(script.group, "a", step)
    assert step.effects == [Disarm("session:a")]


def test_a_new_epoch_has_the_hash_of_the_present_topics() -> None:
    script = two_members()
    script.topics.set("t", 9)
    steps.bump_epoch(script.group, Step(0, 0), "a reason", "a trigger")
    assert script.group.metadata_hash == metadata_hash({"t"}, script.topics)
    assert script.group.epoch == 4
