"""What a member says of itself, taken in: records, epochs, topics; when a target is computed, and from what."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.mixed_script import MixedScript
from tests.unit.coordinator.consumer_group.script import Script, TopicsInMemory, id_of
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.target import specification, update_target
from rota.coordinator.group.effects import Step


def test_only_changed_targets_are_written() -> None:
    script = two_members()
    before = len(script.log)
    script.join("c", "t")
    changed = [len(value.topic_partitions) for kind, value in script.records(before) if kind == "TargetMemberKey"]
    assert changed == [1, 1]  # one of a and b gives one to c


def test_a_target_of_the_group_epoch_is_not_computed_again() -> None:
    script = two_members()
    step = Step(0, 0)
    update_target(script.group, step)
    assert not step.effects


@pytest.mark.parametrize(
    ("interval_ms", "passed_ms", "is_due"), [(1_000, 999, False), (1_000, 1_000, True), (0, 0, True)]
)
def test_two_targets_are_an_interval_apart(interval_ms: int, passed_ms: int, is_due: bool) -> None:
    script = Script(settings=ConsumerGroupSettings(assignment_interval_ms=interval_ms))
    script.join("a", "t")
    script.advance(passed_ms)
    script.join("b", "t")
    assert (script.group.target_epoch == 3) == is_due


def test_a_group_without_a_time_of_its_target_does_not_wait() -> None:
    """Records of Kafka 4.2 and before have none."""
    script = Script(settings=ConsumerGroupSettings(assignment_interval_ms=1_000))
    script.join("a", "t")
    script.group.target_ms = 0
    script.join("b", "t")
    assert script.group.target_epoch == 3


def test_the_assignor_sees_existing_topics_and_the_last_target() -> None:
    script = Script(TopicsInMemory(t=2))
    script.join("a", "t", "missing", instance="i")
    spec = specification(script.group)
    assert spec.partition_counts == {id_of("t"): 2}
    (member,) = spec.members.values()
    assert (member.topic_ids, member.instance_id) == ({id_of("t")}, "i")
    assert member.target == {id_of("t"): frozenset({0, 1})}
    assert spec.is_homogeneous


def test_an_assignor_of_another_broker_is_replaced_by_the_default() -> None:
    script = Script()
    script.join("a", "t", assignor="range")
    script.group.assignors.clear()
    script.group.assignors["mine"] = 1
    script.topics.set("t", 5)
    script.heartbeat("a", 2)
    assert script.noted("Assignment received from leader")[-1]["protocol"] == "uniform"


def test_a_member_that_says_the_same_again_writes_nothing() -> None:
    script = Script()
    script.join("a", "t")
    before = len(script.log)
    script.heartbeat("a", 2, names=("t",))
    assert len(script.log) == before


def test_new_names_bump_the_epoch_in_either_protocol() -> None:
    script = MixedScript()
    script.topics.set("u", 1)
    script.join("a", "t")
    script.c_join("", fresh="c1")
    assert script.group.epoch == 3
    script.heartbeat("a", 2, names=("t", "u"))
    assert script.group.epoch == 4
    script.c_join("c1", "t", "u")
    assert script.group.epoch == 5
    assert script.noted("Preparing to rebalance group")[-1]["reason"] == "Member c1 updated its subscription."


def test_a_classic_join_sees_that_topics_changed() -> None:
    script = MixedScript()
    script.join("a", "t")
    script.c_join("", fresh="c1")
    script.topics.set("t", 6)
    answer = script.c_join("c1")
    assert answer is not None
    assert (script.group.epoch, answer.generation) == (4, 4)
    assert sum(len(script.target(name)["t"]) for name in ("a", "c1")) == 6


def test_a_classic_join_lets_no_expression_be_resolved() -> None:
    """It has no client of which the topics that it may see are known."""
    script = MixedScript()
    script.join("b", "t")
    script.heartbeat("a", 0, regex="t.*", owned={}, rebalance_ms=60_000)
    script.advance(0)
    script.advance(20_000)
    script.topics.set("tt", 1)
    script.c_join("", fresh="c1")
    assert "regex" not in script.timers
    script.heartbeat("b", 2)
    assert "regex" in script.timers
