"""uniform: as many partitions for each member as for any other, and as few moved as that allows.

Members with the same subscription are served here, as Kafka's UniformHomogeneousAssignmentBuilder does; others by
`heterogeneous`. Members are served in the order of the specification, partitions in that of topic ids.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.coordinator.consumer_group.assignors import heterogeneous
from rota.coordinator.consumer_group.assignors.spec import GroupSpec, MemberSpec, uuid_order
from rota.coordinator.consumer_group.member import Partitions


def assign(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the partitions of each member."""
    if not spec.members:
        return {}
    return _homogeneous(spec) if spec.is_homogeneous else heterogeneous.assign(spec)


def _homogeneous(spec: GroupSpec) -> dict[str, Partitions]:
    topic_ids = sorted(next(iter(spec.members.values())).topic_ids, key=uuid_order)
    if not topic_ids:
        return {}
    taken = {(tid, index) for member in spec.members.values() for tid, all_ in member.target.items() for index in all_}
    counts = {tid: spec.partition_counts[tid] for tid in topic_ids}
    everything = [(tid, index) for tid, count in counts.items() for index in range(count)]
    free = [each for each in everything if each not in taken]
    minimum, extras = divmod(len(everything), len(spec.members))
    assignment: dict[str, dict[bytes, set[int]]] = {}
    unfilled: list[tuple[str, int]] = []
    for position, (member_id, member) in enumerate(spec.members.items()):
        quota, has_extra = minimum + (extras > 0), extras > 0
        assignment[member_id], quota = _keep(member, counts, quota, free)
        if quota > 0 and has_extra and len(spec.members) - position > extras:
            quota, has_extra = quota - 1, False  # others may keep theirs
        if quota > 0:
            unfilled.append((member_id, quota))
        extras -= has_extra
    rest = iter(free)
    for member_id, quota in unfilled:
        for _, (topic_id, index) in zip(range(quota), rest, strict=False):
            assignment[member_id].setdefault(topic_id, set()).add(index)
    return {member_id: _frozen(assigned) for member_id, assigned in assignment.items()}


def _keep(
    member: MemberSpec, counts: Mapping[bytes, int], quota: int, free: list[tuple[bytes, int]]
) -> tuple[dict[bytes, set[int]], int]:
    """Return what the member keeps of its last target, and what is left of its quota. The rest is added to `free`.

    A new coordinator may know fewer partitions than the one that gave the target: `counts` has those of this one.
    """
    kept: dict[bytes, set[int]] = {}
    for topic_id, indexes in member.target.items():
        ordered = sorted(index for index in indexes if index < counts.get(topic_id, 0))
        if ordered[:quota]:
            kept[topic_id] = set(ordered[:quota])
        free += [(topic_id, index) for index in ordered[quota:]]
        quota -= min(quota, len(ordered))
    return kept, quota


def _frozen(assigned: dict[bytes, set[int]]) -> Partitions:
    return {topic_id: frozenset(indexes) for topic_id, indexes in assigned.items()}
