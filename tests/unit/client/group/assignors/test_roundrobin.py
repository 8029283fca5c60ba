"""roundrobin, also against the layout that R4 gives."""

from __future__ import annotations

from tests.property.assignor_world import infos, named

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.roundrobin import RoundRobinAssignor


def layout(counts: dict[str, int], **members: MemberSubscription) -> dict[str, str]:
    made = RoundRobinAssignor().assign(infos(counts), members).partitions
    return {member_id: named(mine) for member_id, mine in made.items()}


T = MemberSubscription(("t",))
BOTH = MemberSubscription(("t", "u"))


def test_r4() -> None:
    assert layout({"t": 10}, a=T, b=T, c=T) == {"a": "t:0 t:3 t:6 t:9", "b": "t:1 t:4 t:7", "c": "t:2 t:5 t:8"}


def test_the_rotation_continues_across_topics() -> None:
    assert layout({"t": 3, "u": 3}, a=BOTH, b=BOTH) == {"a": "t:0 t:2 u:1", "b": "t:1 u:0 u:2"}


def test_members_that_do_not_subscribe_are_skipped() -> None:
    assert layout({"t": 3, "u": 2}, a=T, b=BOTH) == {"a": "t:0 t:2", "b": "t:1 u:0 u:1"}


def test_static_members_come_first() -> None:
    static = MemberSubscription(("t",), group_instance_id="i")
    assert layout({"t": 2}, a=T, z=static) == {"z": "t:0", "a": "t:1"}


def test_without_topics_or_members_the_assignment_is_empty() -> None:
    assert layout({}, a=BOTH) == {"a": ""}
    assert layout({"t": 1}) == {}
