"""ConsumerGroupDescribe, key 69, versions 0-1.

v0 flexible (KIP-848) · v1 member type (KIP-1099)
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.repeats import Repeats
from rota.coordinator.consumer_group.description import ConsumerDescription, DescribedConsumer, Named
from rota.coordinator.consumer_group.machine import CONSUMER, HostedGroup
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
from rota.coordinator.security.operations import ALL_OPERATIONS, NOT_REQUESTED, ResourceType
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1
TYPES_SINCE: Final = 1


def consumer_group_describe(
    node: Node, call: Call, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | DelayedReply[ConsumerGroupDescribeResponse]:
    """Return epochs, members, what they own and what they are to own of each group.

    Delayed while a group's records are being written.
    """
    if CONSUMER not in node.config.group_coordinator_rebalance_protocols:
        refused = (_refused(group_id, ErrorCode.UNSUPPORTED_VERSION, None) for group_id in request.group_ids)
        return ConsumerGroupDescribeResponse(groups=tuple(refused))
    is_requested = request.include_authorized_operations
    operations = ALL_OPERATIONS[ResourceType.GROUP] if is_requested else NOT_REQUESTED
    repeats = Repeats()
    described = [
        _refused(group_id, ErrorCode.INVALID_REQUEST, None)
        if repeats.is_refused(group_id)
        else _describe(node, call, group_id, operations)
        for group_id in request.group_ids
    ]
    return gather(described, lambda groups: ConsumerGroupDescribeResponse(groups=tuple(groups)))


def _describe(node: Node, call: Call, group_id: str, operations: int) -> DescribedGroup | DelayedReply[DescribedGroup]:
    shard = node.groups.ready(group_id) if group_id else ErrorCode.INVALID_GROUP_ID
    if isinstance(shard, ErrorCode):
        return _refused(group_id, shard, None)
    body = _of(call, shard.machines.get(group_id), group_id, operations)
    return shard.when_committed(body, lambda code: _refused(group_id, code, None))


def _of(call: Call, group: HostedGroup | None, group_id: str, operations: int) -> DescribedGroup:
    if group is None:
        return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    description = group.describe_consumer()
    if description is None:
        return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return _described(call, group_id, description, operations)


def _refused(group_id: str, code: ErrorCode, text: str | None) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id,
        error_code=code,
        error_message=None if text is None else message(text),
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
    )


def _described(call: Call, group_id: str, description: ConsumerDescription, operations: int) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id,
        group_state=description.state.value,
        group_epoch=description.epoch,
        assignment_epoch=description.target_epoch,
        assignor_name=description.assignor,
        members=tuple(_member(call, member) for member in description.members),
        authorized_operations=operations,
    )


def _member(call: Call, described: DescribedConsumer) -> Member:
    member = described.member
    kind = CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(described.assigned),
        target_assignment=_assignment(described.target),
        member_type=kind if call.version >= TYPES_SINCE else -1,
    )


def _assignment(named: Named) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=partitions)
            for topic_id, name, partitions in named
        )
    )
