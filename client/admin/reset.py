"""Setting a group's offsets to the beginning, the end, a time, an offset, or so many records on or back.

Laws
    Either all offsets can be found, or none is set.
    What is set lies in the log: from its start to its end, as Kafka's own tool does it.
    A group with members is never reset: they would go on where they are, and commit over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final

from rota.client.admin.asking import Deadline
from rota.client.admin.descriptions import GroupDescription
from rota.client.admin.group_offsets import alter_group_offsets, list_group_offsets
from rota.client.admin.groups import found_group
from rota.client.admin.outcomes import Outcomes, Place
from rota.client.admin.partition_offsets import bounds, list_offsets
from rota.client.admin.places import partitions_of
from rota.client.errors import BrokerError, IllegalUse, KafkaError
from rota.client.network.cluster import Cluster
from rota.client.types import OffsetAndTimestamp, TopicPartition
from rota.protocol.errors import ErrorCode

WHAT: Final = "resetting offsets"
ENDS: Final = ("earliest", "latest")
Bounds = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Goal:
    """Where to; exactly one of them."""

    to: str | None = None
    time_ms: int | None = None
    offset: int | None = None
    shift_by: int | None = None

    def __post_init__(self) -> None:
        given = [one.name for one in fields(self) if getattr(self, one.name) is not None]
        if len(given) != 1:
            told = " and ".join(given) or "none of them"
            raise IllegalUse(f"reset_group_offsets takes one of to, time_ms, offset, shift_by; it was given {told}")
        if self.to is not None and self.to not in ENDS:
            raise IllegalUse(f"reset_group_offsets(to={self.to!r}): it must be one of {', '.join(ENDS)}")


async def reset_group_offsets(
    cluster: Cluster,
    group: str,
    what: Iterable[str | TopicPartition] | None,
    goal: Goal,
    deadline: Deadline,
    *,
    dry_run: bool,
) -> dict[TopicPartition, int]:
    """What was set, or would be. Raises BrokerError (NON_EMPTY_GROUP) while the group has members, AdminFailed."""
    refuse_members(group, await found_group(cluster, group, deadline))
    committed = (await list_group_offsets(cluster, {group: None}, deadline))[group]
    known = {one: at.offset for one, at in committed.items() if at is not None}
    wanted = tuple(known) if what is None else await partitions_of(cluster, what, deadline)
    ranges = await bounds(cluster, wanted, deadline)
    if what is None:
        wanted = tuple(ranges)  # what is gone needs no offset
    times = {one: goal.time_ms for one in wanted if goal.time_ms is not None and one in ranges}
    at_time = await list_offsets(cluster, times, deadline, isolation_level="read_uncommitted")
    offsets = plan(group, wanted, goal, ranges, known, at_time)
    if not dry_run:
        await alter_group_offsets(cluster, group, offsets, deadline)
    return offsets


def refuse_members(group: str, described: GroupDescription | None) -> None:
    """Raises BrokerError when there are any."""
    if described is not None and described.members:
        names = ", ".join(one.group_instance_id or one.member_id for one in described.members)
        remedy = f"Stop its members ({names}), or remove them with remove_members(), then reset."
        raise BrokerError(ErrorCode.NON_EMPTY_GROUP, WHAT, group=group, remedy=remedy)


def plan(
    group: str,
    wanted: Iterable[TopicPartition],
    goal: Goal,
    ranges: Bounds,
    committed: Mapping[TopicPartition, int],
    at_time: Mapping[TopicPartition, OffsetAndTimestamp | None],
) -> dict[TopicPartition, int]:
    """The offset for each partition. Raises AdminFailed when there is none for one of them."""
    outcomes = Outcomes[TopicPartition, int](WHAT, 8, wanted, lambda key: Place(key.topic, key.partition, group))
    for one in outcomes.open():
        if one not in ranges:
            outcomes.fail(one, outcomes.error(one, ErrorCode.LEADER_NOT_AVAILABLE, "the partition has no leader"))
        elif goal.shift_by is not None and one not in committed:
            outcomes.fail(one, KafkaError(f"{WHAT} of group {group}: nothing is committed for {one} to shift"))
        else:
            outcomes.succeed(one, _aim(goal, ranges[one], committed.get(one, 0), at_time.get(one)))
    if outcomes.failed:
        for one in tuple(outcomes.done):
            del outcomes.done[one]
    return outcomes.results()


def _aim(goal: Goal, bounds: tuple[int, int], committed: int, at_time: OffsetAndTimestamp | None) -> int:
    start, end = bounds
    if goal.to is not None:
        return start if goal.to == "earliest" else end
    if goal.time_ms is not None:
        return end if at_time is None else at_time.offset
    if goal.offset is not None:
        return min(max(goal.offset, start), end)
    return min(max(committed + (goal.shift_by or 0), start), end)
