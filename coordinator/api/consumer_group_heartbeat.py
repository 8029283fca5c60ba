"""ConsumerGroupHeartbeat, key 68, versions 0-1.

v0 flexible (KIP-848) · v1 regular expressions, and the client makes its member id (KIP-1082)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply, can_describe_all, refusal
from rota.coordinator.consumer_group.machine import CONSUMER
from rota.coordinator.consumer_group.member import LEFT_EPOCH, STATIC_LEFT_EPOCH
from rota.coordinator.group_coordinator import GroupShard
from rota.coordinator.log.properties import new_id
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

UNCHANGED: Final = -1
OWN_IDS_SINCE: Final = 1


def consumer_group_heartbeat(
    node: Node, call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | DelayedReply[ConsumerGroupHeartbeatResponse]:
    """Let a member join, stay or leave; delayed until what the answer says is durable."""
    if CONSUMER not in node.config.group_coordinator_rebalance_protocols:
        return _refusal(ErrorCode.UNSUPPORTED_VERSION, None)
    error = _invalid(call, request)
    if error is not None:
        return _refusal(ErrorCode.INVALID_REQUEST, error)
    shard = node.groups.ready(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refusal(shard, None)
    extended = _extend_session(node, shard, call, request)
    if extended is not None:
        return extended
    assignors = node.groups.environment.settings(request.group_id).assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = f"Supported assignors: {', '.join(assignors)}."
        text = f"ServerAssignor {request.server_assignor} is not supported. {known}"
        _note_refused(node, shard, call, request, refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, text))
        return _refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, text)
    group = node.groups.group(shard, request.group_id)
    event = _event(node, shard, call, request)
    delayed_reply: DelayedReply[HeartbeatReply] = shard.submit(group, event, lambda code: HeartbeatReply(error=code))
    return delayed_reply.map(_response)


def _extend_session(
    node: Node, shard: GroupShard, call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | DelayedReply[ConsumerGroupHeartbeatResponse] | None:
    """Answer a heartbeat without changes of a member that has its target; None for any other.

    Calls the group directly: such a heartbeat has no event and no effects. It is what members send nearly always.
    """
    if (
        request.topic_partitions is not None
        or request.subscribed_topic_names is not None
        or request.subscribed_topic_regex is not None
        or request.server_assignor is not None
        or request.instance_id is not None
        or request.rack_id is not None
        or request.rebalance_timeout_ms != UNCHANGED
    ):
        return None
    group = shard.machines.get(request.group_id)
    client = call.client_id, call.client_host
    body = group and group.extend_session(request.member_id, request.member_epoch, client, node.now_ms())
    return shard.when_committed(_response(body), lambda code: _refusal(code, None)) if body else None


def _note_refused(
    node: Node, shard: GroupShard, call: Call, request: ConsumerGroupHeartbeatRequest, refused: HeartbeatReply
) -> None:
    """Count the refusal in the timeline of a group that is there."""
    group = shard.machines.get(request.group_id)
    if group is not None:
        event = _event(node, shard, call, request)
        shard.perform(group, group.refused_heartbeat(event, refused, node.now_ms(), node.wall_ms()))


def _invalid(call: Call, request: ConsumerGroupHeartbeatRequest) -> str | None:
    """Return what is wrong with the request itself, in Kafka's words."""
    epoch = request.member_epoch
    if is_empty(request.member_id) and (call.version >= OWN_IDS_SINCE or epoch > 0 or epoch == LEFT_EPOCH):
        return "MemberId can't be empty."
    for name, value in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and is_empty(value):
            return f"{name} can't be empty."
    if epoch == 0:
        return _invalid_join(request)
    if epoch == STATIC_LEFT_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < STATIC_LEFT_EPOCH else None


def is_empty(text: str) -> bool:
    """Return whether Java's `trim` leaves nothing of the text."""
    return all(char <= " " for char in text)


def _invalid_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == UNCHANGED:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _event(node: Node, shard: GroupShard, call: Call, request: ConsumerGroupHeartbeatRequest) -> ConsumerHeartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    timeout_ms = request.rebalance_timeout_ms
    return ConsumerHeartbeat(
        token=shard.token(),
        member_id=request.member_id or new_id(),  # CG26
        member_epoch=request.member_epoch,
        client_id=call.client_id,
        client_host=call.client_host,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_ms=None if timeout_ms == UNCHANGED else timeout_ms,
        topic_names=None if names is None else frozenset(names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if owned is None else tuple((topic.topic_id, topic.partitions) for topic in owned),
        can_describe=_describes(node, call),
    )


def _describes(node: Node, call: Call) -> Callable[[str], bool]:
    authorizer = node.authorizer
    if authorizer is None:
        return can_describe_all
    from rota.coordinator.api.access.request import TOPIC, RequestAccess  # only where access is checked
    from rota.coordinator.security.operations import Operation

    access = RequestAccess(node, authorizer, call, "consumer_group_heartbeat")
    return lambda topic: access.is_allowed(Operation.DESCRIBE, TOPIC, topic)


def _refusal(code: ErrorCode, text: str | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=None if text is None else message(text))


def _response(body: HeartbeatReply) -> ConsumerGroupHeartbeatResponse:
    if body.error:
        return _refusal(body.error, body.message)
    assigned = body.assignment
    return ConsumerGroupHeartbeatResponse(
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        heartbeat_interval_ms=body.interval_ms,
        assignment=None
        if assigned is None
        else Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
                for topic_id, indexes in assigned.items()
            )
        ),
    )
