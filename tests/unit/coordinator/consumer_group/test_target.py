"""When a target is computed, and what the assignor is given."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.talk import Talk, TopicsInMemory, id_of
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.target import specification, update_target
from rota.coordinator.group.effects import Step


def test_only_changed_targets_are_written() -> None:
    talk = two_members()
    before = len(talk.log)
    talk.join("c", "t")
    changed = [len(value.topic_partitions) for kind, value in talk.records(before) if kind == "TargetMemberKey"]
    assert changed == [1, 1]  # one of a and b gives one to c


def test_a_target_of_the_group_epoch_is_not_computed_again() -> None:
    talk = two_members()
    step = Step(0, 0)
    update_target(talk.group, step)
    assert not step.effects


@pytest.mark.parametrize(
    ("interval_ms", "passed_ms", "is_due"), [(1_000, 999, False), (1_000, 1_000, True), (0, 0, True)]
)
def test_two_targets_are_an_interval_apart(interval_ms: int, passed_ms: int, is_due: bool) -> None:
    talk = Talk(settings=ConsumerGroupSettings(assignment_interval_ms=interval_ms))
    talk.join("a", "t")
    talk.advance(passed_ms)
    talk.join("b", "t")
    assert (talk.group.target_epoch == 3) == is_due


def test_a_group_without_a_time_of_its_target_does_not_wait() -> None:
    """Records of Kafka 4.2 and before have none."""
    talk = Talk(settings=ConsumerGroupSettings(assignment_interval_ms=1_000))
    talk.join("a", "t")
    talk.group.target_ms = 0
    talk.join("b", "t")
    assert talk.group.target_epoch == 3


def test_the_assignor_sees_existing_topics_and_the_last_target() -> None:
    talk = Talk(TopicsInMemory(t=2))
    talk.join("a", "t", "missing", instance="i")
    spec = specification(talk.group)
    assert spec.partition_counts == {id_of("t"): 2}
    (member,) = spec.members.values()
    assert (member.topic_ids, member.instance_id) == ({id_of("t")}, "i")
    assert member.target == {id_of("t"): frozenset({0, 1})}
    assert spec.is_homogeneous


def test_an_assignor_of_another_broker_is_replaced_by_the_default() -> None:
    talk = Talk()
    talk.join("a", "t", assignor="range")
    talk.group.assignors.clear()
    talk.group.assignors["mine"] = 1
    talk.topics.set("t", 5)
    talk.beat("a", 2)
    assert talk.noted("Assignment received from leader")[-1]["protocol"] == "uniform"
