"""When racks count, and who is near what."""

from __future__ import annotations

from tests.property.assignor_world import infos

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.rack_info import NO_RACKS, RackInfo, all_rack_info, rack_info, with_racks
from rota.client.types import PartitionInfo, TopicPartition

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
ON = {T0: frozenset({"r1"}), T1: frozenset({"r2"}), T2: frozenset({"r1", "r2"})}


def of(on: dict[TopicPartition, frozenset[str]], **members: str | None) -> RackInfo:
    answer = {member_id: MemberSubscription(("t",), rack=rack) for member_id, rack in members.items()}
    return rack_info(infos({"t": len(on)}, on.__getitem__)["t"], answer)


def test_racks_of_members_and_partitions_are_matched() -> None:
    racks = of(ON, a="r1", b="r2", c=None)
    assert [racks.has_matching_rack("a", item) for item in ON] == [True, False, True]
    assert [racks.is_in_same_rack("b", item) for item in ON] == [False, True, True]
    assert [racks.consumers_in_rack(item) for item in ON] == [1, 1, 2]


def test_a_member_without_a_rack_matches_any_but_is_in_none() -> None:
    racks = of(ON, a="r1", c="")
    assert racks.has_matching_rack("c", T1)
    assert not racks.is_in_same_rack("c", T1)


def test_they_do_not_count_without_members_that_name_one() -> None:
    assert of(ON, a=None, b="") is NO_RACKS


def test_they_do_not_count_when_no_member_is_near_anything() -> None:
    assert of(ON, a="r9") is NO_RACKS


def test_they_do_not_count_when_all_partitions_are_everywhere() -> None:
    assert of(dict.fromkeys(ON, frozenset({"r1", "r2"})), a="r1") is NO_RACKS
    assert rack_info((), {"a": MemberSubscription((), rack="r1")}) is NO_RACKS


def test_all_rack_info_is_available_when_racks_are_not_used() -> None:
    answer = all_rack_info(infos({"t": 1}, ON.__getitem__)["t"], {"a": MemberSubscription(("t",), rack="r2")})
    assert not answer.is_used
    assert not answer.has_matching_rack("a", T0)


def test_nowhere_everything_fits() -> None:
    assert NO_RACKS.has_matching_rack("a", T0)
    assert not NO_RACKS.is_in_same_rack("a", T0)
    assert not NO_RACKS.is_used


def test_the_racks_of_a_partition_are_those_of_all_its_replicas() -> None:
    info, elsewhere = PartitionInfo("t", 0, 1, 5, (1, 2, 3, 9), (1,)), PartitionInfo("t", 1, 3, 5, (3,), (3,))
    first, second = with_racks([info, elsewhere], {1: "r1", 2: "r2", 3: None})
    assert first.racks == {"r1", "r2"}
    assert second is elsewhere
