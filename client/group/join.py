"""Revoke before a join, find the coordinator, send JoinGroup.

Laws
    EAGER revokes everything before it joins, COOPERATIVE only what is not subscribed to any more (KIP-429).
    Partitions of a generation that is over are lost, not revoked.
    After the revocation the join goes on without a poll, until there is an assignment to take over.
"""

from __future__ import annotations

from rota.client.errors import AssignmentFailed, KafkaError, Unsupported
from rota.client.group import heartbeat, leader_assignment, notes
from rota.client.group.effects import BeforeRejoin, Hook, Lose, Revoke
from rota.client.group.refusals import fenced, java_name, refused, truncated
from rota.client.group.state import Member
from rota.client.group.states import MemberState
from rota.client.group.subscription import encoded_subscription, is_subscribed
from rota.protocol.consumer_protocol import PROTOCOL_TYPE
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse

S = MemberState
E = ErrorCode
LAPSE_MS = 5_000  # a coordinator holds a JoinGroup for the rebalance timeout; then its answer has to travel
MS_MAX = (1 << 31) - 1


def begin(m: Member) -> None:
    """Leave DOWN, or a generation that ends: run the hooks of the revocation one by one, then join."""
    must_join = m.state in (S.DOWN, S.REVOKING) or (m.state in (S.STABLE, S.REDISCOVERING) and m.rejoin)
    if m.subscription is None or not must_join:
        return
    hook = _next_hook(m)
    if hook is None:
        m.move(S.DISCOVERING if m.coordinator is None else S.JOINING)
    elif m.polling:
        if m.state is not S.REVOKING:
            m.move(S.REVOKING)
        m.committed = True
        _log_hook(m, hook)
        m.run(hook)


def _next_hook(m: Member) -> Hook | None:
    if not m.owned:
        return None
    if m.generation < 0:
        return Lose(tuple(sorted(m.owned)))
    if not m.committed:
        return BeforeRejoin()
    topics = m.subscription
    revoked = [
        partition
        for partition in m.owned
        if not m.is_cooperative or topics is None or not is_subscribed(topics, partition.topic)
    ]
    return Revoke(tuple(sorted(revoked))) if revoked else None


def _log_hook(m: Member, hook: Hook) -> None:
    if isinstance(hook, Lose):
        m.note("info", notes.LOSING, partitions=[str(partition) for partition in hook.partitions])
    elif isinstance(hook, Revoke):
        m.note("info", notes.REVOKING, partitions=[str(partition) for partition in hook.partitions])


def proceed(m: Member) -> None:
    """The next step of a join: find the coordinator, refresh metadata for a pattern, send JoinGroup."""
    if m.coordinator is None:
        if m.state is S.JOINING and m.rebalance_ticket is None:
            m.move(S.DISCOVERING)
        m.find_coordinator()
        return
    if m.state is S.DISCOVERING:
        m.move(S.JOINING)
    if m.rebalance_ticket is not None or m.is_backing_off or m.refresh_ticket is not None:
        return
    if not isinstance(m.subscription, frozenset) and not m.is_metadata_fresh:
        # a pattern is matched against fresh metadata: one rebalance instead of several for a new topic
        m.refresh_metadata()
    else:
        _send(m)


def _send(m: Member) -> None:
    m.joined_topics, m.is_metadata_fresh = m.topics, False
    m.join_reason, m.rejoin = m.rejoin or m.join_reason, None
    try:
        protocols = _protocols(m)
    except Exception as error:  # noqa: BLE001  # whatever an assignor of the user's raises, or what the wire cannot say
        failed = AssignmentFailed(f"the subscription of group {m.config.group_id} could not be sent: {error!r}")
        failed.__cause__ = error
        m.give_up(failed, "rebalance failed due to AssignmentFailed")
        return
    m.cancel_heartbeat()
    m.disarm("heartbeat", "session")
    m.note("info", notes.JOINING, reason=m.reason)
    rebalance_ms = m.config.max_poll_interval_ms
    request = JoinGroupRequest(
        group_id=m.config.group_id or "",
        session_timeout_ms=m.config.session_timeout_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=m.member_id,
        group_instance_id=m.config.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=truncated(m.reason),
    )
    m.rebalance_ticket = m.send_request(request, min(max(m.config.request_timeout_ms, rebalance_ms + LAPSE_MS), MS_MAX))


def _protocols(m: Member) -> tuple[JoinGroupRequestProtocol, ...]:
    topics = m.joined_topics or frozenset()
    return tuple(
        JoinGroupRequestProtocol(
            name=name,
            metadata=encoded_subscription(
                topics, assignor.user_data(sorted(topics)), m.owned, m.generation, m.config.client_rack
            ),
        )
        for name, assignor in m.assignors.items()
    )


# ---- answers


def answered(m: Member, answer: JoinGroupResponse) -> None:
    code = E.of(answer.error_code)
    if code is E.NONE and answer.protocol_type not in (None, "", PROTOCOL_TYPE):
        code = E.INCONSISTENT_GROUP_PROTOCOL
    if code is E.NONE:
        _joined(m, answer)
        return
    m.note("debug" if code is E.MEMBER_ID_REQUIRED else "info", notes.JOIN_FAILED, code=code.name)
    if code is E.MEMBER_ID_REQUIRED:
        m.member_id = answer.member_id
        m.reason = f"need to re-join with the given member-id: {answer.member_id}"
        _again(m, at_once=m.attempts == 0)
    else:
        failed(m, code, "JoinGroup")


def _joined(m: Member, answer: JoinGroupResponse) -> None:
    if m.lost is not None and m.lost.generation != answer.generation_id:
        m.lost = None
    m.member_id, m.generation, m.join_reason = answer.member_id, answer.generation_id, None
    m.assignor_name, m.watched, m.attempts = answer.protocol_name or "", None, 0
    m.move(S.SYNCING)
    leads = answer.leader == answer.member_id
    m.note("info", notes.JOINED, protocol=m.assignor_name, leader=leads)
    heartbeat.arm(m)
    if leads:
        leader_assignment.elected(m, answer)
    else:
        m.follow_topics()
        leader_assignment.send(m, ())


def failed(m: Member, code: ErrorCode, what: str) -> None:
    """JoinGroup or SyncGroup was refused: retry, rejoin, look up the coordinator or fail, by the code."""
    m.reason = f"rebalance failed due to {java_name(code)}"
    match code:
        case E.ILLEGAL_GENERATION | E.UNKNOWN_MEMBER_ID:
            _removed_from_group(m, code)
        case E.REBALANCE_IN_PROGRESS:
            _again(m, at_once=m.attempts == 0)
        case E.COORDINATOR_LOAD_IN_PROGRESS:
            _again(m)
        case E.NOT_COORDINATOR | E.COORDINATOR_NOT_AVAILABLE:
            heartbeat.coordinator_lost(m, code.name)
            _again(m)
        case E.FENCED_INSTANCE_ID:
            heartbeat.fence(m, fenced(m.config))
        case _ if code.retriable:
            _again(m)
        case _:
            m.give_up(refused(what, code, m.config), m.reason)


def _removed_from_group(m: Member, code: ErrorCode) -> None:
    if m.owned:
        m.out_of_group(m.reason, keep_id=code is E.ILLEGAL_GENERATION)
        return
    m.note("info", notes.RESETTING, reason=m.reason, member_id_kept=code is E.ILLEGAL_GENERATION)
    m.lose_generation()
    if code is E.UNKNOWN_MEMBER_ID:
        m.member_id = ""
    _again(m, at_once=m.attempts == 0)


def _again(m: Member, *, at_once: bool = False) -> None:
    """Return to JOINING, where `proceed` continues."""
    if m.state is S.SYNCING:
        m.move(S.JOINING)
    m.elected = None
    m.arm_session()
    if at_once:
        m.attempts += 1
    elif not m.is_backing_off:
        m.back_off()


def unanswered(m: Member, error: KafkaError) -> None:
    what = "JoinGroup" if m.state is S.JOINING else "SyncGroup"
    m.note("info", notes.JOIN_FAILED if m.state is S.JOINING else notes.SYNC_FAILED, cause=str(error))
    m.reason = "rebalance failed due to DisconnectException"
    if isinstance(error, Unsupported):
        m.give_up(refused(what, E.UNSUPPORTED_VERSION, m.config), m.reason)
    elif not error.retriable:
        m.give_up(error, m.reason)
    else:
        heartbeat.coordinator_lost(m, str(error))
        _again(m)
