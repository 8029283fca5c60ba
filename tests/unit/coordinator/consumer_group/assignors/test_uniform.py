"""As in Kafka's UniformHomogeneousAssignmentBuilderTest."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.assignors.cases import shown, spec

from rota.coordinator.consumer_group.assignors.uniform import assign


def test_members_get_the_same_number_of_partitions() -> None:
    assert shown(assign(spec({"a": 3, "b": 2}, {"m1": "ab", "m2": "ab"}))) == {
        "m1": {"a": {0, 1}},
        "m2": {"a": {2}, "b": {0, 1}},  # the last members get one more
    }


def test_nobody_and_no_topics() -> None:
    assert assign(spec({"a": 1}, {})) == {}
    assert assign(spec({}, {"m1": ""})) == {}


def test_a_second_member_gets_half_and_the_first_keeps_the_rest() -> None:
    group = spec({"a": 4}, {"m1": "a", "m2": "a"}, {"m1": {"a": (0, 1, 2, 3)}})
    assert shown(assign(group)) == {"m1": {"a": {0, 1}}, "m2": {"a": {2, 3}}}


def test_a_member_that_leaves_moves_only_its_own_partitions() -> None:
    group = spec({"a": 6}, {"m1": "a", "m3": "a"}, {"m1": {"a": (0, 3)}, "m3": {"a": (2, 5)}})
    assert shown(assign(group)) == {"m1": {"a": {0, 1, 3}}, "m3": {"a": {2, 4, 5}}}


def test_who_has_one_more_keeps_it() -> None:
    group = spec({"a": 3}, {"m1": "a", "m2": "a"}, {"m1": {"a": (0,)}, "m2": {"a": (1, 2)}})
    assert shown(assign(group)) == {"m1": {"a": {0}}, "m2": {"a": {1, 2}}}


def test_what_the_metadata_do_not_know_yet_is_not_kept() -> None:
    """CG12. The target is of a coordinator that knew four partitions; this one has read of two."""
    group = spec({"a": 2}, {"m1": "a", "m2": "a"}, {"m1": {"a": (2, 3)}, "m2": {"a": (0, 1)}})
    assert shown(assign(group)) == {"m1": {"a": {1}}, "m2": {"a": {0}}}


def test_a_topic_that_is_not_subscribed_any_more_is_given_up() -> None:
    group = spec({"b": 2}, {"m1": "b", "m2": "b"}, {"m1": {"a": (0, 1)}, "m2": {"b": (0,)}})
    assert shown(assign(group)) == {"m1": {"b": {1}}, "m2": {"b": {0}}}


def test_different_subscriptions_are_served_too() -> None:
    assert shown(assign(spec({"a": 2, "b": 2}, {"m1": "a", "m2": "ab"}))) == {
        "m1": {"a": {0, 1}},
        "m2": {"b": {0, 1}},
    }
