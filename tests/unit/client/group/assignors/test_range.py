"""range, also against the layouts that R2 and R4 give."""

from __future__ import annotations

import pytest
from tests.property.assignor_world import infos, named

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.range import RangeAssignor


def layout(counts: dict[str, int], **members: MemberSubscription) -> dict[str, str]:
    made = RangeAssignor().assign(infos(counts), members).partitions
    return {member_id: named(mine) for member_id, mine in made.items()}


T = MemberSubscription(("t",))
BOTH = MemberSubscription(("t", "u"))


def test_r4() -> None:
    assert layout({"t": 10}, a=T, b=T, c=T) == {"a": "t:0 t:1 t:2 t:3", "b": "t:4 t:5 t:6", "c": "t:7 t:8 t:9"}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ("a", ["t:0 t:1 t:2"]),
        ("ab", ["t:0 t:1", "t:2"]),
        ("abc", ["t:0", "t:1", "t:2"]),
        ("abcd", ["t:0", "t:1", "t:2", ""]),
        ("bcd", ["t:0", "t:1", "t:2"]),
        ("cd", ["t:0 t:1", "t:2"]),
        ("d", ["t:0 t:1 t:2"]),
    ],
)
def test_r2_assignments_as_members_join_and_leave(members: str, expected: list[str]) -> None:
    assert list(layout({"t": 3}, **dict.fromkeys(members, T)).values()) == expected


def test_co_partitioned_topics_stay_together() -> None:
    assert layout({"t": 3, "u": 3}, a=BOTH, b=BOTH) == {"a": "t:0 t:1 u:0 u:1", "b": "t:2 u:2"}


def test_each_topic_goes_to_its_subscribers_only() -> None:
    assert layout({"t": 2, "u": 3}, a=T, b=BOTH) == {"a": "t:0", "b": "t:1 u:0 u:1 u:2"}


def test_static_members_keep_their_places_when_their_ids_change() -> None:
    first, second = (MemberSubscription(("t",), group_instance_id=name) for name in ("i1", "i2"))
    assert layout({"t": 3}, x=first, b=second) == {"x": "t:0 t:1", "b": "t:2"}
    assert layout({"t": 3}, b=T, y=second, z=first) == {"z": "t:0", "y": "t:1", "b": "t:2"}


def test_an_unknown_topic_is_not_assigned() -> None:
    assert layout({}, a=BOTH) == {"a": ""}


def test_without_members_the_assignment_is_empty() -> None:
    assert layout({"t": 1}) == {}
