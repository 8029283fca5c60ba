"""Reset the committed offsets of a group: to the start or end of the log, a time, an offset, or by a number of records.

Laws
    Either the offsets of all partitions are found, or none is set.
    Each offset is between the start and the end of its log, as with Kafka's tool.
    A group with members is never reset: they would keep their positions and commit over the new offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Final

from rota.client.admin.call_results import CallResults, ErrorContext
from rota.client.admin.descriptions import GroupDescription
from rota.client.admin.group_offsets import alter_group_offsets, list_group_offsets
from rota.client.admin.groups import describe_group_if_exists
from rota.client.admin.partition_lookup import resolve_partitions
from rota.client.admin.partition_offsets import bounds, list_offsets
from rota.client.admin.requests import Deadline
from rota.client.checks import INT64, whole_number
from rota.client.errors import BrokerError, IllegalUse, KafkaError
from rota.client.network.cluster import Cluster
from rota.client.types import OffsetAndTimestamp, TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

WHAT: Final = "resetting offsets"
ENDS: Final = ("earliest", "latest")
Bounds = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """The target of a reset. Exactly one field is set; raises IllegalUse otherwise and for a number out of range,
    IllegalArgument for no integer."""

    to: str | None = None
    time_ms: int | None = None
    offset: int | None = None
    shift_by: int | None = None

    def __post_init__(self) -> None:
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        if len(given) != 1:
            names = " and ".join(given) or "none of them"
            raise IllegalUse(f"reset_group_offsets takes one of to, time_ms, offset, shift_by; it was given {names}")
        if self.to is not None and self.to not in ENDS:
            raise IllegalUse(f"reset_group_offsets(to={self.to!r}): it must be one of {', '.join(ENDS)}")
        for parameter in ("time_ms", "offset", "shift_by"):
            number = getattr(self, parameter)
            if number is not None:
                whole_number(parameter, number, range(1 << 63) if parameter == "time_ms" else INT64)


async def reset_group_offsets(
    cluster: Cluster,
    group: str,
    what: Iterable[str | TopicPartition] | None,
    goal: ResetTarget,
    deadline: Deadline,
    *,
    dry_run: bool,
) -> dict[TopicPartition, int]:
    """Return the offsets that were set, or with `dry_run` would be. Raises BrokerError (NON_EMPTY_GROUP) while the
    group has members, AdminFailed."""
    require_no_members(group, await describe_group_if_exists(cluster, group, deadline))
    committed = (await list_group_offsets(cluster, {group: None}, deadline))[group]
    known = {partition: at.offset for partition, at in committed.items() if at is not None}
    requested = tuple(known) if what is None else await resolve_partitions(cluster, what, deadline)
    ranges = await bounds(cluster, requested, deadline)
    if what is None:
        requested = tuple(ranges)  # partitions that no longer exist get no offset
    times = {partition: goal.time_ms for partition in requested if goal.time_ms is not None and partition in ranges}
    at_time = await list_offsets(cluster, times, deadline, isolation_level="read_uncommitted")
    offsets = plan_reset(group, requested, goal, ranges, known, at_time)
    if not dry_run:
        await alter_group_offsets(cluster, group, offsets, deadline)
    return offsets


def require_no_members(group: str, described: GroupDescription | None) -> None:
    """Raises BrokerError (NON_EMPTY_GROUP) when the group has members."""
    if described is not None and described.members:
        names = ", ".join(member.group_instance_id or member.member_id for member in described.members)
        remedy = f"Stop its members ({names}), or remove them with remove_members(), then reset."
        raise BrokerError(ErrorCode.NON_EMPTY_GROUP, WHAT, group=group, remedy=remedy)


def plan_reset(
    group: str,
    requested: Iterable[TopicPartition],
    goal: ResetTarget,
    ranges: Bounds,
    committed: Mapping[TopicPartition, int],
    at_time: Mapping[TopicPartition, OffsetAndTimestamp | None],
) -> dict[TopicPartition, int]:
    """Return the new offset of each partition. Raises AdminFailed when one of them has none."""
    results = CallResults[TopicPartition, int](
        WHAT, 8, requested, lambda key: ErrorContext(key.topic, key.partition, group)
    )
    for partition in results.pending():
        if partition not in ranges:
            results.fail(
                partition, results.error(partition, ErrorCode.LEADER_NOT_AVAILABLE, "the partition has no leader")
            )
        elif goal.shift_by is not None and partition not in committed:
            results.fail(
                partition, KafkaError(f"{WHAT} of group {group}: nothing is committed for {partition} to shift")
            )
        else:
            results.succeed(
                partition, _reset_offset(goal, ranges[partition], committed.get(partition, 0), at_time.get(partition))
            )
    if results.failed:
        for partition in tuple(results.done):
            del results.done[partition]
    return results.all_or_raise()


def _reset_offset(
    goal: ResetTarget, bounds: tuple[int, int], committed: int, at_time: OffsetAndTimestamp | None
) -> int:
    start, end = bounds
    if goal.to is not None:
        return start if goal.to == "earliest" else end
    if goal.time_ms is not None:
        return end if at_time is None else at_time.offset
    if goal.offset is not None:
        return min(max(goal.offset, start), end)
    return min(max(committed + (goal.shift_by or 0), start), end)
