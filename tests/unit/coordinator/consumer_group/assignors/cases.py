"""Groups for assignors, short to write: topics by letter, members with their topics and their last target."""

from __future__ import annotations

from rota.coordinator.consumer_group.assignors.spec import GroupSpec, MemberSpec
from rota.coordinator.consumer_group.member import Partitions


def topic(name: str) -> bytes:
    return name.encode().rjust(16, b"\0")


def spec(
    counts: dict[str, int],
    members: dict[str, str],
    targets: dict[str, dict[str, tuple[int, ...]]] | None = None,
    instances: dict[str, str] | None = None,
) -> GroupSpec:
    """`members`: the letters of the topics of each member."""
    old = targets or {}
    return GroupSpec(
        members={
            member_id: MemberSpec(
                topic_ids=frozenset(map(topic, names)),
                instance_id=(instances or {}).get(member_id),
                target={topic(name): frozenset(indexes) for name, indexes in old.get(member_id, {}).items()},
            )
            for member_id, names in members.items()
        },
        is_homogeneous=len({frozenset(names) for names in members.values()}) <= 1,
        partition_counts={topic(name): count for name, count in counts.items()},
    )


def shown(assignment: dict[str, Partitions]) -> dict[str, dict[str, set[int]]]:
    """The assignment by letters."""
    return {
        member_id: {topic_id.lstrip(b"\0").decode(): set(indexes) for topic_id, indexes in partitions.items()}
        for member_id, partitions in assignment.items()
    }
