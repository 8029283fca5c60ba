"""Requests of the classic protocol to a group of the consumer protocol that has members.

A member of the classic protocol is served beside the others: its generation is its member epoch, JoinGroup is its
heartbeat with a subscription and is answered at once, SyncGroup reads its assignment, and Heartbeat answers
REBALANCE_IN_PROGRESS when it has to join again.

Laws
    G3   A request that is refused changes nothing.
    CG14 A classic member gets REBALANCE_IN_PROGRESS exactly while a JoinGroup would change what it has: its target
         is of a newer epoch, it has partitions to revoke, or all that it waits for is free. It joins within its
         rebalance timeout from then, and sends SyncGroup within it, or is removed.
    An administrator's LeaveGroup removes members of the consumer protocol, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rota.coordinator.consumer_group import notes, records, refused_requests
from rota.coordinator.consumer_group.embedded_protocol import owned_partitions, write_assignment
from rota.coordinator.consumer_group.heartbeat import is_full
from rota.coordinator.consumer_group.leave import Removal, Remove
from rota.coordinator.consumer_group.member import ClassicMember, Member, MemberState
from rota.coordinator.consumer_group.reconciliation import reconciled
from rota.coordinator.consumer_group.settings import MigrationPolicy
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.consumer_group.steps import (
    await_join,
    await_sync,
    cancel_rebalance_timer,
    refresh_session,
    synced,
)
from rota.coordinator.consumer_group.target import Change, replace_static, update_member
from rota.coordinator.group.effects import Joined, LeaveResult, Step, Synced
from rota.coordinator.group.events import NO_MEMBER, Heartbeat, InstanceId, Join, Leave, LeavingMember, MemberId, Sync
from rota.coordinator.group.join import PROTOCOLS_NAMED_MAX
from rota.coordinator.group.state import GroupConfig
from rota.protocol.consumer_protocol import PROTOCOL_TYPE, Subscription, decode_subscription
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember, Trigger
from rota.protocol.wire import DecodeError

_NOTED: Final = (
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)

# ---- JoinGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A JoinGroup that was checked. `replaces` is the static member whose instance it takes."""

    event: Join
    before: Member
    replaces: Member | None
    subscription: Subscription


def check_join(group: ConsumerGroup, event: Join, config: GroupConfig) -> Joining | Joined:
    """Return the member that joins, or the refusal."""
    member_id = event.member_id or event.fresh_id
    if not config.session_min_ms <= event.session_ms <= config.session_max_ms:
        return Joined(member_id=event.member_id, error=ErrorCode.INVALID_SESSION_TIMEOUT)
    if group.settings.migration is MigrationPolicy.DISABLED:
        return _refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if is_full(group, member_id, event.instance_id):
        return _refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if event.protocol_type != PROTOCOL_TYPE or not group.has_classic_protocol(proto.name for proto in event.protocols):
        return _refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if event.requires_known_id and not event.member_id and event.instance_id is None:
        return Joined(member_id=event.fresh_id, error=ErrorCode.MEMBER_ID_REQUIRED)
    holder = None if event.instance_id is None else group.by_instance(event.instance_id)
    if event.instance_id is not None and event.member_id:
        error = _check_instance(holder, event.member_id)
        if error is not ErrorCode.NONE:
            return _refused(error)
    try:
        subscription = decode_subscription(event.protocols[0].metadata)
    except DecodeError:
        return _refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    replaces = None if event.member_id else holder
    before = holder or group.members.get(member_id) or Member(member_id=member_id)
    joining = Joining(event=event, before=before, replaces=replaces, subscription=subscription)
    if before.state is MemberState.UNKNOWN and subscription.owned_partitions:
        return _refused(ErrorCode.FENCED_MEMBER_EPOCH)
    if not records.can_fit_in_batch(
        records.member(group.group_id, _member(before, joining)), group.settings.record_bytes_max
    ):
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return joining


def _refused(error: ErrorCode) -> Joined:
    """Refuse as Kafka does: a refusal by a consumer group names no member."""
    return Joined(member_id=NO_MEMBER, error=error)


def note_refused_join(group: ConsumerGroup, event: Join, refusal: Joined, step: Step) -> None:
    """Count a JoinGroup that was refused, but for one that is to come again with its new member id."""
    if refusal.error in _NOTED:
        note, reason = refused_requests.note_of(refusal.error), ""
        if refusal.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            reason = _why_inconsistent(group, event)
        refused_requests.refused(
            group, note, refused_requests.sender(event), "join-group", refusal.error, step, reason or note
        )


def _why_inconsistent(group: ConsumerGroup, event: Join) -> str:
    if group.settings.migration is MigrationPolicy.DISABLED:
        return "the group is of the consumer protocol, and group.consumer.migration.policy is disabled"
    supported = [proto.name for proto in event.protocols]
    shared = [name for name, count in group.classic_protocols.items() if count == group.classic_count]
    return f"it supports {_names(supported)}; the group's classic members share {_names(shared)}"


def _names(assignors: list[str]) -> str:
    return ", ".join(assignors[:PROTOCOLS_NAMED_MAX]) or "none"


def _check_instance(holder: Member | None, member_id: MemberId) -> ErrorCode:
    if holder is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if holder.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID


def record_join(group: ConsumerGroup, joining: Joining, step: Step) -> tuple[Member, bool]:
    """Take the member in; return it, and whether its subscription changed."""
    event, before = joining.event, joining.before
    if joining.replaces is not None:
        before = replace_static(group, joining.replaces, event.fresh_id, step)
    cancel_rebalance_timer(group, before.member_id, step)
    member = _member(before, joining)
    change = Change(before=before, after=member, replaces=joining.replaces)
    return member, update_member(group, change, step)


def _member(before: Member, joining: Joining) -> Member:
    event, subscription = joining.event, joining.subscription
    return replace(
        before,
        instance_id=before.instance_id if event.instance_id is None else event.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_ms=event.rebalance_ms,
        topic_names=frozenset(subscription.topics),
        regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicMember(event.session_ms, tuple((proto.name, proto.metadata) for proto in event.protocols)),
    )


def advance(group: ConsumerGroup, joining: Joining, member: Member, step: Step, *, has_changed: bool) -> Member:
    """Move the member towards its target."""
    owned = owned_partitions(joining.subscription, group.topics)
    return reconciled(group, member, owned, step, has_subscription_changed=has_changed)


def start_timers(group: ConsumerGroup, member: Member, step: Step) -> None:
    """Restart the session of a member whose JoinGroup is answered; its SyncGroup has to come."""
    refresh_session(group, member.member_id, step)
    await_sync(group, member, step)


def joined(member: Member) -> Joined:
    """Return the answer: there is no leader, and the assignor that the member prefers stands for the group's."""
    assert member.classic is not None
    return Joined(
        member_id=MemberId(member.member_id),
        generation=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol=member.classic.preferred[0],
    )


# ---- SyncGroup and Heartbeat


def sync(group: ConsumerGroup, event: Sync, step: Step) -> None:
    """Answer with what the member owns now."""
    member = _known(group, event)
    if isinstance(member, ErrorCode):
        _note_fencing(group, event, member, "sync-group", step)
        step.refuse(event.token, Synced(error=member))
        return
    assert member.classic is not None
    protocol, subscription = member.classic.preferred
    is_other = event.protocol_type not in (None, PROTOCOL_TYPE) or event.protocol not in (None, protocol)
    if is_other:
        step.refuse(event.token, Synced(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    elif group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        await_join(group, member, step)
        step.refuse(event.token, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS))
    else:
        synced(group, member.member_id, step)
        refresh_session(group, member.member_id, step)
        assignment = write_assignment(member.assigned, group.topics, subscription)
        body = Synced(protocol_type=event.protocol_type, protocol=event.protocol, assignment=assignment)
        step.reply(event.token, body)


def heartbeat(group: ConsumerGroup, event: Heartbeat, step: Step) -> None:
    """Extend the session; CG14."""
    member = _known(group, event)
    if isinstance(member, ErrorCode):
        _note_fencing(group, event, member, "heartbeat", step)
        step.refuse(event.token, member)
        return
    refresh_session(group, member.member_id, step)
    code = ErrorCode.NONE
    if _has_to_join(group, member):
        code = ErrorCode.REBALANCE_IN_PROGRESS
        await_join(group, member, step)
    step.refuse(event.token, code)


def _known(group: ConsumerGroup, event: Sync | Heartbeat) -> Member | ErrorCode:
    """Return the classic member of a request in its generation, or the refusal."""
    instance_id = event.instance_id
    member = group.members.get(event.member_id) if instance_id is None else group.by_instance(instance_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.member_id != event.member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    if member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member if member.epoch == event.generation else ErrorCode.ILLEGAL_GENERATION


def _note_fencing(group: ConsumerGroup, event: Sync | Heartbeat, error: ErrorCode, operation: str, step: Step) -> None:
    """Count a request of a fenced instance, as a classic group does."""
    if error is ErrorCode.FENCED_INSTANCE_ID:
        member = EventMember(member_id=event.member_id, instance_id=event.instance_id)
        refused_requests.refused(group, refused_requests.note_of(error), member, operation, error, step)


def _has_to_join(group: ConsumerGroup, member: Member) -> bool:
    if member.epoch < group.target_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not group.is_waiting_for_partitions(member)


# ---- LeaveGroup


def leave(group: ConsumerGroup, event: Leave, step: Step, remove: Remove) -> None:
    """Remove the members that the request names; one answer for each."""
    removed: dict[str, Member] = {}
    answers = tuple(_leave_code(group, identity, removed) for identity in event.members)
    client_reason = "; ".join(dict.fromkeys(identity.reason for identity in event.members if identity.reason)) or None
    for member in removed.values():
        notes.left(group, member, step, client_reason)
    if removed:
        reason = f"explicit `LeaveGroup` request for ({', '.join(removed)}) members."
        remove(Removal(tuple(removed.values()), reason, Trigger.MEMBER_LEFT, client_reason), step)
    step.reply(event.token, LeaveResult(ErrorCode.NONE, answers))


def _leave_code(
    group: ConsumerGroup, identity: LeavingMember, removed: dict[str, Member]
) -> tuple[MemberId, InstanceId | None, ErrorCode]:
    if identity.instance_id is None:
        member = group.members.get(identity.member_id)
    else:
        member = group.by_instance(identity.instance_id)
    if member is None:
        code = ErrorCode.UNKNOWN_MEMBER_ID
    elif identity.instance_id is not None and identity.member_id not in ("", member.member_id):
        code = ErrorCode.FENCED_INSTANCE_ID
    else:
        code = ErrorCode.NONE
        removed[member.member_id] = member
    return identity.member_id, identity.instance_id, code
