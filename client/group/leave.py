"""Leave the group: after the poll timeout, or because the member closes.

Laws
    A static member sends no LeaveGroup (KIP-345): its session goes on until it is back or the session expires.
    Closing does the last commit, revokes, and leaves, in that order. When its time has passed it only leaves.
    LeaveGroup has a connection of its own: on the group's connection it would wait for the answer to JoinGroup.
"""

from __future__ import annotations

from typing import Any

from rota.client.errors import KafkaError
from rota.client.group import notes
from rota.client.group.effects import BeforeLeaving, Lose, Revoke
from rota.client.group.refusals import truncated
from rota.client.group.state import Closing, Member
from rota.client.group.states import MemberState
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

S = MemberState
POLL_REASON = "consumer poll timeout has expired."
SIDE_LANE = ""


def poll_expired(m: Member) -> None:
    """max.poll.interval.ms has passed: leave, so that others get the partitions; the next poll joins again."""
    if m.state in (S.DOWN, S.LEAVING, S.CLOSED):
        return
    m.note("warning", notes.POLL_EXPIRED, max_poll_interval_ms=m.config.max_poll_interval_ms)
    if _has_to_send_leave(m):
        _send(m, POLL_REASON)
    m.out_of_group("consumer pro-actively leaving the group", keep_id=False)


def _has_to_send_leave(m: Member) -> bool:
    return not m.is_static and bool(m.member_id) and m.coordinator is not None


def _send(m: Member, reason: str) -> int:
    m.note("info", notes.LEAVING, reason=reason, node=m.coordinator)
    members = (MemberIdentity(member_id=m.member_id, reason=truncated(reason)),)
    request = LeaveGroupRequest(group_id=m.config.group_id or "", member_id=m.member_id, members=members)
    return m.send_request(request, m.config.request_timeout_ms, lane=SIDE_LANE)


def close(m: Member, reason: str) -> None:
    """Begin to close; a second call changes nothing."""
    if m.closing is not None:
        return
    m.closing = Closing(reason, m.state in (S.DISCOVERING, S.JOINING, S.SYNCING))
    m.cancel_rebalance_request()
    m.disarm("poll", "hook", "retry")
    m.move(S.LEAVING)


def close_timed_out(m: Member) -> None:
    """The time to close has passed: no further hooks. The second time: do not wait for LeaveGroup's response either."""
    if m.closing is not None:
        if m.closing.is_timed_out and m.closing.is_requested:
            m.closing.ticket = None
        m.closing.is_timed_out = True


def proceed(m: Member) -> None:
    """The next step of closing."""
    closing = m.closing
    if closing is None or m.hook is not None or m.state is not S.LEAVING:
        return
    if not closing.committed and not closing.is_timed_out:
        closing.committed = True
        m.run(BeforeLeaving())
    elif m.owned and not closing.is_timed_out:
        _give_up(m, closing)
    elif not closing.is_requested:
        closing.is_requested = True
        if _has_to_send_leave(m):
            closing.ticket = _send(m, closing.reason)
            m.cancel_heartbeat()
            m.disarm("heartbeat", "session")
            return
    if closing.is_requested and closing.ticket is None:
        m.note("info", notes.CLOSED)
        m.end()


def _give_up(m: Member, closing: Closing) -> None:
    partitions = tuple(sorted(m.owned))
    lost = m.generation < 0 or closing.was_joining
    m.note("info", notes.LOSING if lost else notes.REVOKING, partitions=[str(partition) for partition in partitions])
    m.run(Lose(partitions) if lost else Revoke(partitions))


def answered(m: Member, ticket: int, response: Any) -> None:
    """LeaveGroup's response; a response of any other ticket changes nothing."""
    if m.closing is not None and ticket == m.closing.ticket:
        codes = [response.error_code, *(member.error_code for member in response.members)]
        wrong = [ErrorCode.of(code).name for code in codes if code]
        m.note("info", notes.NOT_LEFT if wrong else notes.LEFT, **({"cause": ", ".join(wrong)} if wrong else {}))
        m.closing.ticket = None


def unanswered(m: Member, ticket: int, error: KafkaError) -> None:
    if m.closing is not None and ticket == m.closing.ticket:
        m.note("info", notes.NOT_LEFT, cause=str(error))
        m.closing.ticket = None
