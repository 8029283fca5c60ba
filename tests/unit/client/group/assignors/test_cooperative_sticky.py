"""cooperative-sticky: nobody is given what another one still reads."""

from __future__ import annotations

import pytest
from tests.property.assignor_world import Group, infos, named

from rota.client.group.assignors.base import MemberSubscription, RebalanceProtocol
from rota.client.group.assignors.cooperative_sticky import CooperativeStickyAssignor, adjust_assignment, member_data_of
from rota.client.group.assignors.owned_partitions import MemberData
from rota.client.group.assignors.sticky import StickyAssignor
from rota.client.types import TopicPartition

T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))


def test_it_speaks_both_protocols() -> None:
    assert CooperativeStickyAssignor().supports == set(RebalanceProtocol)


def test_its_user_data_is_the_generation_as_java_writes_it() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.user_data(["t"]) == b"\xff\xff\xff\xff"
    assignor.on_assignment([T0], None, 258)
    assert assignor.user_data(["t"]) == b"\x00\x00\x01\x02"


def test_the_generation_of_the_subscription_counts() -> None:
    assert member_data_of(MemberSubscription(("t",), (T0,), 9, user_data=b"\x00\x00\x00\x02")) == MemberData((T0,), 9)


def test_an_older_subscription_has_it_in_its_user_data() -> None:
    assert member_data_of(MemberSubscription(("t",), (T0,), user_data=b"\x00\x00\x00\x02")) == MemberData((T0,), 2)


def test_librdkafka_s_user_data_are_those_of_sticky() -> None:
    sticky = StickyAssignor()
    sticky.on_assignment([T0, T1], None, 6)
    assert member_data_of(MemberSubscription(("t",), (T0, T1), user_data=sticky.user_data(()))) == MemberData(
        (T0, T1), 6
    )


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"\xff" * 9, b"\x7f\xff\xff\xff\x00"])
def test_garbage_is_no_generation(garbage: bytes) -> None:
    assert member_data_of(MemberSubscription(("t",), (T0,), user_data=garbage)) == MemberData((T0,), -1)


def test_a_moving_partition_is_unassigned_for_one_rebalance() -> None:
    group = Group("cooperative-sticky", {"t": 4})
    group.join("a")
    assert group.rebalance() == 1
    group.join("b")
    assert group.rebalance() == 2
    first, second = group.seen[-2:]
    assert {m: named(mine) for m, mine in first.items()} == {"a": "t:0 t:1", "b": ""}
    assert {m: named(mine) for m, mine in second.items()} == {"a": "t:0 t:1", "b": "t:2 t:3"}


def test_an_unowned_partition_is_assigned_at_once() -> None:
    members = {"a": MemberSubscription(("t",), (T0,), 3), "b": MemberSubscription(("t",), (), 3)}
    assert CooperativeStickyAssignor().assign(infos({"t": 2}), members).partitions == {"a": [T0], "b": [T1]}


def test_a_member_that_leaves_takes_one_round() -> None:
    group = Group("cooperative-sticky", {"t": 6})
    for member_id in "abc":
        group.join(member_id)
    group.rebalance()
    before = group.owned
    del group.members["b"]
    assert group.rebalance() == 1
    assert all(before[member_id] <= mine for member_id, mine in group.owned.items())


def test_a_topic_that_a_member_no_longer_wants_is_free_at_once() -> None:
    group = Group("cooperative-sticky", {"t": 2, "u": 2})
    group.join("a", "t", "u")
    group.join("b", "t", "u")
    group.rebalance()
    group.members["a"].topics = ("t",)
    group.rebalance()
    assert sorted(map(len, group.owned.values())) == [2, 2]
    assert {item.topic for item in group.owned["a"]} == {"t"}


def test_two_that_claim_the_same_both_give_it_up() -> None:
    shares = {"a": [T0], "b": [T1], "c": [T2]}
    claims = {"a": MemberData([T0, T2], 5), "b": MemberData([T0], 5), "c": MemberData([], 5)}
    assert adjust_assignment(shares, claims) == {"a": [], "b": [T1], "c": []}


def test_a_claim_of_an_older_generation_does_not_revoke_the_partition() -> None:
    claims = {"a": MemberData([T0], 5), "b": MemberData([T0], 3)}
    assert adjust_assignment({"a": [T0], "b": []}, claims) == {"a": [T0], "b": []}
