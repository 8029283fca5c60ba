"""The broker's assignors in plans: the same partitions as a group of the consumer protocol gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.broker_assignors import NAMES, assign, with_matching_topics
from rota.client import KafkaError, MemberDescription, TopicPartition
from rota.client.group.assignors.base import MemberSubscription

IDS = {"t": b"t" * 16, "u": b"u" * 16}


def of(topic: str, *numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for number in numbers)


def subscribed(*names: str, topics: tuple[str, ...] = ("t",)) -> dict[str, MemberSubscription]:
    return {name: MemberSubscription(topics) for name in names}


def test_uniform_moves_as_little_as_possible_and_range_does_not_care() -> None:
    before = {"a": of("t", 3, 4, 5), "b": of("t", 0, 1, 2)}
    members = subscribed("a", "b", "~new-1")
    found = {name: assign(name, IDS, {"t": 6}, members, before) for name in NAMES}
    assert found["uniform"] == {"a": of("t", 3, 4), "b": of("t", 0, 1), "~new-1": of("t", 2, 5)}
    assert found["range"] == {"a": of("t", 0, 1), "b": of("t", 2, 3), "~new-1": of("t", 4, 5)}


def test_members_with_different_topics() -> None:
    members = subscribed("a") | subscribed("b", topics=("t", "u")) | subscribed("c", topics=("missing",))
    for name in NAMES:
        found = assign(name, IDS, {"t": 2, "u": 2}, members, {})
        assert sorted(each for owned in found.values() for each in owned) == [*of("t", 0, 1), *of("u", 0, 1)]
        assert set(of("u", 0, 1)) <= set(found["b"])
        assert found["c"] == ()


def test_a_static_member_comes_first_in_range() -> None:
    members = {"z": MemberSubscription(("t",), group_instance_id="1"), "a": MemberSubscription(("t",))}
    assert assign("range", IDS, {"t": 3}, members, {}) == {"z": of("t", 0, 1), "a": of("t", 2)}


@given(
    st.sampled_from(NAMES), st.integers(1, 6), st.integers(0, 12), st.lists(st.integers(0, 7), max_size=12),
)  # fmt: skip
def test_every_partition_is_assigned_once_and_a_balanced_uniform_group_stays(
    name: str, members: int, count: int, owners: list[int]
) -> None:
    before: dict[str, tuple[TopicPartition, ...]] = {}
    for number, owner in enumerate(owners[:count]):
        before[f"m{owner}"] = (*before.get(f"m{owner}", ()), TopicPartition("t", number))
    subscriptions = subscribed(*(f"m{number}" for number in range(members)))
    after = assign(name, IDS, {"t": count}, subscriptions, before)
    assert sorted(each for owned in after.values() for each in owned) == list(of("t", *range(count)))
    assert assign(name, IDS, {"t": count}, subscriptions, after) == after


def member(regex: str | None) -> MemberDescription:
    return MemberDescription("m", None, "c", "/h", ("t",), topic_regex=regex)


def test_topics_that_match_a_regular_expression_are_topics_of_the_member() -> None:
    (found,) = with_matching_topics([member("orders-.*")], ["orders-1", "orders-2", "payments"])
    assert found.topics == ("orders-1", "orders-2", "t")
    assert with_matching_topics([member(None)], ["orders-1"]) == (member(None),)


def test_an_expression_that_is_not_known_makes_no_plan() -> None:
    with pytest.raises(KafkaError, match=r"no plan"):
        with_matching_topics([member("(?=a)")], ["orders-1"])
