"""Commits, reads and the end of offsets in a group of the consumer protocol.

Laws
    G1  A member commits in its own epoch, or a partition that it had already in the older epoch of the request
        (KIP-1251).
    O3  Offsets of topics that a member subscribes to do not expire; others do, by the time of their commit.
    A tombstone for the group is appended after those of its offsets and members.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.member import Member
from rota.coordinator.consumer_group.state import ConsumerGroup, ConsumerGroupState
from rota.coordinator.consumer_group.steps import cancel_timers, record
from rota.coordinator.group.effects import OffsetRecord, OffsetValue, Step
from rota.coordinator.group.events import Commit, TransactionalCommit
from rota.coordinator.group.offsets import each_offset
from rota.protocol.errors import ErrorCode

_NONE = ErrorCode.NONE
EPOCHS_SINCE = 9  # version of OffsetCommit
NO_GENERATION = -1


def check_commit(group: ConsumerGroup, event: Commit) -> ErrorCode:
    """Return whether this commit may be written. As in Kafka the error of one partition refuses them all."""
    if event.generation < 0 and not group.members:
        return _NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and event.version < EPOCHS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    return _check_epoch(group, member, event)


def check_transactional_commit(group: ConsumerGroup, event: TransactionalCommit) -> ErrorCode:
    """Return whether this TxnOffsetCommit may be written; the protocol has ILLEGAL_GENERATION for a stale epoch.

    A producer of before KIP-447 sends neither a member nor an epoch.
    """
    is_without_member = event.generation == NO_GENERATION and not event.member_id and event.instance_id is None
    if is_without_member or (event.generation < 0 and not group.members):
        return _NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return _NONE if _check_epoch(group, member, event) is _NONE else ErrorCode.ILLEGAL_GENERATION


def _check_epoch(group: ConsumerGroup, member: Member, event: Commit | TransactionalCommit) -> ErrorCode:
    if event.generation == member.epoch:
        return _NONE
    stale = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return _NONE if event.generation < member.epoch and _owned_all(group, member, event) else stale


def _owned_all(group: ConsumerGroup, member: Member, event: Commit | TransactionalCommit) -> bool:
    """Return whether the member had all these partitions in the epoch of the commit, and has them still."""
    return all(_owned_since(group, member, record, event.generation) for record in each_offset(event.records))


def _owned_since(group: ConsumerGroup, member: Member, committed: OffsetRecord, epoch: int) -> bool:
    topic = group.topics.get(committed.topic)
    since = None if topic is None else member.assignment_epoch(topic.topic_id, committed.partition)
    return since is not None and since <= epoch


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> ErrorCode:
    """Return whether this member may read the offsets; without a member and an epoch every client may."""
    if member_id is None and member_epoch < 0:
        return _NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.epoch == member_epoch:
        return _NONE
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def expired(
    group: ConsumerGroup, offsets: Sequence[tuple[tuple[str, int], OffsetValue]], retention_ms: int, wall_ms: int
) -> list[tuple[str, int]]:
    """Return the partitions of which the offsets are to be removed."""
    return [
        (topic, partition)
        for (topic, partition), value in offsets
        if _is_late(value, retention_ms, wall_ms) and not group.is_subscribed_to(topic)
    ]


def _is_late(value: OffsetValue, retention_ms: int, wall_ms: int) -> bool:
    if value.expire_ms is not None:
        return wall_ms >= value.expire_ms
    return wall_ms - value.commit_ms >= retention_ms


def is_deletable(group: ConsumerGroup) -> bool:
    """Return whether DeleteGroups may remove the group."""
    return group.state is ConsumerGroupState.EMPTY


def remove(group: ConsumerGroup, step: Step) -> None:
    """Append the tombstones of the whole group, in Kafka's order."""
    group_id, member_ids = group.group_id, list(group.members)
    tombstones = {member_id: records.removed_member(group_id, member_id) for member_id in member_ids}
    for member_id in member_ids:
        cancel_timers(group, member_id, step)
    current, target, member = ([tombstones[each][kind] for each in member_ids] for kind in range(3))
    expressions = [records.removed_regex(group_id, expression) for expression in group.regexes]
    for tombstone in (
        *current,
        *target,
        records.removed_target_epoch(group_id),
        *member,
        *expressions,
        records.removed_partition_metadata(group_id),
        records.removed_epoch(group_id),
    ):
        record(group, tombstone, step)
