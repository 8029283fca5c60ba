"""Whether a heartbeat may change its group: the checks before any record, and the member that it is about.

Law
    G3  A stale member, epoch or instance changes nothing and gets its code.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply, refusal
from rota.coordinator.consumer_group.member import STATIC_LEFT_EPOCH, Member, is_subset
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Admitted:
    """The member as it is before the heartbeat; `replaces` is the static member whose instance it takes."""

    member: Member
    replaces: Member | None = None


def admit(group: ConsumerGroup, event: ConsumerHeartbeat) -> Admitted | HeartbeatReply:
    """Return the member of a heartbeat (a new one when it joins), or the refusal."""
    if is_full(group, event.member_id, event.instance_id):
        text = f"The consumer group has reached its maximum capacity of {group.settings.size_max} members."
        return refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
    if event.instance_id is None:
        return _dynamic(group, event)
    return _joining_static(group, event) if event.member_epoch == 0 else known_static(group, event)


def is_full(group: ConsumerGroup, member_id: str, instance_id: str | None) -> bool:
    """Return whether this member would be one too many."""
    is_known = member_id in group.members or instance_id in group.instances
    return not is_known and len(group.members) >= group.settings.size_max


def _dynamic(group: ConsumerGroup, event: ConsumerHeartbeat) -> Admitted | HeartbeatReply:
    member = group.members.get(event.member_id)
    if member is None:
        return Admitted(Member(member_id=event.member_id)) if event.member_epoch == 0 else unknown(group, event)
    return _check_epoch(member, event) or Admitted(member)


def _joining_static(group: ConsumerGroup, event: ConsumerHeartbeat) -> Admitted | HeartbeatReply:
    assert event.instance_id is not None
    holder = group.by_instance(event.instance_id)
    if holder is None:
        return Admitted(group.members.get(event.member_id) or Member(member_id=event.member_id))
    if holder.classic is None and holder.epoch != STATIC_LEFT_EPOCH:
        text = (
            f"Static member {event.member_id} with instance id {event.instance_id} cannot join the group because the "
            f"instance id is owned by {holder.member_id} member."
        )
        return refusal(ErrorCode.UNRELEASED_INSTANCE_ID, text)
    return Admitted(holder, replaces=holder)


def known_static(
    group: ConsumerGroup, event: ConsumerHeartbeat, *, checks_epoch: bool = True
) -> Admitted | HeartbeatReply:
    """Return the static member of a heartbeat that does not join, or the refusal."""
    assert event.instance_id is not None
    holder = group.by_instance(event.instance_id)
    if holder is None:
        return refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {event.instance_id} is unknown.")
    if holder.member_id != event.member_id:
        text = (
            f"Static member {event.member_id} with instance id {event.instance_id} was fenced by member "
            f"{holder.member_id}."
        )
        return refusal(ErrorCode.FENCED_INSTANCE_ID, text)
    return (_check_epoch(holder, event) if checks_epoch else None) or Admitted(holder)


def unknown(group: ConsumerGroup, event: ConsumerHeartbeat) -> HeartbeatReply:
    return refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {event.member_id} is not a member of group {group.group_id}.")


def _check_epoch(member: Member, event: ConsumerHeartbeat) -> HeartbeatReply | None:
    """Accept the member's epoch, and the one before from a member that has not got more since: its answer was lost."""
    received = event.member_epoch
    if received in (0, member.epoch):
        return None
    if received > member.epoch:
        return _fenced(member, received, "greater")
    is_retry = received == member.previous_epoch and event.owned is not None and is_subset(event.owned, member.assigned)
    return None if is_retry else _fenced(member, received, "smaller")


def _fenced(member: Member, received: int, relation: str) -> HeartbeatReply:
    text = (
        f"The consumer group member has a {relation} member epoch ({received}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    return refusal(ErrorCode.FENCED_MEMBER_EPOCH, text)
