"""One member of one group: `step` takes an event and returns effects. No clock, no socket, no loop. Pure.

Laws
    M1  A partition that was assigned is revoked or lost exactly once before it is assigned again or the member closes.
    M2  A hook begins only while `poll` or `close` runs, and one at a time.
    M3  At most one JoinGroup or SyncGroup, and at most one Heartbeat, is waited for; each names the current generation.
        An answer that is no longer waited for changes nothing.
    M4  Once the coordinator answers well every `poll` ends, in a membership or in a failure.
    M5  After CLOSED no timer is armed, and no event does anything.

The state is in state.py. The branches: join (giving up, discovery, JoinGroup), leader_assignment and sync (SyncGroup),
assign (taking over), heartbeat (heartbeats, sessions, lost coordinators), metadata_watch (topics), leave (poll
timeout, close).
"""

from __future__ import annotations

from typing import Any, assert_never

from rota.client.errors import KafkaError
from rota.client.group import assign, heartbeat, join, leave, metadata_watch, sync
from rota.client.group.effects import Effect, Wake
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
from rota.client.group.state import ENDED, MEMBER_STATES, NO_GENERATION, Member
from rota.client.group.states import MemberState

S = MemberState


def step(m: Member, event: Event, now_ms: int) -> list[Effect]:
    """Handle one event at that time (ms of a monotonic clock) and return its effects."""
    if m.state is S.CLOSED:
        return []
    was_due, m.now_ms, m.out = m.is_due, now_ms, []
    _decide(m, event)
    _advance(m)
    if m.is_due and not was_due and not m.polling:
        m.out.append(Wake())
    return m.out


def _decide(m: Member, event: Event) -> None:
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
        case Subscribed() | MetadataChanged() | MetadataRefreshed():
            metadata_watch.topics_changed(m, event)
        case CoordinatorFound():
            heartbeat.coordinator_found(m, event.node)
        case CoordinatorNotFound():
            heartbeat.coordinator_not_found(m, event.error)
        case CommitRefused():
            heartbeat.commit_refused(m, event.code, event.generation)
        case Rejoin():
            if m.state in MEMBER_STATES and m.rejoin is None:
                m.request_rejoin(event.reason)
        case Close():
            leave.close(m, event.reason)
        case CloseTimedOut():
            leave.close_timed_out(m)
        case _:
            assert_never(event)


def _advance(m: Member) -> None:
    """Begin the next due and possible action; one at a time."""
    if m.state in ENDED:
        leave.proceed(m)
        return
    if m.polling and m.hook is None and m.state is S.ASSIGNING:
        assign.proceed(m)
    if m.hook is None and (m.polling or m.state is S.REVOKING):
        join.begin(m)
    if m.state in (S.DISCOVERING, S.JOINING):
        join.proceed(m)
    if m.generation != NO_GENERATION:
        m.find_coordinator()


def _poll(m: Member, event: PollBegan | PollEnded | PollReturned) -> None:
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


def _timer_expired(m: Member, key: str) -> None:
    m.armed.discard(key)
    match key:
        case "heartbeat":
            heartbeat.send_heartbeat(m)
        case "session":
            heartbeat.session_expired(m)
        case "poll" | "hook":
            leave.poll_expired(m)
        case "retry":
            m.is_backing_off = False


def _hook_done(m: Member, event: HookDone) -> None:
    if m.hook is None or event.ticket != m.hook[0]:
        return
    (_, hook), m.hook = m.hook, None
    m.disarm("hook")
    error, m.after_hook = event.error or m.after_hook, None
    assign.done(m, hook)
    if error is not None:
        m.fail(error)


def _answered(m: Member, ticket: int, response: Any) -> None:
    """Pass each response to the branch of its request; an unexpected response changes nothing (M3)."""
    if ticket == m.heartbeat_ticket:
        m.heartbeat_ticket = None
        heartbeat.answered(m, response.error_code)
    elif ticket == m.rebalance_ticket:
        m.rebalance_ticket = None
        if m.state is MemberState.JOINING:
            join.answered(m, response)
        else:
            sync.answered(m, response)
    else:
        leave.answered(m, ticket, response)


def _unanswered(m: Member, ticket: int, error: KafkaError) -> None:
    if ticket == m.heartbeat_ticket:
        m.heartbeat_ticket = None
        heartbeat.unanswered(m, error)
    elif ticket == m.rebalance_ticket:
        m.rebalance_ticket = None
        join.unanswered(m, error)
    else:
        leave.unanswered(m, ticket, error)
