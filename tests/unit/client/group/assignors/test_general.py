"""Sticky sharing among members that want different topics."""

from __future__ import annotations

from tests.property.assignor_world import infos, named

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.general import general_assign
from rota.client.group.assignors.owned_partitions import MemberData, resolve_owned_partitions
from rota.client.group.assignors.rack_info import RackInfo
from rota.client.types import TopicPartition


def parse(text: str) -> list[TopicPartition]:
    pairs = [item.split(":") for item in text.split()]
    return [TopicPartition(topic, int(number)) for topic, number in pairs]


def share(counts: dict[str, int], **members: tuple[str, str] | tuple[str, str, int]) -> dict[str, str]:
    """a=("topics", "what it had", since when)."""
    partitions = [TopicPartition(topic, one.partition) for topic in counts for one in infos(counts)[topic]]
    claims = {member_id: MemberData(parse(answer[1]), (*answer, 1)[2]) for member_id, answer in members.items()}
    wanted = {member_id: MemberSubscription(tuple(answer[0].split())) for member_id, answer in members.items()}
    made = general_assign(partitions, wanted, resolve_owned_partitions(claims, frozenset(partitions)))
    return {member_id: named(mine) for member_id, mine in made.items()}


def test_the_example_of_kip_54() -> None:
    """Three members, topics of one, two and three partitions: round-robin would give C2 four of them."""
    made = share({"t0": 1, "t1": 2, "t2": 3}, C0=("t0", ""), C1=("t0 t1", ""), C2=("t0 t1 t2", ""))
    assert made == {"C0": "t0:0", "C1": "t1:0 t1:1", "C2": "t2:0 t2:1 t2:2"}


def test_and_when_its_first_member_leaves_the_others_keep_all() -> None:
    made = share({"t0": 1, "t1": 2, "t2": 3}, C1=("t0 t1", "t1:0 t1:1"), C2=("t0 t1 t2", "t2:0 t2:1 t2:2"))
    assert made == {"C1": "t0:0 t1:0 t1:1", "C2": "t2:0 t2:1 t2:2"}


def test_a_member_loses_partitions_of_unsubscribed_topics() -> None:
    made = share({"t": 2, "u": 2}, a=("t", "t:0 u:0"), b=("t u", "t:1 u:1"))
    assert made == {"a": "t:0 t:1", "b": "u:0 u:1"}


def test_partitions_move_only_from_those_that_have_two_more() -> None:
    made = share({"t": 3, "u": 1}, a=("t", "t:0 t:1"), b=("t u", "u:0 t:2"))
    assert made == {"a": "t:0 t:1", "b": "t:2 u:0"}
    made = share({"t": 4, "u": 1}, a=("t", "t:0 t:1 t:2 t:3"), b=("t u", "u:0"))
    assert made == {"a": "t:1 t:2 t:3", "b": "t:0 u:0"}


def test_the_only_subscriber_of_a_topic_gets_all_its_partitions() -> None:
    assert share({"t": 1, "u": 5}, a=("t u", ""), b=("t", "")) == {"a": "u:0 u:1 u:2 u:3 u:4", "b": "t:0"}


def test_a_member_that_missed_a_generation_gets_surplus_partitions_back() -> None:
    made = share({"t": 4, "u": 1}, a=("t", "t:0 t:1 t:2 t:3", 5), b=("t u", "t:0 u:0", 4), c=("t", "", 5))
    assert made == {"a": "t:2 t:3", "b": "t:0 u:0", "c": "t:1"}


def test_but_not_of_a_topic_that_it_no_longer_wants() -> None:
    made = share({"t": 4, "u": 1}, a=("t", "t:0 t:1 t:2 t:3", 5), b=("u", "t:3", 4))
    assert made == {"a": "t:0 t:1 t:2 t:3", "b": "u:0"}


def test_two_members_never_swap_partitions_of_one_topic() -> None:
    before = {"a": "t:0 t:1 t:2 t:3", "b": "t:4 t:5", "c": ""}
    made = share({"t": 6, "u": 2, "v": 3}, a=("t", before["a"]), b=("t u", before["b"]), c=("t v", before["c"]))
    assert not set(parse(before["b"])) & set(parse(made["a"]))


def by_rack(a: str, b: str) -> dict[str, str]:
    """a, in rack x, wants t; b, in rack y, wants t and u: what they had, what they get."""
    partitions = parse("t:0 t:1 t:2 t:3 u:0")
    on = dict(zip(partitions, (frozenset(racks) for racks in ("y", "x", "y", "x", "xy")), strict=True))
    members = {"a": MemberSubscription(("t",)), "b": MemberSubscription(("t", "u"))}
    had = resolve_owned_partitions({"a": MemberData(parse(a), 1), "b": MemberData(parse(b), 1)}, frozenset(partitions))
    made = general_assign(partitions, members, had, RackInfo({"a": "x", "b": "y"}, on))
    return {member_id: named(mine) for member_id, mine in made.items()}


def test_each_reads_near_by() -> None:
    assert by_rack("", "") == {"a": "t:1 t:3", "b": "t:0 t:2 u:0"}


def test_partitions_in_other_racks_may_move() -> None:
    assert by_rack("t:0 t:1", "t:2 t:3 u:0") == {"a": "t:1 t:3", "b": "t:0 t:2 u:0"}
