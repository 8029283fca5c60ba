"""JoinGroup, key 11, versions 0-9.

v1 rebalance timeout · v4 MEMBER_ID_REQUIRED first (KIP-394) · v5 static members (KIP-345) · v6 flexible
v7 protocol type in the answer · v8 reason (KIP-800) · v9 skip assignment (KIP-814)

Law
    CG26 The ids that a group of the consumer protocol gives are of Kafka's form for ids: 22 characters of base64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import uuid4

from rota.coordinator.api.node import Call, Node
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.group.effects import Joined, JoinedMember
from rota.coordinator.group.events import InstanceId, Join, MemberId, Proto
from rota.coordinator.group.transitions import GroupState
from rota.coordinator.group.waiting import park_join
from rota.coordinator.group_coordinator import GroupShard
from rota.coordinator.log.properties import new_id
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

INITIAL_DELAY_MIN_MS: Final = 5  # while clients connect: those that start together make one generation
CONNECTING_MS: Final = 100  # after the last new connection
_PREPARING: Final = GroupState.PREPARING  # bound once, for speed
PREFIX_CHARS_MAX: Final = 4_096  # of a member id: with the rest of it, what the offsets topic can hold (32,767 bytes)


def join_group(
    node: Node, call: Call, request: JoinGroupRequest
) -> JoinGroupResponse | DelayedReply[JoinGroupResponse]:
    """Return an error at once, or a response that is delayed until the group's next generation begins."""
    shard = _refusal(node, request)
    if isinstance(shard, ErrorCode):
        return _response(Joined(member_id=MemberId(request.member_id), error=shard), call.version)
    group, version = node.groups.group(shard, request.group_id), call.version
    delayed_reply = _parked(node, shard, group, call, request) or _submitted(node, shard, group, call, request)
    return delayed_reply.map(lambda body: _response(body, version))


def _parked(
    node: Node, shard: GroupShard, group: HostedGroup, call: Call, request: JoinGroupRequest
) -> DelayedReply[Joined] | None:
    """Return the reply to a member that rejoins as it was while others are missing; None if an event has to decide."""
    if group.state is not _PREPARING:
        return None
    session_ms = request.session_timeout_ms
    timeouts_ms = session_ms, request.rebalance_timeout_ms if call.version >= 1 else session_ms
    parked = (
        request.member_id,
        request.group_instance_id,
        (call.client_id, call.client_host),
        timeouts_ms,
        request.protocol_type,
        request.protocols,
        node.now_ms(),
    )
    return shard.park(group, park_join, parked, _refusal_of(request))


def _refusal_of(request: JoinGroupRequest) -> Callable[[ErrorCode], Joined]:
    return lambda code: Joined(member_id=MemberId(request.member_id), error=code)


def _submitted(
    node: Node, shard: GroupShard, group: HostedGroup, call: Call, request: JoinGroupRequest
) -> DelayedReply[Joined]:
    event = _event(shard, group, call, request)
    if node.now_ms() - node.connected_ms < CONNECTING_MS:
        event.initial_delay_min_ms = INITIAL_DELAY_MIN_MS
    return shard.submit(group, event, _refusal_of(request), mutes=True)


def _refusal(node: Node, request: JoinGroupRequest) -> GroupShard | ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    config = node.groups.config
    if not config.session_min_ms <= request.session_timeout_ms <= config.session_max_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if sum([len(protocol.metadata) for protocol in request.protocols]) > node.config.message_max_bytes:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # as Kafka when the group's record is too large to be written
    return node.groups.ready(request.group_id)


def _event(shard: GroupShard, group: HostedGroup, call: Call, request: JoinGroupRequest) -> Join:
    instance_id = request.group_instance_id
    return Join(
        token=shard.token(),
        member_id=MemberId(request.member_id),
        instance_id=None if instance_id is None else InstanceId(instance_id),
        fresh_id=MemberId(request.member_id or _fresh_id(group, instance_id or call.client_id)),
        client_id=call.client_id,
        client_host=call.client_host,
        session_ms=request.session_timeout_ms,
        rebalance_ms=request.rebalance_timeout_ms if call.version >= 1 else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(Proto(protocol.name, protocol.metadata) for protocol in request.protocols),
        requires_known_id=call.version >= 4 and instance_id is None,
        can_skip_assignment=call.version >= 9,
        reason=request.reason,
    )


def _fresh_id(group: HostedGroup, name: str) -> str:
    """CG26. Return an id that no member has; it begins with `name` in a classic group alone."""
    if group.consumer is not None and group.consumer.members:
        return new_id()
    return f"{name[:PREFIX_CHARS_MAX]}-{uuid4()}"


def _response(body: Joined, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=body.error,
        generation_id=body.generation,
        protocol_type=body.protocol_type,
        protocol_name=body.protocol if version >= 7 else body.protocol or "",
        leader=body.leader,
        skip_assignment=body.skip_assignment,
        member_id=body.member_id,
        members=tuple(map(_response_member, body.members)),
    )


def _response_member(member: JoinedMember) -> JoinGroupResponseMember:
    return JoinGroupResponseMember(
        member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
    )
