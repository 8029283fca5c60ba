"""Timers and epochs."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.talk import Talk
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group import steps
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Arm, Disarm, Step


def test_a_heartbeat_moves_the_deadline_and_not_the_timer() -> None:
    talk = two_members()
    step = Step(10_000, 0)
    steps.refresh_session(talk.group, "a", step)
    assert not step.effects
    assert talk.group.deadlines["a"] == 55_000


def test_a_shorter_session_moves_the_timer() -> None:
    talk = Talk()
    talk.join("a", "t")
    talk.group.armed["a"] = 99_000
    step = Step(0, 0)
    steps.refresh_session(talk.group, "a", step)
    assert step.effects == [Arm("session:a", 45_000)]


def test_the_timers_of_a_member_are_cancelled_once() -> None:
    talk = two_members()
    step = Step(0, 0)
    steps.cancel_timers(talk.group, "a", step)
    steps.cancel_timers(talk.group, "a", step)
    assert step.effects == [Disarm("session:a")]


def test_a_new_epoch_has_the_hash_of_the_present_topics() -> None:
    talk = two_members()
    talk.topics.set("t", 9)
    steps.bump_epoch(talk.group, Step(0, 0), "a reason", "a trigger")
    assert talk.group.metadata_hash == metadata_hash({"t"}, talk.topics)
    assert talk.group.epoch == 4
