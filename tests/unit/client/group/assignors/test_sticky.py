"""sticky: what members remember, and what a leader makes of what they say."""

from __future__ import annotations

import pytest
from tests.property.assignor_world import Group, infos, named

from rota.client.group.assignors.base import MemberSubscription, RebalanceProtocol
from rota.client.group.assignors.owned_partitions import MemberData
from rota.client.group.assignors.sticky import StickyAssignor, member_data_of
from rota.client.types import TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
GARBAGE = [b"", b"\x00", b"\xff" * 12, b"\x00\x00\x00\x01\x00", b"\x7f\xff\xff\xff", b"garbage of some length"]


def layout(group: Group) -> dict[str, str]:
    return {member_id: named(mine) for member_id, mine in group.owned.items()}


def test_it_is_eager() -> None:
    assert StickyAssignor().supports == {RebalanceProtocol.EAGER}


def test_a_new_member_has_no_user_data() -> None:
    assert StickyAssignor().user_data(["t"]) is None


def test_user_data_has_the_previous_assignment_in_the_format_of_java() -> None:
    assignor = StickyAssignor()
    assignor.on_assignment([T0, U0, T1], None, 7)
    topics = "000000020001740000000200000000000000010001750000000100000000"
    assert assignor.user_data(["t"]) == bytes.fromhex(topics + "00000007")


def test_decoded_user_data_is_the_claim_of_the_member() -> None:
    assignor = StickyAssignor()
    assignor.on_assignment([T0, U0, T1], None, 7)
    assert member_data_of(assignor.user_data(["t"])) == MemberData([T0, T1, U0], 7)


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_no_claim(garbage: bytes) -> None:
    assert member_data_of(garbage) == MemberData()
    members = {"a": MemberSubscription(("t",), user_data=garbage), "b": MemberSubscription(("t",))}
    made = StickyAssignor().assign(infos({"t": 3}), members).partitions
    assert [len(mine) for mine in made.values()] == [2, 1]


def test_owned_partitions_of_the_subscription_are_ignored() -> None:
    members = {"a": MemberSubscription(("t",)), "b": MemberSubscription(("t",), owned=(T0,), generation_id=3)}
    made = StickyAssignor().assign(infos({"t": 2}), members).partitions
    assert made == {"a": [T0], "b": [T1]}


def test_r4_starts_like_round_robin_then_balance_first_stickiness_second() -> None:
    group = Group("sticky", {"t": 10})
    for member_id in "abc":
        group.join(member_id)
    group.rebalance()
    assert layout(group) == {"a": "t:0 t:3 t:6 t:9", "b": "t:1 t:4 t:7", "c": "t:2 t:5 t:8"}
    del group.members["c"]
    group.rebalance()
    assert layout(group) == {"a": "t:0 t:2 t:3 t:6 t:9", "b": "t:1 t:4 t:5 t:7 t:8"}


def test_r4_when_the_third_member_of_the_range_layout_dies() -> None:
    group = Group("sticky", {"t": 10})
    numbers = {"a": range(4), "b": range(4, 7)}
    for member_id, mine in numbers.items():
        group.join(member_id)
        group.members[member_id].take([TopicPartition("t", number) for number in mine], 3)
    group.rebalance()
    assert layout(group) == {"a": "t:0 t:1 t:2 t:3 t:7", "b": "t:4 t:5 t:6 t:8 t:9"}


def test_without_members_or_topics_the_assignment_is_empty() -> None:
    assert StickyAssignor().assign(infos({"t": 1}), {}).partitions == {}
    assert StickyAssignor().assign({}, {"a": MemberSubscription(("t",))}).partitions == {"a": []}


def test_subscriptions_that_differ_take_the_other_way() -> None:
    group = Group("sticky", {"t": 1, "u": 3})
    group.join("a", "t", "u")
    group.join("b", "t")
    group.rebalance()
    assert layout(group) == {"a": "u:0 u:1 u:2", "b": "t:0"}
