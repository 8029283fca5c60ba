"""What every decision of a consumer group does: take a record in and append it, bump the epoch, set timers."""

from __future__ import annotations

from typing import Final

from rota.coordinator.consumer_group import notes, records, refused_requests
from rota.coordinator.consumer_group.events import HeartbeatReply
from rota.coordinator.consumer_group.member import Member
from rota.coordinator.consumer_group.records import ConsumerRecord
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Append, Reply, Step
from rota.coordinator.runtime.contract import Token

SESSION: Final = "session:"  # the key of a timer: this and the member id
REBALANCE: Final = "rebalance:"
JOIN: Final = "join:"  # of a member of the classic protocol that has to join again
SYNC: Final = "sync:"  # of one whose JoinGroup was answered


def record(group: ConsumerGroup, of: ConsumerRecord, step: Step) -> None:
    """Take a record in and append it."""
    group.replay(of)
    step.effects.append(Append(of))


def answer(step: Step, token: Token, body: HeartbeatReply) -> None:
    """Answer from the group's state: the reply waits until that state is durable."""
    step.effects.append(Reply(token, body))


def refuse(step: Step, token: Token, body: HeartbeatReply) -> None:
    """Answer with an error, which promises nothing durable."""
    step.effects.append(Reply(token, body, when_durable=False))


def bump_epoch(
    group: ConsumerGroup,
    step: Step,
    reason: str,
    trigger: str,
    members: tuple[Member, ...] = (),
    client_reason: str | None = None,
) -> None:
    """Begin a rebalance: the next group epoch, with the hash of the topics that members subscribe to now."""
    refused_requests.finish(group, step)
    hash_now = metadata_hash(group.subscribed_topics(), group.topics)
    previous = group.state
    record(group, records.epoch(group.group_id, group.epoch + 1, hash_now), step)
    if group.assigning_ms is None:
        group.assigning_ms = step.now_ms
    notes.bumped(group, previous, reason, trigger, members, step, client_reason)


def refresh_session(group: ConsumerGroup, member_id: str, step: Step) -> None:
    """Restart a member's session; its timer is moved only if it would fire too late."""
    if not extend_deadline(group, member_id, step.now_ms):
        group.armed[member_id] = group.deadlines[member_id]
        step.arm(SESSION + member_id, group.deadlines[member_id])


def extend_deadline(group: ConsumerGroup, member_id: str, now_ms: int) -> bool:
    """Restart a member's session; return whether its timer is armed and fires early enough."""
    classic = group.members[member_id].classic
    deadline_ms = now_ms + (group.settings.session_ms if classic is None else classic.session_ms)
    group.deadlines[member_id] = deadline_ms
    return group.armed.get(member_id, deadline_ms + 1) <= deadline_ms


def set_rebalance_timer(group: ConsumerGroup, member: Member, step: Step) -> None:
    """A member that has to revoke partitions has its rebalance timeout for that."""
    if member.classic is not None:
        return
    if member.has_to_revoke:
        group.revoking[member.member_id] = member.epoch
        step.arm(REBALANCE + member.member_id, step.now_ms + member.rebalance_ms)
    else:
        cancel_rebalance_timer(group, member.member_id, step)


def cancel_rebalance_timer(group: ConsumerGroup, member_id: str, step: Step) -> None:
    if group.revoking.pop(member_id, None) is not None:
        step.disarm(REBALANCE + member_id)


def cancel_timers(group: ConsumerGroup, member_id: str, step: Step) -> None:
    """Forget a member's timers."""
    group.deadlines.pop(member_id, None)
    if group.armed.pop(member_id, None) is not None:
        step.disarm(SESSION + member_id)
    cancel_rebalance_timer(group, member_id, step)
    cancel_classic_timers(group, member_id, step)


def await_join(group: ConsumerGroup, member: Member, step: Step) -> None:
    """A member of the classic protocol has to join again within its rebalance timeout, unless it has to already."""
    if member.member_id not in group.joining:
        group.joining.add(member.member_id)
        step.arm(JOIN + member.member_id, step.now_ms + member.rebalance_ms)


def await_sync(group: ConsumerGroup, member: Member, step: Step) -> None:
    """A member of the classic protocol that has joined sends its SyncGroup within its rebalance timeout."""
    cancel_classic_timers(group, member.member_id, step)
    group.syncing.add(member.member_id)
    step.arm(SYNC + member.member_id, step.now_ms + member.rebalance_ms)


def synced(group: ConsumerGroup, member_id: str, step: Step) -> None:
    """A member of the classic protocol has its assignment."""
    if member_id in group.syncing:
        group.syncing.remove(member_id)
        step.disarm(SYNC + member_id)


def cancel_classic_timers(group: ConsumerGroup, member_id: str, step: Step) -> None:
    """Forget the timers that only a member of the classic protocol has."""
    if member_id in group.joining:
        group.joining.remove(member_id)
        step.disarm(JOIN + member_id)
    synced(group, member_id, step)
