"""Whose word counts."""

from __future__ import annotations

from rota.client.group.assignors.claims import Claim, settle
from rota.client.types import TopicPartition

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
ALL = frozenset((P0, P1, P2))


def test_what_one_claims_is_its_own() -> None:
    assert settle({"a": Claim([P0, P1], 3), "b": Claim([P2], 3)}, ALL).owned == {"a": [P0, P1], "b": [P2]}


def test_the_newer_generation_is_believed() -> None:
    for first, second in (("a", "b"), ("b", "a")):
        had = settle({first: Claim([P0], 4), second: Claim([P0, P1], 3)}, ALL)
        assert had.owned == {first: [P0], second: [P1]}


def test_two_of_the_same_generation_both_lose_it() -> None:
    assert settle({"a": Claim([P0], 3), "b": Claim([P0], 3), "c": Claim([P0], 2)}, ALL).owned == {
        "a": [],
        "b": [],
        "c": [],
    }


def test_a_third_of_a_newer_generation_has_it() -> None:
    claims = {"a": Claim([P0], 3), "b": Claim([P0], 3), "c": Claim([P0], 4)}
    assert settle(claims, ALL).owned["c"] == [P0]


def test_an_old_claim_that_nobody_disputes_counts() -> None:
    assert settle({"a": Claim([P0]), "b": Claim([P1], 9)}, ALL).owned == {"a": [P0], "b": [P1]}


def test_partitions_that_are_gone_count_for_nothing_and_a_repeated_one_once() -> None:
    claims = {"a": Claim([P1, P0, TopicPartition("gone", 0), TopicPartition("t", -1), P1], 1)}
    assert settle(claims, ALL).owned == {"a": [P0, P1]}


def test_who_had_it_in_an_older_generation_is_remembered_the_latest_of_them() -> None:
    claims = {"a": Claim([P0], 5), "b": Claim([P0, P1], 3), "c": Claim([P0], 4), "d": Claim([P1], 3)}
    assert settle(claims, ALL).before == {P0: "c", P1: "b"}


def test_when_all_are_of_one_generation_there_is_no_before() -> None:
    assert settle({"a": Claim([P0], 5), "b": Claim([P1], 5)}, ALL).before == {}


def test_nobody_claims_nothing() -> None:
    assert settle({}, ALL).owned == {}
