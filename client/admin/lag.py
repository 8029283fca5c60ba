"""The lag of a group: the distance from its committed offsets to the ends of the partitions.

Laws
    A lag is a number only where an offset is committed and the end is known. Otherwise it is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rota.client.admin.descriptions import GroupDescription
from rota.client.admin.group_offsets import list_group_offsets
from rota.client.admin.groups import describe_group_if_exists
from rota.client.admin.partition_offsets import bounds
from rota.client.admin.requests import Deadline
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The lag of one partition. `committed` is None when no offset is committed. `start` and `end` of the log are None
    when the partition does not exist or has no leader. `lag` is the number of records from the committed offset to the
    end, negative when the log ends before that offset. `member` is the id of the member that is assigned the
    partition, or None."""

    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    member: str | None = None


async def group_lag(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition] | None, deadline: Deadline
) -> dict[TopicPartition, PartitionLag]:
    """Return the lag of the given partitions, or of all that the group has committed or is assigned. Raises
    AdminFailed."""
    described = await describe_group_if_exists(cluster, group, deadline)
    members = _member_of_partition(described)
    requested = None if partitions is None else tuple(partitions)
    offsets = (await list_group_offsets(cluster, {group: requested}, deadline))[group]
    partitions = sorted({*offsets, *members} if requested is None else requested)
    ranges = await bounds(cluster, partitions, deadline)
    lags = {}
    for partition in partitions:
        at, (start, end) = offsets.get(partition), ranges.get(partition, (None, None))
        committed = None if at is None else at.offset
        lags[partition] = PartitionLag(committed, start, end, compute_lag(committed, end), members.get(partition))
    return lags


def compute_lag(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else end - committed


def _member_of_partition(group: GroupDescription | None) -> dict[TopicPartition, str]:
    members = () if group is None else group.members
    return {partition: member.member_id for member in members for partition in member.assignment}
