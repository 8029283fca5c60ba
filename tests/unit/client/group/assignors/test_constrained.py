"""Sticky sharing among members that all want the same."""

from __future__ import annotations

from tests.property.assignor_world import named

from rota.client.group.assignors.constrained import constrained_assign
from rota.client.group.assignors.rack_info import RackInfo
from rota.client.types import TopicPartition


def share(count: int, **owned: str) -> dict[str, str]:
    """Partitions of topic t by number: a="0 1"."""
    partitions = [TopicPartition("t", number) for number in range(count)]
    had = {member_id: [partitions[int(number)] for number in mine.split()] for member_id, mine in owned.items()}
    return {member_id: named(mine).replace("t:", "") for member_id, mine in constrained_assign(partitions, had).items()}


def test_it_starts_as_round_robin_does() -> None:
    assert share(10, a="", b="", c="") == {"a": "0 3 6 9", "b": "1 4 7", "c": "2 5 8"}


def test_r4_the_third_member_of_the_range_layout_dies() -> None:
    made = share(10, a="0 1 2 3", b="4 5 6")
    assert made == {"a": "0 1 2 3 7", "b": "4 5 6 8 9"}


def test_nothing_moves_without_need() -> None:
    assert share(5, a="4 1", b="0 2 3") == {"a": "1 4", "b": "0 2 3"}


def test_a_new_member_gets_only_the_surplus_partitions() -> None:
    assert share(6, a="0 1 2", b="3 4 5", c="") == {"a": "0 1", "b": "3 4", "c": "2 5"}


def test_of_two_that_have_too_much_the_first_keeps_one_more() -> None:
    assert share(5, a="0 1 2", b="3 4", c="") == {"a": "0 1", "b": "3 4", "c": "2"}
    assert share(4, a="0 1", b="2 3", c="") == {"a": "0 1", "b": "2", "c": "3"}


def test_more_members_than_partitions() -> None:
    assert share(2, a="", b="1", c="", d="") == {"a": "0", "b": "1", "c": "", "d": ""}


def test_new_partitions_even_out() -> None:
    assert share(6, a="0", b="1 2 3") == {"a": "0 4 5", "b": "1 2 3"}


def test_no_partitions() -> None:
    assert share(0, a="", b="") == {"a": "", "b": ""}


def near(racks: str, **members: str) -> RackInfo:
    """The rack of each partition, and of members."""
    return RackInfo(members, {TopicPartition("t", n): frozenset({rack}) for n, rack in enumerate(racks.split())})


def by_rack(racks: str, members: dict[str, str], **owned: str) -> dict[str, str]:
    partitions = [TopicPartition("t", number) for number in range(len(racks.split()))]
    had = {member_id: [partitions[int(number)] for number in mine.split()] for member_id, mine in owned.items()}
    made = constrained_assign(partitions, had, near(racks, **members))
    return {member_id: named(mine).replace("t:", "") for member_id, mine in made.items()}


def test_each_reads_near_by() -> None:
    assert by_rack("y x y x", {"a": "x", "b": "y"}, a="", b="") == {"a": "1 3", "b": "0 2"}


def test_balance_has_priority_over_racks() -> None:
    assert by_rack("x x x x", {"a": "x", "b": "y"}, a="", b="") == {"a": "0 1", "b": "2 3"}
    assert by_rack("x x x y", {"a": "x", "b": "y"}, a="", b="") == {"a": "0 1", "b": "2 3"}


def test_the_extra_partition_goes_to_the_member_in_its_rack() -> None:
    assert by_rack("x y y", {"a": "x", "b": "y"}, a="", b="") == {"a": "0", "b": "1 2"}


def test_partitions_in_other_racks_may_move() -> None:
    assert by_rack("x y x y", {"a": "x", "b": "y"}, a="1 2", b="0 3") == {"a": "0 2", "b": "1 3"}


def test_without_racks_of_all_members_nothing_moves() -> None:
    assert by_rack("x y x y", {"a": "x"}, a="0 2", b="1 3") == {"a": "0 2", "b": "1 3"}
