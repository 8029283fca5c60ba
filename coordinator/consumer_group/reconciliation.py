"""How a member gets from what it owns to its target, one heartbeat at a time. Kafka's CurrentAssignmentBuilder.

Laws
    CG1 A partition is given to a member only when no other member owns it or has still to revoke it.
    CG2 A member's epoch moves to that of the target only after it has revoked what the target takes from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.member import Member, MemberState, Owned, Partitions
from rota.coordinator.consumer_group.state import NO_TARGET, ConsumerGroup
from rota.coordinator.consumer_group.steps import record, set_rebalance_timer
from rota.coordinator.group.effects import Step
from rota.protocol.dataclass import dataclass

Reported = Iterable[tuple[bytes, Iterable[int]]] | None  # what the member says that it owns; None: unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target assignment of one member. `topic_ids` are the existing topics that it subscribes to."""

    epoch: int
    partitions: Partitions
    topic_ids: Collection[bytes]
    is_owned: Callable[[bytes, int], bool]  # by any member of the group
    has_subscription_changed: bool = False


def reconciled(
    group: ConsumerGroup, member: Member, owned: Reported, step: Step, *, has_subscription_changed: bool
) -> Member:
    """Move the member towards its target assignment."""
    if not has_subscription_changed and member.is_reconciled_to(group.target_epoch):
        return member
    topics = (group.topics.get(name) for name in group.topics_of(member))
    target = Target(
        epoch=group.target_epoch,
        partitions=group.targets.get(member.member_id, NO_TARGET),
        topic_ids=frozenset(topic.topic_id for topic in topics if topic is not None),
        is_owned=lambda topic_id, index: (topic_id, index) in group.owners,
        has_subscription_changed=has_subscription_changed,
    )
    after = reconcile(member, target, owned)
    if after != member:
        record(group, records.current(group.group_id, after), step)
        group.progress.advance(member, after, group.target_epoch, step.now_ms)
        set_rebalance_timer(group, after, step)
    return after


def reconcile(member: Member, target: Target, reported: Reported) -> Member:
    """Return the member after one heartbeat; the same object when nothing changes.

    A member in a state of a newer broker begins again: it owns nothing, as its heartbeat was admitted.
    """
    if not target.has_subscription_changed and member.is_reconciled_to(target.epoch):
        return member
    match member.state:
        case MemberState.STABLE:
            if member.epoch == target.epoch:
                return _without_lost_topics(member, target, reported)
            return _next(member, member.epoch, target, reported)
        case MemberState.UNREVOKED_PARTITIONS:
            if not _is_any_owned(member.pending, reported):
                return _next(member, member.epoch, target, reported)
            return _without_lost_topics(member, target, reported) if target.has_subscription_changed else member
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, member.epoch, target, reported)
        case _:
            return _next(member, target.epoch, target, reported)


def _is_any_owned(owned: Owned, reported: Reported) -> bool:
    """Return whether the member says that it still owns some of these; True when it says nothing."""
    if reported is None:
        return True
    return any(index in owned.get(topic_id, ()) for topic_id, indexes in reported for index in indexes)


def _without_lost_topics(member: Member, target: Target, reported: Reported) -> Member:
    """Take away the partitions of topics that it does not subscribe to any more."""
    lost = {topic_id: owned for topic_id, owned in member.assigned.items() if topic_id not in target.topic_ids}
    if not lost:
        return member
    assigned = {topic_id: owned for topic_id, owned in member.assigned.items() if topic_id not in lost}
    pending = dict(member.pending)
    for topic_id, owned in lost.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **owned}
    if _is_any_owned(pending, reported):
        state = MemberState.UNREVOKED_PARTITIONS
        return replace(member, state=state, previous_epoch=member.epoch, assigned=assigned, pending=pending)
    return replace(member, previous_epoch=member.epoch, assigned=assigned)


def _next(member: Member, epoch: int, target: Target, reported: Reported) -> Member:
    """Keep what it owns of the target; revoke the rest, or else take what is free and move to the target's epoch."""
    kept: dict[bytes, dict[int, int]] = {}
    revoked: dict[bytes, dict[int, int]] = {}
    for topic_id, owned in member.assigned.items():
        wanted = _wanted(target, topic_id)
        for index, since in owned.items():
            (kept if index in wanted else revoked).setdefault(topic_id, {})[index] = since
    if revoked and _is_any_owned(revoked, reported):
        state = MemberState.UNREVOKED_PARTITIONS
        return replace(member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=kept, pending=revoked)
    is_waiting = _take_free(member, kept, target)
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE,
        epoch=target.epoch,
        previous_epoch=member.epoch,
        assigned=kept,
        pending={},
    )


def _wanted(target: Target, topic_id: bytes) -> frozenset[int]:
    return target.partitions.get(topic_id, frozenset()) if topic_id in target.topic_ids else frozenset()


def _take_free(member: Member, assigned: dict[bytes, dict[int, int]], target: Target) -> bool:
    """CG1. Add the partitions of the target that are free; return whether some are not."""
    is_waiting = False
    for topic_id in target.partitions:
        for index in sorted(_wanted(target, topic_id) - assigned.get(topic_id, {}).keys()):
            if target.is_owned(topic_id, index) and index not in member.pending.get(topic_id, ()):
                is_waiting = True
            else:
                assigned.setdefault(topic_id, {})[index] = target.epoch
    return is_waiting
