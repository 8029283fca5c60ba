"""How far a group is behind: committed offsets beside the ends of their partitions.

Laws
    A lag is a number only where an offset is committed and the end is known; None otherwise, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rota.client.admin.asking import Deadline
from rota.client.admin.descriptions import GroupDescription
from rota.client.admin.group_offsets import list_group_offsets
from rota.client.admin.groups import found_group
from rota.client.admin.partition_offsets import bounds
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """`committed` None: nothing is. `start`, `end` of the log: None when the partition is gone or has no leader.
    `lag`: records from the committed offset to the end, negative when the log has become shorter than that.
    `member`: the id of who reads the partition now, None for nobody."""

    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    member: str | None = None


async def group_lag(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition] | None, deadline: Deadline
) -> dict[TopicPartition, PartitionLag]:
    """Of the given partitions, or of all that the group has committed or been assigned. Raises AdminFailed."""
    described = await found_group(cluster, group, deadline)
    readers = _readers(described)
    asked = None if partitions is None else tuple(partitions)
    offsets = (await list_group_offsets(cluster, {group: asked}, deadline))[group]
    wanted = sorted({*offsets, *readers} if asked is None else asked)
    ranges = await bounds(cluster, wanted, deadline)
    lags = {}
    for one in wanted:
        at, (start, end) = offsets.get(one), ranges.get(one, (None, None))
        committed = None if at is None else at.offset
        lags[one] = PartitionLag(committed, start, end, lag_of(committed, end), readers.get(one))
    return lags


def lag_of(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else end - committed


def _readers(group: GroupDescription | None) -> dict[TopicPartition, str]:
    members = () if group is None else group.members
    return {partition: member.member_id for member in members for partition in member.assignment}
