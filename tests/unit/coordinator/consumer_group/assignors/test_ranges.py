"""As in Kafka's RangeAssignorTest."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.assignors.cases import shown, spec

from rota.coordinator.consumer_group.assignors.ranges import assign


def test_each_topic_is_cut_into_runs() -> None:
    assert shown(assign(spec({"a": 3, "b": 2}, {"m1": "ab", "m2": "ab"}))) == {
        "m1": {"a": {0, 1}, "b": {0}},
        "m2": {"a": {2}, "b": {1}},
    }


def test_members_with_different_topics_share_those_that_both_have() -> None:
    assert shown(assign(spec({"a": 3, "b": 3, "c": 2}, {"m1": "ab", "m2": "c", "m3": "bc"}))) == {
        "m1": {"a": {0, 1, 2}, "b": {0, 1}},
        "m2": {"c": {0}},
        "m3": {"b": {2}, "c": {1}},
    }


def test_static_members_come_first_in_the_order_of_their_instances() -> None:
    group = spec({"a": 3}, {"m1": "a", "m2": "a", "m3": "a"}, instances={"m3": "i1", "m2": "i2"})
    assert shown(assign(group)) == {"m3": {"a": {0}}, "m2": {"a": {1}}, "m1": {"a": {2}}}


def test_more_members_than_partitions_and_nobody() -> None:
    assert shown(assign(spec({"a": 1}, {"m1": "a", "m2": "a"}))) == {"m1": {"a": {0}}, "m2": {}}
    assert assign(spec({"a": 1}, {})) == {}


def test_the_last_target_makes_no_difference() -> None:
    group = spec({"a": 2}, {"m1": "a", "m2": "a"}, {"m1": {"a": (1,)}, "m2": {"a": (0,)}})
    assert shown(assign(group)) == {"m1": {"a": {0}}, "m2": {"a": {1}}}
