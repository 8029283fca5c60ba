"""SyncGroup's response: an assignment to take over, or a reason to join again.

Laws
    An assignment that cannot be read, or comes from another assignor than the generation's, is never taken over.
    A static member that lost its membership and is answered with the same generation (KIP-345) joins again, when it
    had to: else what it revoked would never be assigned.
"""

from __future__ import annotations

from rota.client.errors import AssignmentFailed
from rota.client.group import heartbeat, join, metadata_watch, notes
from rota.client.group.state import NEEDS_REVOCATION, Assigned, Member
from rota.client.group.states import MemberState
from rota.client.group.subscription import flat
from rota.protocol.consumer_protocol import PROTOCOL_TYPE, Assignment, decode_assignment
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sync_group import SyncGroupResponse
from rota.protocol.wire import DecodeError

E = ErrorCode


def answered(m: Member, answer: SyncGroupResponse) -> None:
    code = _code(m, answer)
    if code is not E.NONE:
        m.note("info", notes.SYNC_FAILED, code=code.name)
        join.failed(m, code, "SyncGroup")
        return
    try:
        # a leader may have nothing to say to a member: no bytes at all
        assignment = decode_assignment(answer.assignment) if answer.assignment else Assignment()
    except DecodeError as error:
        wrong = AssignmentFailed(f"the leader of group {m.config.group_id} sent an assignment that is none: {error}")
        m.give_up(wrong, "rebalance failed due to AssignmentFailed")
        return
    _synced(m, assignment)


def _code(m: Member, answer: SyncGroupResponse) -> ErrorCode:
    """The code of the response; INCONSISTENT_GROUP_PROTOCOL when it is about another protocol than ours."""
    code = E.of(answer.error_code)
    strange_type = answer.protocol_type not in (None, "", PROTOCOL_TYPE)
    strange_name = answer.protocol_name not in (None, "", m.assignor_name)
    return E.INCONSISTENT_GROUP_PROTOCOL if code is E.NONE and (strange_type or strange_name) else code


def _synced(m: Member, assignment: Assignment) -> None:
    m.note("info", notes.SYNCED)
    m.attempts, m.reason, m.committed = 0, "", False
    m.pending = Assigned(frozenset(flat(assignment.assigned_partitions)), assignment.user_data)
    m.move(MemberState.ASSIGNING)
    heartbeat.arm(m)
    metadata_watch.rejoin_if_changed(m)
    _rejoin_if_unfinished(m)


def _rejoin_if_unfinished(m: Member) -> None:
    """Join again if this is the generation that the member had lost, and that generation was not finished."""
    lost, m.lost = m.lost, None
    if lost is None or m.rejoin is not None or m.pending is None:
        return
    if lost.owned - m.pending.partitions:
        m.request_rejoin(NEEDS_REVOCATION)
    elif lost.rejoin is not None:
        m.request_rejoin(lost.rejoin)
