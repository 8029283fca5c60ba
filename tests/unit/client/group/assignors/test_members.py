"""Who is served first."""

from __future__ import annotations

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.members import consumers_per_topic, sorted_member_ids

DYNAMIC, OTHER = MemberSubscription(("a", "b")), MemberSubscription(("b",))
STATIC = MemberSubscription(("b", "a", "b"), group_instance_id="i2")
FIRST_STATIC = MemberSubscription(("c",), group_instance_id="i1")


def test_dynamic_members_are_sorted_by_member_id() -> None:
    assert sorted_member_ids({"m2": DYNAMIC, "m10": OTHER, "m1": OTHER}) == ["m1", "m10", "m2"]


def test_static_members_are_first_sorted_by_instance_id() -> None:
    assert sorted_member_ids({"m1": DYNAMIC, "z": FIRST_STATIC, "y": STATIC}) == ["z", "y", "m1"]


def test_members_of_one_instance_are_sorted_by_member_id() -> None:
    assert sorted_member_ids({"n": STATIC, "m": STATIC}) == ["m", "n"]


def test_topics_by_name_each_with_its_subscribers_once() -> None:
    found = consumers_per_topic({"m": DYNAMIC, "o": OTHER, "s": STATIC})
    assert list(found.items()) == [("a", ["s", "m"]), ("b", ["s", "m", "o"])]
