"""Guards of the APIs that name groups: members, committed offsets, coordinators, lists of groups.

Law
    AT5 A member that loses READ on the group while it waits for the others gets neither the members nor its
        assignment.

The file is longer than 400 lines because it is one guard beside the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rota.coordinator.api.access.request import CLUSTER, GROUP, TOPIC, Guard, RequestAccess, Serve, after
from rota.coordinator.security.operations import NOT_REQUESTED, Operation, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from rota.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from rota.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rota.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from rota.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.heartbeat import HeartbeatResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from rota.protocol.messages.leave_group import LeaveGroupResponse
from rota.protocol.messages.list_groups import ListGroupsRequest
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from rota.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
COMMIT_IDS_SINCE = FETCH_IDS_SINCE = 10
MANY_GROUPS_SINCE: Final = 8
GROUP_ERROR_SINCE: Final = 2
MANY_KEYS_SINCE: Final = 4
NULL_NAME_SINCE: Final = 7
_O = Operation

# ---- members


def join_group(access: RequestAccess, request: JoinGroupRequest, serve: Serve) -> Any:
    """READ on the group."""
    protocol_name = None if access.call.version >= NULL_NAME_SINCE else ""
    return _while_allowed(access, request, serve, JoinGroupResponse(error_code=DENIED, protocol_name=protocol_name))


def sync_group(access: RequestAccess, request: SyncGroupRequest, serve: Serve) -> Any:
    """READ on the group."""
    return _while_allowed(access, request, serve, SyncGroupResponse(error_code=DENIED))


def _while_allowed(access: RequestAccess, request: Any, serve: Serve, refused: Any) -> Any:
    """AT5. READ on the group, now and when the API responds."""

    def checked(response: Any) -> Any:
        return response if access.authorize(_O.READ, GROUP, request.group_id) else refused

    return after(serve(request), checked) if access.authorize(_O.READ, GROUP, request.group_id) else refused


def member_of_group(response_type: type[Any]) -> Guard:
    """Return the guard of an API of a group's members: READ on the group."""

    def guard(access: RequestAccess, request: Any, serve: Serve) -> Any:
        if access.authorize(_O.READ, GROUP, request.group_id):
            return serve(request)
        return response_type(error_code=DENIED)

    return guard


heartbeat: Final = member_of_group(HeartbeatResponse)


def consumer_group_heartbeat(access: RequestAccess, request: ConsumerGroupHeartbeatRequest, serve: Serve) -> Any:
    """READ on the group, DESCRIBE on each topic that the member names. A regular expression matches what it may see."""
    if not access.authorize(_O.READ, GROUP, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=DENIED)
    _, denied = access.split(_O.DESCRIBE, TOPIC, request.subscribed_topic_names or (), lambda name: name)
    return ConsumerGroupHeartbeatResponse(error_code=TOPIC_DENIED) if denied else serve(request)


leave_group: Final = member_of_group(LeaveGroupResponse)


# ---- lists of groups


def describe_groups(access: RequestAccess, request: DescribeGroupsRequest, serve: Serve) -> Any:
    """DESCRIBE on each group."""
    allowed, denied = access.split(_O.DESCRIBE, GROUP, request.groups, lambda name: name)
    refused = tuple(DescribedGroup(group_id=name, error_code=DENIED) for name in denied)
    if not allowed:
        return DescribeGroupsResponse(groups=refused)

    def finish(response: DescribeGroupsResponse) -> DescribeGroupsResponse:
        described = (_with_operations(access, group) for group in response.groups)
        return replace(response, groups=(*refused, *described))

    return after(serve(replace(request, groups=tuple(allowed))), finish)


UNSEEN_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."


def consumer_group_describe(access: RequestAccess, request: ConsumerGroupDescribeRequest, serve: Serve) -> Any:
    """DESCRIBE on each group, and on each topic of its members: a group with other topics is not shown."""
    allowed, denied = access.split(_O.DESCRIBE, GROUP, request.group_ids, lambda name: name)
    refused = tuple(_consumer_refused(name, DENIED, None) for name in denied)
    if not allowed:
        return ConsumerGroupDescribeResponse(groups=refused)

    def shown(group: DescribedConsumerGroup) -> DescribedConsumerGroup:
        if not all(access.is_allowed(_O.DESCRIBE, TOPIC, name) for name in _topics_of(group)):
            return _consumer_refused(group.group_id, TOPIC_DENIED, UNSEEN_TOPICS)
        if group.authorized_operations == NOT_REQUESTED:
            return group
        return replace(group, authorized_operations=access.operations(GROUP, group.group_id))

    return after(
        serve(replace(request, group_ids=tuple(allowed))),
        lambda response: replace(response, groups=(*refused, *map(shown, response.groups))),
    )


def _topics_of(group: DescribedConsumerGroup) -> set[str]:
    return {
        name
        for member in group.members
        for name in (
            *member.subscribed_topic_names,
            *(topic.topic_name for topic in member.assignment.topic_partitions),
            *(topic.topic_name for topic in member.target_assignment.topic_partitions),
        )
    }


def _consumer_refused(group_id: str, code: ErrorCode, text: str | None) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group_id=group_id, error_code=code, error_message=text, group_epoch=0, assignment_epoch=0, assignor_name=""
    )


def _with_operations(access: RequestAccess, group: DescribedGroup) -> DescribedGroup:
    if group.authorized_operations == NOT_REQUESTED:
        return group
    return replace(group, authorized_operations=access.operations(GROUP, group.group_id))


def list_groups(access: RequestAccess, request: ListGroupsRequest, serve: Serve) -> Any:
    """DESCRIBE on the cluster shows all groups, on a group that one."""

    if access.is_allowed(_O.DESCRIBE, CLUSTER):
        return serve(request)
    return serve(request, visible=partial(access.is_allowed, _O.DESCRIBE, GROUP))


def delete_groups(access: RequestAccess, request: DeleteGroupsRequest, serve: Serve) -> Any:
    """DELETE on each group."""
    allowed, denied = access.split(_O.DELETE, GROUP, request.groups_names, lambda name: name)
    refused = tuple(DeletableGroupResult(group_id=name, error_code=DENIED) for name in denied)
    if not allowed:
        return DeleteGroupsResponse(results=refused)
    return after(
        serve(replace(request, groups_names=tuple(allowed))),
        lambda response: replace(response, results=(*response.results, *refused)),
    )


# ---- coordinators

_MESSAGES: Final = {
    DENIED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
}
_KEYS: Final[dict[int, tuple[ResourceType, Operation, ErrorCode]]] = {
    0: (GROUP, _O.DESCRIBE, DENIED),
    1: (ResourceType.TRANSACTIONAL_ID, _O.DESCRIBE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}  # by the type of the key


def find_coordinator(access: RequestAccess, request: FindCoordinatorRequest, serve: Serve) -> Any:
    """DESCRIBE on the group or the transactional id; CLUSTER_ACTION for share groups. Other types the API refuses."""
    keys = request.coordinator_keys if access.call.version >= MANY_KEYS_SINCE else (request.key,)
    if request.key_type in _KEYS:
        resource_type, operation, code = _KEYS[request.key_type]
        allowed, denied = access.split(operation, resource_type, keys, lambda key: key)
    else:
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        is_allowed = access.authorize(_O.CLUSTER_ACTION, CLUSTER)
        allowed, denied = (list(keys), []) if is_allowed else ([], list(keys))
    if not denied:
        return serve(request)
    if access.call.version < MANY_KEYS_SINCE:
        return FindCoordinatorResponse(error_code=code, error_message=_MESSAGES[code])
    message = _MESSAGES[code] if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else ""  # as Kafka
    refused = tuple(Coordinator(key=key, error_code=code, error_message=message) for key in denied)
    if not allowed:
        return FindCoordinatorResponse(coordinators=refused)
    return after(
        serve(replace(request, coordinator_keys=tuple(allowed))),
        lambda response: replace(response, coordinators=(*response.coordinators, *refused)),
    )


# ---- committed offsets


def offset_commit(access: RequestAccess, request: OffsetCommitRequest, serve: Serve) -> Any:
    """READ on the group and on each topic."""
    if not access.authorize(_O.READ, GROUP, request.group_id):
        return OffsetCommitResponse(topics=_not_committed(request.topics, DENIED))
    by_id = access.call.version >= COMMIT_IDS_SINCE
    allowed, denied = access.split(
        _O.READ, TOPIC, request.topics, lambda topic: access.topic_name(topic.topic_id) if by_id else topic.name
    )
    if not denied:
        return serve(request)
    access.call.counters.add_error(TOPIC_DENIED)
    refused = _not_committed(denied, TOPIC_DENIED)
    if not allowed:
        return OffsetCommitResponse(topics=refused)
    return after(
        serve(replace(request, topics=tuple(allowed))),
        lambda response: replace(response, topics=(*refused, *response.topics)),
    )


def txn_offset_commit(access: RequestAccess, request: TxnOffsetCommitRequest, serve: Serve) -> Any:
    """WRITE on the transactional id, READ on the group and on each topic."""
    if not access.authorize(_O.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return TxnOffsetCommitResponse(topics=_not_committed_in_transaction(request.topics, error))
    if not access.authorize(_O.READ, GROUP, request.group_id):
        return TxnOffsetCommitResponse(topics=_not_committed_in_transaction(request.topics, DENIED))
    allowed, denied = access.split(_O.READ, TOPIC, request.topics, lambda topic: topic.name)
    if not denied:
        return serve(request)
    access.call.counters.add_error(TOPIC_DENIED)
    refused = _not_committed_in_transaction(denied, TOPIC_DENIED)
    if not allowed:
        return TxnOffsetCommitResponse(topics=refused)
    return after(
        serve(replace(request, topics=tuple(allowed))),
        lambda response: replace(response, topics=(*refused, *response.topics)),
    )


def _not_committed_in_transaction(
    topics: Sequence[TxnOffsetCommitRequestTopic], code: ErrorCode
) -> tuple[TxnOffsetCommitResponseTopic, ...]:
    return tuple(
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=tuple(
                TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ),
        )
        for topic in topics
    )


def _not_committed(
    topics: Sequence[OffsetCommitRequestTopic], code: ErrorCode
) -> tuple[OffsetCommitResponseTopic, ...]:
    return tuple(
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ),
        )
        for topic in topics
    )


def offset_delete(access: RequestAccess, request: OffsetDeleteRequest, serve: Serve) -> Any:
    """DELETE on the group, READ on each topic. As in Kafka the group's error precedes those of the topics."""
    if not access.authorize(_O.DELETE, GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=DENIED)
    allowed, denied = access.split(_O.READ, TOPIC, request.topics, lambda topic: topic.name)
    refused = tuple(_not_deleted(topic) for topic in denied)

    def finish(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        return response if response.error_code else replace(response, topics=(*refused, *response.topics))

    return after(serve(replace(request, topics=tuple(allowed))), finish)


def _not_deleted(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=TOPIC_DENIED)
            for each in topic.partitions
        ),
    )


def offset_fetch(access: RequestAccess, request: OffsetFetchRequest, serve: Serve) -> Any:
    """DESCRIBE on each group and each topic. Of a request for all topics those that may not be seen are left out."""
    if access.call.version >= MANY_GROUPS_SINCE:
        return _fetch_many(access, request, serve)
    if not access.authorize(_O.DESCRIBE, GROUP, request.group_id):
        is_old = access.call.version < GROUP_ERROR_SINCE
        topics = tuple(_without_offsets(topic, DENIED) for topic in request.topics or ()) if is_old else ()
        return OffsetFetchResponse(topics=topics, error_code=DENIED)
    if request.topics is None:
        return after(serve(request), lambda response: replace(response, topics=_visible(access, response.topics)))
    allowed, denied = access.split(_O.DESCRIBE, TOPIC, request.topics, lambda topic: topic.name)
    refused = tuple(_without_offsets(topic, TOPIC_DENIED) for topic in denied)

    def finish(response: OffsetFetchResponse) -> OffsetFetchResponse:
        return response if response.error_code else replace(response, topics=(*response.topics, *refused))

    return after(serve(replace(request, topics=tuple(allowed))), finish)


def _without_offsets(topic: OffsetFetchRequestTopic, code: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=code)
            for index in topic.partition_indexes
        ),
    )


def _visible(access: RequestAccess, topics: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(topic for topic in topics if access.is_allowed(_O.DESCRIBE, TOPIC, topic.name))


def _fetch_many(access: RequestAccess, request: OffsetFetchRequest, serve: Serve) -> Any:
    allowed, denied = access.split(_O.DESCRIBE, GROUP, request.groups, lambda group: group.group_id)
    refused = tuple(OffsetFetchResponseGroup(group_id=group.group_id, error_code=DENIED) for group in denied)
    if not allowed:
        return OffsetFetchResponse(groups=refused)
    reduced, shapes = zip(*(_described(access, group) for group in allowed), strict=True)

    def finish(response: OffsetFetchResponse) -> OffsetFetchResponse:
        groups = (shape(group) for shape, group in zip(shapes, response.groups, strict=True))
        return replace(response, groups=(*groups, *refused))

    return after(serve(replace(request, groups=tuple(reduced))), finish)


Shape = Callable[[OffsetFetchResponseGroup], OffsetFetchResponseGroup]


def _described(access: RequestAccess, group: OffsetFetchRequestGroup) -> tuple[OffsetFetchRequestGroup, Shape]:
    """Return the permitted request for one group, and the function that changes its response."""
    by_id = access.call.version >= FETCH_IDS_SINCE
    if group.topics is None:
        return group, lambda answer: replace(answer, topics=_visible_offsets(access, answer.topics, by_id=by_id))
    allowed, denied = access.split(
        _O.DESCRIBE, TOPIC, group.topics, lambda topic: access.topic_name(topic.topic_id) if by_id else topic.name
    )
    refused = tuple(
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=TOPIC_DENIED)
                for index in topic.partition_indexes
            ),
        )
        for topic in denied
    )

    known = len([topic for topic in allowed if not by_id or access.topic_name(topic.topic_id) is not None])
    order = {topic.topic_id: at for at, topic in reversed(tuple(enumerate(group.topics)))}

    def shape(answer: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        if answer.error_code:
            return answer
        errors = (*answer.topics[known:], *refused)  # of unknown topics and of denied ones
        in_order = sorted(errors, key=lambda topic: order[topic.topic_id]) if by_id else errors
        return replace(answer, topics=(*answer.topics[:known], *in_order))

    return replace(group, topics=tuple(allowed)), shape


def _visible_offsets(
    access: RequestAccess, topics: Sequence[OffsetFetchResponseTopics], *, by_id: bool
) -> tuple[OffsetFetchResponseTopics, ...]:
    def name(topic: OffsetFetchResponseTopics) -> str:
        return topic.name or (access.topic_name(topic.topic_id) if by_id else None) or ""

    return tuple(topic for topic in topics if access.is_allowed(_O.DESCRIBE, TOPIC, name(topic)))
