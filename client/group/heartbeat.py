"""Heartbeats, and the handling of their responses: rebalances, lost memberships, expired sessions, lost coordinators.

Laws
    A heartbeat goes every heartbeat_interval_ms, whatever the user's code does; none while a JoinGroup or SyncGroup
    waits, since the coordinator keeps who waits and answers in order.
    A broken connection, or no answer in time, makes the coordinator unknown; the member reads on, looks for it (R12).
    No answered heartbeat within session_timeout_ms ends the membership: what is held is lost.
"""

from __future__ import annotations

from rota.client.errors import BrokerError, FencedInstance, KafkaError
from rota.client.group import notes
from rota.client.group.effects import ForgetCoordinator
from rota.client.group.refusals import fenced, refused
from rota.client.group.state import MEMBER_STATES, Member
from rota.client.group.states import MemberState
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.heartbeat import HeartbeatRequest

S = MemberState
E = ErrorCode
NO_SESSION = "session timed out without receiving a heartbeat response"


def arm(m: Member) -> None:
    """Restart the heartbeat timer and the session timer."""
    m.arm("heartbeat", m.config.heartbeat_interval_ms)
    m.arm_session()


def send_heartbeat(m: Member) -> None:
    """Send a heartbeat, unless a Heartbeat, JoinGroup or SyncGroup is under way."""
    if m.generation < 0 or m.coordinator is None or m.state is S.JOINING:
        return
    m.arm("heartbeat", m.config.heartbeat_interval_ms)
    if m.heartbeat_ticket is None and m.rebalance_ticket is None:
        request = HeartbeatRequest(
            group_id=m.config.group_id or "",
            generation_id=m.generation,
            member_id=m.member_id,
            group_instance_id=m.config.group_instance_id,
        )
        m.heartbeat_ticket = m.send_request(request, min(m.config.request_timeout_ms, m.config.session_timeout_ms))


def answered(m: Member, error_code: int) -> None:
    code = E.of(error_code)
    match code:
        case E.NONE | E.REBALANCE_IN_PROGRESS | E.COORDINATOR_LOAD_IN_PROGRESS:
            _alive(m, code)
        case E.NOT_COORDINATOR | E.COORDINATOR_NOT_AVAILABLE:
            m.note("info", notes.HEARTBEAT_FAILED, code=code.name)
            coordinator_lost(m, code.name)
        case E.ILLEGAL_GENERATION | E.UNKNOWN_MEMBER_ID:
            m.note("info", notes.HEARTBEAT_FAILED, code=code.name)
            reason = f"encountered {code.name} from HEARTBEAT response"
            m.out_of_group(reason, keep_id=code is E.ILLEGAL_GENERATION)
        case E.FENCED_INSTANCE_ID:
            fence(m, fenced(m.config))
        case _ if code.retriable:
            m.note("info", notes.HEARTBEAT_FAILED, code=code.name)
        case _:
            m.note("error", notes.HEARTBEAT_FAILED, code=code.name)
            m.give_up(refused("Heartbeat", code, m.config), f"encountered {code.name} from HEARTBEAT response")


def _alive(m: Member, code: ErrorCode) -> None:
    m.arm_session()
    m.attempts = 0
    if m.state is S.REDISCOVERING:
        m.move(S.STABLE)
    if code is E.REBALANCE_IN_PROGRESS and m.state in MEMBER_STATES and m.rejoin is None:
        m.note("info", notes.REBALANCING)
        m.request_rejoin("group is already rebalancing")


def unanswered(m: Member, error: KafkaError) -> None:
    m.note("info", notes.HEARTBEAT_FAILED, cause=str(error))
    if not error.retriable:
        m.give_up(error, "the coordinator could not be sent a heartbeat")
    else:
        coordinator_lost(m, str(error))


# ---- the coordinator


def coordinator_lost(m: Member, cause: str) -> None:
    """The coordinator is unknown from now on; `step` looks for it."""
    if m.coordinator is None:
        return
    m.note("info", notes.COORDINATOR_LOST, node=m.coordinator, cause=cause)
    m.out.append(ForgetCoordinator(m.coordinator))
    m.coordinator = None
    m.cancel_heartbeat()
    m.disarm("heartbeat")
    if m.state is S.STABLE:
        m.move(S.REDISCOVERING)
    elif m.state is S.SYNCING and m.rebalance_ticket is None:
        m.elected, m.reason = None, "rebalance failed due to DisconnectException"
        m.move(S.DISCOVERING)
    if m.attempts > 0 and not m.is_backing_off:
        m.back_off()
    else:
        m.attempts += 1


def coordinator_found(m: Member, node: int) -> None:
    m.is_finding = False
    m.coordinator = node
    m.note("debug", notes.DISCOVERED, node=node)  # the cluster says it too, once for all who ask
    if m.state not in (S.DISCOVERING, S.JOINING, S.SYNCING):
        send_heartbeat(m)


def coordinator_not_found(m: Member, error: KafkaError) -> None:
    m.is_finding = False
    m.note("warning", notes.NOT_DISCOVERED, cause=str(error))
    passing = error.is_retriable if isinstance(error, BrokerError) else error.retriable
    if not passing and m.state not in (S.LEAVING, S.DOWN):
        m.give_up(_explained(m, error), "rebalance failed due to FindCoordinator")
    else:
        m.back_off()


def _explained(m: Member, error: KafkaError) -> KafkaError:
    return refused("FindCoordinator", error.code, m.config) if isinstance(error, BrokerError) else error


# ---- sessions


def session_expired(m: Member) -> None:
    """No heartbeat was answered for session_timeout_ms: other members may have our partitions."""
    if m.generation >= 0:
        m.note("warning", notes.SESSION_EXPIRED, session_timeout_ms=m.config.session_timeout_ms)
        if m.coordinator is not None:
            coordinator_lost(m, NO_SESSION)
        m.out_of_group(NO_SESSION, keep_id=True)


def commit_refused(m: Member, code: int, generation: int | None) -> None:
    """A commit was refused. A refusal in an earlier generation changes nothing."""
    if m.generation < 0 or generation not in (None, m.generation):
        return
    match E.of(code):
        case E.FENCED_INSTANCE_ID:
            fence(m, fenced(m.config))
        case (E.ILLEGAL_GENERATION | E.UNKNOWN_MEMBER_ID) as lost:
            reason = f"encountered {lost.name} from OFFSET_COMMIT response"
            m.out_of_group(reason, keep_id=lost is E.ILLEGAL_GENERATION)
        case E.REBALANCE_IN_PROGRESS if m.state in MEMBER_STATES and m.rejoin is None:
            m.request_rejoin("offset commit failed since group is already rebalancing")
        case _:
            pass


def fence(m: Member, error: FencedInstance) -> None:
    """End the membership for good: joining again would fence the other instance."""
    m.note("error", notes.FENCED, instance=m.config.group_instance_id)
    m.fenced = error
    m.out_of_group("encountered FENCED_INSTANCE_ID", keep_id=False)
    m.fail(error)
