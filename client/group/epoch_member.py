"""One member of a group by the consumer protocol (KIP-848): the coordinator assigns, a heartbeat has all fields. Pure.

Laws
    M1  A partition that was assigned is revoked or lost exactly once before it is assigned again or the member closes.
    M2  A hook begins only while `poll` or `close` runs, and one at a time.
    M5  After CLOSED no timer is armed, and no event does anything.
    E1  One heartbeat is waited for. It reports a revocation only after `on_revoked`, because the coordinator gives the
        partitions to other members then.
    E2  A fenced member (FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID) has lost its partitions; it joins again with epoch 0.
    E3  A field that has not changed is sent as None; after a failed heartbeat the next one has all fields.
    E4  A topic that was deleted and created again is another topic: its partitions are lost and assigned anew.
    E5  Only the coordinator takes partitions away: metadata that do not have an owned topic change nothing.
    E6  With group_protocol=auto a coordinator that refuses the protocol, or this group in it, makes the member a
        classic one (protocol_selection.py), which owns nothing. Without auto `poll` raises the refusal.
    E7  While it is not known what the coordinator made of the last heartbeat, no assignment is taken over: a heartbeat
        with all fields may have given up what was not taken over yet, and others may have it.
    E8  A heartbeat that is refused because of its topics ends no membership: `poll` raises it, and the member asks
        again after growing waits, as Java's. What it owns it reads on, until its session ends.

This file is longer than others because a decision of the member is read in one place; machine.py has branches for
JoinGroup, SyncGroup and the leader, which this protocol does not need.

`Member.generation` is the member epoch. `step` has the events and effects of machine.py, which handles classic members.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import groupby
from typing import Any, ClassVar, Final, assert_never

from rota.client.config import ConsumerConfig
from rota.client.errors import KafkaError, Unsupported
from rota.client.group import heartbeat, leave, notes
from rota.client.group.assignors.base import RebalanceProtocol
from rota.client.group.effects import Assign, BeforeLeaving, Effect, Hook, Lose, Revoke, UseClassicProtocol, Wake
from rota.client.group.events import (
    Close,
    CloseTimedOut,
    CommitRefused,
    CoordinatorFound,
    CoordinatorNotFound,
    Event,
    HookDone,
    MetadataChanged,
    MetadataRefreshed,
    PollBegan,
    PollEnded,
    PollReturned,
    Rejoin,
    RequestFailed,
    ResponseReceived,
    Subscribed,
    TimerExpired,
)
from rota.client.group.refusals import fenced, refused, topics_refused
from rota.client.group.state import ENDED, NO_GENERATION, Member
from rota.client.group.states import EPOCH_TRANSITIONS, MemberState
from rota.client.group.subscription import is_subscribed
from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

S = MemberState
E = ErrorCode
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2  # the instance comes back: its partitions stay its own until the session expires
_FENCED: Final = (E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND)
_NO_CONSUMER_GROUP: Final = (E.GROUP_ID_NOT_FOUND, E.UNSUPPORTED_VERSION)  # the answer to a member that joins
_LOST: Final = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class Report:
    """The fields of a heartbeat that describe the member to the coordinator."""

    names: tuple[str, ...]
    owned: tuple[TopicPartitions, ...]


@dataclass(eq=False)
class EpochMember(Member):
    """`target`: the assignment of the last response, by topic id; None before the first. `ids`: the ids of the owned
    topics. `reported`: what the coordinator knows; None: nothing for sure. `sent`: the report of the heartbeat that is
    under way. `is_new`: the first assignment since joining was not taken over yet. `is_replaced`: a classic member has
    taken over."""

    ways: ClassVar[Mapping[MemberState, frozenset[MemberState]]] = EPOCH_TRANSITIONS
    target: dict[bytes, frozenset[int]] | None = None
    ids: dict[str, bytes] = field(default_factory=dict)
    reported: Report | None = None
    sent: Report | None = None
    is_new: bool = False
    is_heartbeat_due: bool = False
    is_replaced: bool = False

    @property
    def is_due(self) -> bool:
        """Whether `poll` has something to do or to wait for."""
        match self.state:
            case S.LEAVING | S.CLOSED:
                return False
            case S.DOWN:
                return self.subscription is not None or self.hook is not None
            case S.STABLE | S.REDISCOVERING:
                return self.hook is not None
            case S.ASSIGNING:
                return self.hook is not None or self.reported is not None
            case _:
                return True

    @property
    def desired(self) -> dict[TopicPartition, bytes]:
        """The partitions of the target with their topic ids: of known topics that are subscribed to.

        An owned topic is known, whether the metadata has it or not (E5).
        """
        found, owned = {}, {self.ids[partition.topic]: partition.topic for partition in self.owned}
        for topic_id, partitions in (self.target or {}).items():
            name = self.metadata.topic_name(topic_id) or owned.get(topic_id)
            if name is not None and self.subscription is not None and is_subscribed(self.subscription, name):
                found.update({TopicPartition(name, partition): topic_id for partition in partitions})
        return found

    @property
    def removed(self) -> frozenset[TopicPartition]:
        """The owned partitions that are not, or not with the same topic id, in the target."""
        desired = self.desired
        return frozenset(partition for partition in self.owned if desired.get(partition) != self.ids[partition.topic])

    @property
    def is_automatic(self) -> bool:
        return self.config.group_protocol == "auto"

    @property
    def has_to_reconcile(self) -> bool:
        return self.target is not None and (self.is_new or bool(self.removed) or self.owned != self.desired.keys())

    def report(self) -> Report:
        """Return the next heartbeat's report. During an assignment it has the owned partitions of the last report."""
        owned = _grouped(self.owned, self.ids)
        if self.state is S.ASSIGNING and self.reported is not None:
            owned = self.reported.owned
        return Report(tuple(sorted(self.topics)), owned)

    def out_of_group(self, reason: str, *, keep_id: bool) -> None:
        """The membership is over; the member id stays, as Java's consumer keeps it."""
        super().out_of_group(reason, keep_id=True)
        self.target = self.reported = None
        self.is_new = False


def new_epoch_member(config: ConsumerConfig, member_id: str | None = None) -> EpochMember:
    """A member that is not part of its group yet. The client makes the member id (KIP-1082)."""
    member = EpochMember(config, {}, RebalanceProtocol.COOPERATIVE)
    member.member_id = str(uuid.uuid4()) if member_id is None else member_id
    return member


def step(m: EpochMember, event: Event, now_ms: int) -> list[Effect]:
    """Handle one event at that time (ms of a monotonic clock) and return its effects."""
    if m.state is S.CLOSED:
        return []
    was_due, m.now_ms, m.out = m.is_due, now_ms, []
    _decide(m, event)
    _advance(m)
    if m.is_due and not was_due and not m.polling:
        m.out.append(Wake())
    return m.out


def _decide(m: EpochMember, event: Event) -> None:
    match event:
        case ResponseReceived():
            _answered(m, event.ticket, event.response)
        case RequestFailed():
            _unanswered(m, event.ticket, event.error)
        case TimerExpired():
            _timer_expired(m, event.key)
        case PollBegan() | PollEnded() | PollReturned():
            _poll(m, event)
        case HookDone():
            _hook_done(m, event)
        case Subscribed():
            m.subscription = event.topics
            m.follow_topics()
        case MetadataChanged():
            m.metadata = event.metadata
        case MetadataRefreshed():
            m.metadata = event.metadata
            m.refresh_ticket = None if event.ticket == m.refresh_ticket else m.refresh_ticket
        case CoordinatorFound():
            m.is_finding, m.coordinator, m.is_heartbeat_due = False, event.node, True
        case CoordinatorNotFound():
            heartbeat.coordinator_not_found(m, event.error)
        case CommitRefused():
            _commit_refused(m, event)
        case Rejoin():
            m.note("warning", notes.REJOIN_IGNORED, reason=event.reason)
        case Close():
            leave.close(m, event.reason)
        case CloseTimedOut():
            leave.close_timed_out(m)
        case _:
            assert_never(event)


def _advance(m: EpochMember) -> None:
    """Begin the next due and possible actions."""
    if m.is_replaced:
        return
    if m.state in ENDED:
        _proceed_closing(m)
        return
    if m.polling and m.hook is None and m.state is S.DOWN:
        if m.owned:
            _lose(m)
        elif m.subscription is not None:
            m.note("info", notes.JOINING, reason=m.reason)
            m.move(S.JOINING)
    if m.state in (S.STABLE, S.REDISCOVERING) and m.has_to_reconcile:
        m.move(S.ASSIGNING)
    is_looking_up = m.is_new and m.refresh_ticket is not None  # `on_assigned` has all of the first assignment
    is_waiting = is_looking_up or m.reported is None
    if m.state is S.ASSIGNING and m.polling and m.hook is None and not is_waiting:
        _reconcile(m)
    if m.state is not S.DOWN:
        m.find_coordinator()
        _send_if_due(m)


# ---- heartbeats


def _send_if_due(m: EpochMember) -> None:
    """Send a heartbeat when its time has come, to join, or to report a change."""
    if m.coordinator is None or m.heartbeat_ticket is not None or m.is_backing_off:
        return
    report = m.report()
    if m.is_heartbeat_due or m.generation == NO_GENERATION or report != m.reported:
        m.is_heartbeat_due, m.sent = False, report
        timeout_ms = min(m.config.request_timeout_ms, m.config.session_timeout_ms)
        m.heartbeat_ticket = m.send_request(_request(m, report), timeout_ms)


def _request(m: EpochMember, report: Report) -> ConsumerGroupHeartbeatRequest:
    """The fields that have changed since the last report; all of them without one (E3)."""
    known, config = m.reported, m.config
    return ConsumerGroupHeartbeatRequest(
        group_id=config.group_id or "",
        member_id=m.member_id,
        member_epoch=max(m.generation, JOIN_EPOCH),
        instance_id=config.group_instance_id,
        rack_id=(config.client_rack or None) if known is None else None,
        rebalance_timeout_ms=config.max_poll_interval_ms if known is None else -1,
        subscribed_topic_names=report.names if known is None or known.names != report.names else None,
        server_assignor=config.group_remote_assignor if known is None else None,
        topic_partitions=report.owned if known is None or known.owned != report.owned else None,
    )


def _answered(m: EpochMember, ticket: int, response: ConsumerGroupHeartbeatResponse) -> None:
    if ticket == m.heartbeat_ticket:
        m.heartbeat_ticket = None
        if response.error_code:
            _refused(m, E.of(response.error_code), response.error_message)
        else:
            _accepted(m, response)
    elif m.closing is not None and ticket == m.closing.ticket:
        cause = {"cause": E.of(response.error_code).name} if response.error_code else {}
        m.note("info", notes.NOT_LEFT if cause else notes.LEFT, **cause)
        m.closing.ticket = None


def _accepted(m: EpochMember, response: ConsumerGroupHeartbeatResponse) -> None:
    is_joining = m.generation == NO_GENERATION
    m.generation, m.reported, m.attempts = response.member_epoch, m.sent, 0
    m.arm("heartbeat", max(response.heartbeat_interval_ms, 1))
    m.arm_session()
    if response.assignment is not None:
        m.target = {part.topic_id: frozenset(part.partitions) for part in response.assignment.topic_partitions}
    if any(m.metadata.topic_name(topic_id) is None for topic_id in m.target or {}) and m.refresh_ticket is None:
        m.refresh_metadata()
    if is_joining:
        m.note("info", notes.JOINED, protocol="consumer", leader=False)
        if m.is_automatic:
            m.note("info", notes.CONSUMER_PROTOCOL)
        m.rejoin, m.is_new, m.target = None, True, m.target or {}
        m.move(S.ASSIGNING)
    elif m.state is S.REDISCOVERING:
        m.move(S.STABLE)


def _refused(m: EpochMember, code: ErrorCode, message: str | None) -> None:
    m.reported = None
    reason = f"encountered {code.name} from CONSUMER_GROUP_HEARTBEAT response"
    m.note("info", notes.HEARTBEAT_FAILED, code=code.name, detail=message)
    if m.is_automatic and code in _NO_CONSUMER_GROUP:
        _use_classic(m, message or code.name)
    elif m.generation == NO_GENERATION and code is E.GROUP_ID_NOT_FOUND:
        m.give_up(refused("ConsumerGroupHeartbeat", code, m.config, message), reason)
    elif code in _FENCED:
        m.out_of_group(reason, keep_id=True)
    elif code in _LOST:
        heartbeat.coordinator_lost(m, code.name)
    elif code is E.FENCED_INSTANCE_ID:
        heartbeat.fence(m, fenced(m.config))
    elif code.retriable:
        m.back_off()
    elif code is E.TOPIC_AUTHORIZATION_FAILED:
        m.fail(topics_refused("ConsumerGroupHeartbeat", m.topics, m.metadata, m.config))
        m.back_off()
    else:
        m.give_up(refused("ConsumerGroupHeartbeat", code, m.config, message), reason)


def _unanswered(m: EpochMember, ticket: int, error: KafkaError) -> None:
    if ticket == m.heartbeat_ticket:
        m.heartbeat_ticket = m.reported = None
        m.note("info", notes.HEARTBEAT_FAILED, cause=str(error))
        if error.retriable:
            heartbeat.coordinator_lost(m, str(error))
        elif m.is_automatic and isinstance(error, Unsupported):
            _use_classic(m, str(error))
        else:
            m.give_up(error, "the coordinator could not be sent a heartbeat")
    elif m.closing is not None and ticket == m.closing.ticket:
        m.note("info", notes.NOT_LEFT, cause=str(error))
        m.closing.ticket = None


def _use_classic(m: EpochMember, cause: str) -> None:
    """E6. A member that has joined leaves its epoch first: it joins again, and is refused again."""
    if m.state is S.JOINING:
        m.note("info", notes.CLASSIC_PROTOCOL, cause=cause)
        m.is_replaced = True
        m.out.append(UseClassicProtocol())
    elif m.state not in ENDED:
        m.out_of_group(cause, keep_id=True)


def _commit_refused(m: EpochMember, event: CommitRefused) -> None:
    """A commit was refused. An old epoch is no loss: the next heartbeat brings the present one."""
    if m.generation == NO_GENERATION or event.generation not in (None, m.generation):
        return
    match E.of(event.code):
        case E.FENCED_INSTANCE_ID:
            heartbeat.fence(m, fenced(m.config))
        case E.UNKNOWN_MEMBER_ID:
            m.out_of_group("encountered UNKNOWN_MEMBER_ID from OFFSET_COMMIT response", keep_id=True)
        case _:
            m.is_heartbeat_due = True


def _timer_expired(m: EpochMember, key: str) -> None:
    m.armed.discard(key)
    match key:
        case "heartbeat":
            m.is_heartbeat_due = True
        case "session":
            heartbeat.session_expired(m)
        case "poll" | "hook":
            _poll_expired(m)
        case "retry":
            m.is_backing_off = False


# ---- polls and hooks


def _poll(m: EpochMember, event: PollBegan | PollEnded | PollReturned) -> None:
    match event:
        case PollBegan():
            m.disarm("poll")
            if m.fenced is not None:
                m.fail(m.fenced)
            else:
                m.polling = True
        case PollEnded():
            m.polling = False
        case PollReturned():
            m.polling = False
            if m.state not in ENDED:
                m.arm("poll", m.config.max_poll_interval_ms)


def _reconcile(m: EpochMember) -> None:
    """Begin the next hook of the assignment, or end it: revoke what is missing, then assign what is new."""
    removed = m.removed
    if removed:
        partitions = tuple(sorted(removed))
        m.note("info", notes.REVOKING, partitions=_names(partitions))
        m.run(Revoke(partitions))
    elif m.has_to_reconcile:
        desired = m.desired
        added = tuple(sorted(desired.keys() - m.owned))
        m.owned, m.is_new = frozenset(desired), False
        m.ids = {partition.topic: topic_id for partition, topic_id in desired.items()}
        m.note("info", notes.ADDING, partitions=_names(added))
        m.run(Assign(tuple(sorted(m.owned)), added))
    else:
        m.move(S.STABLE if m.coordinator is not None else S.REDISCOVERING)


def _hook_done(m: EpochMember, event: HookDone) -> None:
    if m.hook is None or event.ticket != m.hook[0]:
        return
    (_, hook), m.hook = m.hook, None
    m.disarm("hook")
    _drop(m, hook)
    if m.state is S.ASSIGNING and not m.has_to_reconcile:
        m.move(S.STABLE if m.coordinator is not None else S.REDISCOVERING)
    if event.error is not None:
        m.fail(event.error)


def _drop(m: EpochMember, hook: Hook) -> None:
    """Revoked and lost partitions are no longer owned, whether the hook succeeded or not."""
    if isinstance(hook, Revoke | Lose):
        m.owned -= frozenset(hook.partitions)


def _lose(m: EpochMember) -> None:
    partitions = tuple(sorted(m.owned))
    m.note("info", notes.LOSING, partitions=_names(partitions))
    m.run(Lose(partitions))


# ---- leaving


def _poll_expired(m: EpochMember) -> None:
    """max.poll.interval.ms has passed: leave, so that others get the partitions; the next poll joins again."""
    if m.state in (S.DOWN, S.LEAVING, S.CLOSED):
        return
    m.note("warning", notes.POLL_EXPIRED, max_poll_interval_ms=m.config.max_poll_interval_ms)
    if m.coordinator is not None:
        _send_leave(m, leave.POLL_REASON)
    m.out_of_group("consumer pro-actively leaving the group", keep_id=True)


def _send_leave(m: EpochMember, reason: str) -> int:
    m.note("info", notes.LEAVING, reason=reason, node=m.coordinator)
    config = m.config
    request = ConsumerGroupHeartbeatRequest(
        group_id=config.group_id or "",
        member_id=m.member_id,
        member_epoch=LEAVE_STATIC_EPOCH if m.is_static else LEAVE_EPOCH,
        instance_id=config.group_instance_id,
    )
    return m.send_request(request, config.request_timeout_ms)


def _proceed_closing(m: EpochMember) -> None:
    """The next step of closing: the last commit, revoke, leave."""
    closing = m.closing
    if closing is None or m.hook is not None or m.state is not S.LEAVING:
        return
    if not closing.committed and not closing.is_timed_out:
        closing.committed = True
        m.run(BeforeLeaving())
    elif m.owned and not closing.is_timed_out:
        _give_up_all(m)
    elif not closing.is_requested:
        closing.is_requested = True
        if m.coordinator is not None and (m.generation != NO_GENERATION or m.heartbeat_ticket is not None):
            m.cancel_heartbeat()
            m.disarm("heartbeat", "session")
            closing.ticket = _send_leave(m, closing.reason)
            return
    if closing.is_requested and closing.ticket is None:
        m.note("info", notes.CLOSED)
        m.end()


def _give_up_all(m: EpochMember) -> None:
    if m.generation == NO_GENERATION:
        _lose(m)
    else:
        partitions = tuple(sorted(m.owned))
        m.note("info", notes.REVOKING, partitions=_names(partitions))
        m.run(Revoke(partitions))


def _grouped(partitions: Iterable[TopicPartition], ids: dict[str, bytes]) -> tuple[TopicPartitions, ...]:
    """The partitions by topic id, in the order of their names."""
    return tuple(
        TopicPartitions(topic_id=ids[topic], partitions=tuple(partition.partition for partition in of_topic))
        for topic, of_topic in groupby(sorted(partitions), key=lambda partition: partition.topic)
    )


def _names(partitions: Iterable[Any]) -> list[str]:
    return [str(partition) for partition in partitions]
