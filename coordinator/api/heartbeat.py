"""Heartbeat, key 12, versions 0-4.

v3 static members (KIP-345) · v4 flexible

While the shard loads the answer is NONE, as in Kafka: a member must not leave its group because the broker restarted.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.events import Heartbeat, InstanceId, MemberId
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

_NONE: Final = ErrorCode.NONE  # bound once: looking a member of an enum up takes as long as the group's decision
_ALIVE: Final = HeartbeatResponse(error_code=_NONE)  # shared: nothing changes a reply once it is made


def heartbeat(node: Node, call: Call, request: HeartbeatRequest) -> HeartbeatResponse | DelayedReply[HeartbeatResponse]:
    """Extend the member's session. Calls a classic group directly: its heartbeat has no event and no effects."""
    group_id = request.group_id
    if not group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = node.groups.ready(group_id)
    if isinstance(shard, ErrorCode):
        loading = shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=_NONE if loading else shard)
    group = shard.machines.get(group_id)
    if group is None:
        return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    member_id = MemberId(request.member_id)
    instance_id = None if request.group_instance_id is None else InstanceId(request.group_instance_id)
    if group.consumer is not None:
        event = Heartbeat(shard.token(), member_id, instance_id, request.generation_id)
        delayed_reply: DelayedReply[ErrorCode] = shard.submit(group, event, lambda code: code)
        return delayed_reply.map(_response)
    code = group.heartbeat(member_id, instance_id, request.generation_id, node.now_ms())
    if code is _NONE:
        return _ALIVE
    if code is ErrorCode.FENCED_INSTANCE_ID:
        shard.perform(group, group.fenced_heartbeat(member_id, instance_id, node.now_ms(), node.wall_ms()))
    return HeartbeatResponse(error_code=code)


def _response(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)
