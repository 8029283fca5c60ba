"""range with racks: near if the shares allow it."""

from __future__ import annotations

from tests.property.assignor_world import infos, named

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.range import RangeAssignor
from rota.client.types import TopicPartition


def layout(counts: dict[str, int], on: dict[str, str], **members: MemberSubscription) -> dict[str, str]:
    """`on`: racks by partition, as t:0="r1 r2"."""

    def where(partition: TopicPartition) -> frozenset[str]:
        return frozenset(on.get(f"{partition.topic}:{partition.partition}", "").split())

    made = RangeAssignor().assign(infos(counts, where), members).partitions
    return {member_id: named(mine) for member_id, mine in made.items()}


def of(topics: str, rack: str | None = None) -> MemberSubscription:
    return MemberSubscription(tuple(topics.split()), rack=rack)


APART = {"t:0": "r2", "t:1": "r1", "t:2": "r2", "t:3": "r1"}


def test_each_reads_near_by() -> None:
    assert layout({"t": 4}, APART, a=of("t", "r1"), b=of("t", "r2")) == {"a": "t:1 t:3", "b": "t:0 t:2"}


def test_balance_has_priority_over_racks() -> None:
    assert layout({"t": 4}, APART, a=of("t", "r1"), b=of("t", "r1")) == {"a": "t:1 t:3", "b": "t:0 t:2"}
    assert layout({"t": 3}, APART, a=of("t", "r1"), b=of("t", "r2"), c=of("t", "r2")) == {
        "a": "t:1",
        "b": "t:0",
        "c": "t:2",
    }


def test_a_member_without_a_rack_gets_any_partition() -> None:
    assert layout({"t": 4}, APART, a=of("t"), b=of("t", "r1")) == {"a": "t:0 t:1", "b": "t:2 t:3"}


def test_co_partitioned_topics_stay_together_and_near() -> None:
    on = APART | {key.replace("t", "u"): rack for key, rack in APART.items()}
    assert layout({"t": 4, "u": 4}, on, a=of("t u", "r1"), b=of("t u", "r2")) == {
        "a": "t:1 t:3 u:1 u:3",
        "b": "t:0 t:2 u:0 u:2",
    }


def test_co_partitioned_topics_stay_together_rather_than_near() -> None:
    on = APART | {"u:0": "r1", "u:1": "r2", "u:2": "r1", "u:3": "r2"}
    assert layout({"t": 4, "u": 4}, on, a=of("t u", "r1"), b=of("t u", "r2")) == {
        "a": "t:0 t:1 u:0 u:1",
        "b": "t:2 t:3 u:2 u:3",
    }


def test_a_topic_without_racks_is_divided_as_ever() -> None:
    assert layout({"t": 4, "v": 2}, APART, a=of("t v", "r1"), b=of("t v", "r2")) == {
        "a": "t:1 t:3 v:0",
        "b": "t:0 t:2 v:1",
    }
