"""Whose word counts."""

from __future__ import annotations

from rota.client.group.assignors.owned_partitions import MemberData, resolve_owned_partitions
from rota.client.types import TopicPartition

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
ALL = frozenset((P0, P1, P2))


def test_an_undisputed_claim_is_owned() -> None:
    assert resolve_owned_partitions({"a": MemberData([P0, P1], 3), "b": MemberData([P2], 3)}, ALL).owned == {
        "a": [P0, P1],
        "b": [P2],
    }


def test_the_newer_generation_is_believed() -> None:
    for first, second in (("a", "b"), ("b", "a")):
        had = resolve_owned_partitions({first: MemberData([P0], 4), second: MemberData([P0, P1], 3)}, ALL)
        assert had.owned == {first: [P0], second: [P1]}


def test_two_of_the_same_generation_both_lose_it() -> None:
    assert resolve_owned_partitions(
        {"a": MemberData([P0], 3), "b": MemberData([P0], 3), "c": MemberData([P0], 2)}, ALL
    ).owned == {
        "a": [],
        "b": [],
        "c": [],
    }


def test_a_third_of_a_newer_generation_has_it() -> None:
    member_data = {"a": MemberData([P0], 3), "b": MemberData([P0], 3), "c": MemberData([P0], 4)}
    assert resolve_owned_partitions(member_data, ALL).owned["c"] == [P0]


def test_an_undisputed_claim_of_an_old_generation_is_owned() -> None:
    assert resolve_owned_partitions({"a": MemberData([P0]), "b": MemberData([P1], 9)}, ALL).owned == {
        "a": [P0],
        "b": [P1],
    }


def test_unknown_partitions_are_ignored_and_repeated_ones_count_once() -> None:
    member_data = {"a": MemberData([P1, P0, TopicPartition("gone", 0), TopicPartition("t", -1), P1], 1)}
    assert resolve_owned_partitions(member_data, ALL).owned == {"a": [P0, P1]}


def test_the_latest_claim_of_an_older_generation_is_the_previous_owner() -> None:
    member_data = {
        "a": MemberData([P0], 5),
        "b": MemberData([P0, P1], 3),
        "c": MemberData([P0], 4),
        "d": MemberData([P1], 3),
    }
    assert resolve_owned_partitions(member_data, ALL).previous == {P0: "c", P1: "b"}


def test_claims_of_one_generation_have_no_previous_owners() -> None:
    assert resolve_owned_partitions({"a": MemberData([P0], 5), "b": MemberData([P1], 5)}, ALL).previous == {}


def test_without_members_nothing_is_owned() -> None:
    assert resolve_owned_partitions({}, ALL).owned == {}
