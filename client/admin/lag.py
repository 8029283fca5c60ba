"""The lag of a group: the distance from its committed offsets to the ends of the partitions.

Laws
    A lag is a number only where an offset is committed and the end is known. Otherwise it is None, never 0.
    So is an age: 0 only where nothing is unread, else the time since the timestamp of the oldest unread record that a
    leader returned. What retention has deleted is not unread: the age is that of the first record that is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rota.client.admin.descriptions import GroupDescription
from rota.client.admin.group_offsets import list_group_offsets
from rota.client.admin.groups import describe_group_if_exists
from rota.client.admin.partition_offsets import bounds
from rota.client.admin.requests import Deadline
from rota.client.admin.unread_times import unread_times
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The lag of one partition. `committed` is None when no offset is committed. `start` and `end` of the log are None
    when the partition does not exist or has no leader. `lag` is the number of records from the committed offset to the
    end, negative when the log ends before that offset. `member` is the id of the member that is assigned the
    partition, or None. `age_ms` is the time since the timestamp of the oldest unread record; 0 when nothing is unread;
    None when it is not known or was not asked for."""

    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    member: str | None = None
    age_ms: int | None = None


async def group_lag(
    cluster: Cluster,
    group: str,
    partitions: Iterable[TopicPartition] | None,
    deadline: Deadline,
    *,
    with_age: bool = False,
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
    return await _with_ages(cluster, lags, deadline) if with_age else lags


async def _with_ages(
    cluster: Cluster, lags: Mapping[TopicPartition, PartitionLag], deadline: Deadline
) -> dict[TopicPartition, PartitionLag]:
    """Return the lags with ages. The partitions that are furthest behind are requested first (PARTITIONS_MAX)."""
    unread = sorted((key for key, lag in lags.items() if (lag.lag or 0) > 0), key=lambda key: -(lags[key].lag or 0))
    times = await unread_times(cluster, {key: first_unread(lags[key]) for key in unread}, deadline)
    now_ms = int(time.time() * 1000)
    return {key: replace(lag, age_ms=compute_age(lag.lag, times.get(key), now_ms)) for key, lag in lags.items()}


def first_unread(lag: PartitionLag) -> int:
    """Return the offset of the oldest record that is unread and still in the log."""
    assert lag.committed is not None, "without a committed offset nothing is known to be unread"
    return max(lag.committed, lag.start or 0)


def compute_age(lag: int | None, time_ms: int | None, now_ms: int) -> int | None:
    """Return the age of the oldest unread record, which has this timestamp."""
    if lag == 0:
        return 0
    return None if time_ms is None else max(now_ms - time_ms, 0)


def compute_lag(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else end - committed


def _member_of_partition(group: GroupDescription | None) -> dict[TopicPartition, str]:
    members = () if group is None else group.members
    return {partition: member.member_id for member in members for partition in member.assignment}
