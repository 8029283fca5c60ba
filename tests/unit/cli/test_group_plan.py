"""Plans: the same assignments as the client's assignors, from a description of the group."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.group_plan import (
    ASSIGNORS,
    Plan,
    changed_members,
    extended,
    make_broker_plan,
    make_plan,
    member_change,
    plan_document,
)
from rota.cli.settings import UsageError
from rota.client import KafkaError, MemberDescription, TopicPartition
from rota.client.group.assignors.base import MemberSubscription


def partitions(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


def member(name: str, *numbers: int) -> MemberDescription:
    return MemberDescription(f"{name}-id", None, name, "/h", ("t",), partitions(*numbers))


def planned(assignor: str, members: int, count: int, before: dict[str, tuple[TopicPartition, ...]]) -> Plan:
    subscriptions = {f"m{number}": MemberSubscription(("t",)) for number in range(members)}
    return make_plan(assignor, {"t": extended("t", (), count)}, subscriptions, before)


def test_a_third_member_takes_as_little_as_the_assignor_allows() -> None:
    before = {"m0": partitions(0, 1, 2), "m1": partitions(3, 4, 5)}
    plans = {name: planned(name, 3, 6, before) for name in ASSIGNORS}
    assert {name: (plan.moved, plan.kept, plan.paused, plan.rebalances) for name, plan in plans.items()} == {
        "range": (3, 3, 6, 1),
        "roundrobin": (4, 2, 6, 1),
        "sticky": (2, 4, 6, 1),
        "cooperative-sticky": (2, 4, 2, 2),
    }
    assert {len(each) for plan in plans.values() for each in plan.after.values()} == {2}


def test_a_plan_of_the_broker_pauses_only_what_moves() -> None:
    before = {"m0": partitions(0, 1, 2), "m1": partitions(3, 4, 5)}
    subscriptions = {f"m{number}": MemberSubscription(("t",)) for number in range(3)}
    plan = make_broker_plan("uniform", {"t": b"t" * 16}, {"t": extended("t", (), 6)}, subscriptions, before)
    assert (plan.moved, plan.kept, plan.paused, plan.rebalances) == (2, 4, 2, 1)
    with pytest.raises(KafkaError, match="no topic ids"):
        make_broker_plan("uniform", {"t": None}, {"t": extended("t", (), 6)}, subscriptions, before)


def test_new_partitions_do_not_move() -> None:
    plan = planned("cooperative-sticky", 2, 4, {"m0": partitions(0), "m1": partitions(1)})
    assert (plan.moved, plan.kept, plan.paused, plan.rebalances) == (0, 2, 0, 1)
    assert [len(plan.gained(name)) for name in ("m0", "m1")] == [1, 1]


def test_a_member_that_leaves_loses_everything() -> None:
    plan = planned("sticky", 1, 2, {"m0": partitions(0), "gone": partitions(1)})
    document = plan_document(plan)
    removed, stays = document["members"]
    assert (removed["member_id"], removed["after"], removed["lost"]) == ("gone", [], [{"topic": "t", "partition": 1}])
    assert stays["gained"] == removed["lost"]
    assert (document["moved"], document["idle_members"]) == (1, 0)


@given(
    st.sampled_from(sorted(ASSIGNORS)), st.integers(1, 6), st.integers(0, 12),
    st.lists(st.integers(0, 7), max_size=12),
)  # fmt: skip
def test_every_plan_assigns_every_partition_once(name: str, members: int, count: int, owners: list[int]) -> None:
    before: dict[str, tuple[TopicPartition, ...]] = {}
    for number, owner in enumerate(owners[:count]):
        before[f"m{owner}"] = (*before.get(f"m{owner}", ()), TopicPartition("t", number))
    plan = planned(name, members, count, before)
    assert sorted(each for owned in plan.after.values() for each in owned) == list(partitions(*range(count)))
    assert plan.moved + plan.kept == min(count, len(owners))
    assert plan.rebalances <= 2


@pytest.mark.parametrize(
    ("change", "remove", "names"),
    [
        (("", 0), [], ["a-id", "b-id"]),
        (("+", 2), [], ["a-id", "b-id", "~new-1", "~new-2"]),
        (("-", 1), [], ["a-id"]),
        (("", 1), [], ["a-id"]),
        (("", 3), ["a"], ["b-id", "~new-1", "~new-2"]),
        (("", 0), ["b-id"], ["a-id"]),
    ],
)
def test_members_after_the_change(change: tuple[str, int], remove: list[str], names: list[str]) -> None:
    changed = changed_members([member("b", 1), member("a", 0)], change, remove, [])
    assert list(changed) == names
    assert {each.topics for each in changed.values()} == {("t",)}


@pytest.mark.parametrize(
    ("change", "remove", "error_text"),
    [(("-", 2), [], "0 members would be left"), (("", 0), ["x"], "no member has")],
)
def test_a_change_that_leaves_nothing_is_refused(change: tuple[str, int], remove: list[str], error_text: str) -> None:
    with pytest.raises(UsageError, match=error_text):
        changed_members([member("a"), member("b")], change, remove, [])


def test_a_group_without_members_needs_topics() -> None:
    with pytest.raises(UsageError, match="--topic"):
        changed_members([], ("+", 1), [], [])
    assert changed_members([], ("+", 1), [], ["t"]) == {"~new-1": MemberSubscription(("t",))}


@pytest.mark.parametrize(("text", "change"), [("+2", ("+", 2)), ("-1", ("-", 1)), ("5", ("", 5))])
def test_changes_are_signed_numbers(text: str, change: tuple[str, int]) -> None:
    assert member_change(text) == change


@pytest.mark.parametrize("text", ["", "+", "two", "+2.5", "99999", "--1"])
def test_an_invalid_member_change_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"\+N"):
        member_change(text)
