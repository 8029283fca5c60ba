"""DescribeGroups, key 15, versions 0-6.

v3 authorized operations (KIP-430) · v4 instance ids (KIP-345) · v5 flexible · v6 error message, and
GROUP_ID_NOT_FOUND instead of the state Dead (KIP-1043)
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.repeats import Repeats
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.group.state import Description
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
from rota.coordinator.security.operations import ALL_OPERATIONS, NOT_REQUESTED, ResourceType
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def describe_groups(
    node: Node, call: Call, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | DelayedReply[DescribeGroupsResponse]:
    """Return state, protocol and members of each group. Delayed while a group's records are being written."""
    is_requested = call.version >= 3 and request.include_authorized_operations
    operations = ALL_OPERATIONS[ResourceType.GROUP] if is_requested else NOT_REQUESTED
    repeats = Repeats()
    described = [
        _refused(name, ErrorCode.INVALID_REQUEST)
        if repeats.is_refused(name)
        else _describe(node, call, name, operations)
        for name in request.groups
    ]
    return gather(described, lambda groups: DescribeGroupsResponse(groups=tuple(groups)))


def _describe(node: Node, call: Call, group_id: str, operations: int) -> DescribedGroup | DelayedReply[DescribedGroup]:
    shard = node.groups.ready(group_id)
    if isinstance(shard, ErrorCode):
        return _refused(group_id, shard)
    body = _described(call, shard.machines.get(group_id), group_id, operations)
    return shard.when_committed(body, lambda code: _refused(group_id, code))


def _refused(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code, group_state="", protocol_type="", protocol_data="")


def _described(call: Call, group: HostedGroup | None, group_id: str, operations: int) -> DescribedGroup:
    if group is None:
        return _unknown(call, group_id, operations, f"Group {group_id} not found.")
    if group.consumer is not None:
        return _unknown(call, group_id, operations, f"Group {group_id} is not a classic group.")
    description = group.describe()
    return DescribedGroup(
        group_id=group_id,
        group_state=description.state.value,
        protocol_type=description.protocol_type,
        protocol_data=description.protocol,
        members=_members(description),
        authorized_operations=operations,
    )


def _unknown(call: Call, group_id: str, operations: int, text: str) -> DescribedGroup:
    missing = call.version >= 6
    return DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE,
        error_message=message(text) if missing else None,
        group_state="Dead",
        protocol_type="",
        protocol_data="",
        authorized_operations=NOT_REQUESTED if missing else operations,  # CG25
    )


def _members(description: Description) -> tuple[DescribedGroupMember, ...]:
    return tuple(
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata,
            member_assignment=member.assignment,
        )
        for member in description.members
    )
