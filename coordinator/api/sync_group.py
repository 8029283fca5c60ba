"""SyncGroup, key 14, versions 0-5.

v3 static members (KIP-345) · v4 flexible · v5 protocol type and name, to be compared with the group's (KIP-559)
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.group.effects import Synced
from rota.coordinator.group.events import InstanceId, MemberId, Sync
from rota.coordinator.group.transitions import GroupState
from rota.coordinator.group.waiting import assignment_of, park_sync
from rota.coordinator.group_coordinator import GroupShard
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_COMPLETING: Final = GroupState.COMPLETING  # bound once, for speed
_STABLE: Final = GroupState.STABLE


def sync_group(
    node: Node, call: Call, request: SyncGroupRequest
) -> SyncGroupResponse | DelayedReply[SyncGroupResponse]:
    """Return the member's assignment; delayed until the leader has sent it and it is durable."""
    shard = _refusal(node, call, request)
    if isinstance(shard, ErrorCode):
        return SyncGroupResponse(error_code=shard)
    group = shard.machines.get(request.group_id)
    if group is None:
        return SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    reply = _answered_without_event(shard, group, request)
    if reply is None:
        reply = shard.submit(group, _event(shard, request), _refused, mutes=True)
    return reply.map(_response) if isinstance(reply, DelayedReply) else _response(reply)


def _answered_without_event(
    shard: GroupShard, group: HostedGroup, request: SyncGroupRequest
) -> Synced | DelayedReply[Synced] | None:
    """Return the reply to a follower that waits for its part, or that fetches it; None if an event has to decide."""
    arguments = (
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        (request.protocol_type, request.protocol_name),
    )
    if group.state is _STABLE:
        return shard.read(group, assignment_of, arguments, _refused)
    if group.state is _COMPLETING:
        return shard.park(group, park_sync, arguments, _refused)
    return None


def _refused(code: ErrorCode) -> Synced:
    return Synced(error=code)


def _refusal(node: Node, call: Call, request: SyncGroupRequest) -> GroupShard | ErrorCode:
    if call.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    return node.groups.ready(request.group_id)


def _event(shard: GroupShard, request: SyncGroupRequest) -> Sync:
    instance_id = request.group_instance_id
    return Sync(
        token=shard.token(),
        member_id=MemberId(request.member_id),
        instance_id=None if instance_id is None else InstanceId(instance_id),
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=tuple((MemberId(part.member_id), part.assignment) for part in request.assignments),
    )


def _response(body: Synced) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=body.error,
        protocol_type=body.protocol_type,
        protocol_name=body.protocol,
        assignment=body.assignment,
    )
