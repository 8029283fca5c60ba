"""LeaveGroup, key 13, versions 0-5.

v3 many members at once, by member id or instance id (KIP-345) · v4 flexible · v5 reason (KIP-800)
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.effects import LeaveResult
from rota.coordinator.group.events import InstanceId, Leave, LeavingMember, MemberId
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse


def leave_group(
    node: Node, call: Call, request: LeaveGroupRequest
) -> LeaveGroupResponse | DelayedReply[LeaveGroupResponse]:
    """Remove the members; return one error code for each."""
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = node.groups.ready(request.group_id)
    if isinstance(shard, ErrorCode):
        return LeaveGroupResponse(error_code=shard)
    members = _members(call, request)
    group = shard.machines.get(request.group_id)
    if group is None:
        unknown = tuple((identity.member_id, identity.instance_id, ErrorCode.UNKNOWN_MEMBER_ID) for identity in members)
        return _response(LeaveResult(ErrorCode.NONE, unknown), call.version)
    delayed_reply: DelayedReply[LeaveResult] = shard.submit(group, Leave(shard.token(), members), LeaveResult)
    return delayed_reply.map(lambda body: _response(body, call.version))


def _members(call: Call, request: LeaveGroupRequest) -> tuple[LeavingMember, ...]:
    if call.version < 3:
        return (LeavingMember(MemberId(request.member_id), None),)
    return tuple(
        LeavingMember(
            MemberId(member.member_id),
            None if member.group_instance_id is None else InstanceId(member.group_instance_id),
            member.reason,
        )
        for member in request.members
    )


def _response(body: LeaveResult, version: int) -> LeaveGroupResponse:
    if version < 3:
        return LeaveGroupResponse(error_code=body.error or (body.members[0][2] if body.members else 0))
    return LeaveGroupResponse(
        error_code=body.error,
        members=tuple(
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code)
            for member_id, instance_id, code in body.members
        ),
    )
