"""The answer that a broker gives when it refuses: to any request of a client, with any error code. Pure.

Laws
    A refusal names exactly what was asked for, and carries nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rota.client.types import TopicPartition
from rota.protocol.messages import (
    delete_records,
    fetch,
    list_offsets,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)
from rota.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from rota.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from rota.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.registry import APIS

# where Kafka speaks of a partition rather than of the group or the session
OF_A_PARTITION_OFFSET_FETCH = {3, 29, 88}
OF_A_SESSION = {70, 71, 106}
FIRST_WITH_GROUPS = 8  # of OffsetFetch
FIRST_WITH_KEYS = 4  # of FindCoordinator


@dataclass(frozen=True, slots=True)
class Shape:
    """Where topics and partitions stand in a request, and in its answer."""

    topics: str
    partitions: str
    index: str
    answer: type[Any]
    answer_topics: str
    topic: type[Any]
    answer_partitions: str
    partition: Callable[[int, int], Any]  # (index, code)


def _indexed(kind: type[Any], **more: Any) -> Callable[[int, int], Any]:
    return lambda index, code: kind(partition_index=index, error_code=code, **more)


SHAPES = {
    0: Shape(
        "topic_data",
        "partition_data",
        "index",
        produce.ProduceResponse,
        "responses",
        produce.TopicProduceResponse,
        "partition_responses",
        lambda index, code: produce.PartitionProduceResponse(index=index, error_code=code),
    ),
    1: Shape(
        "topics",
        "partitions",
        "partition",
        fetch.FetchResponse,
        "responses",
        fetch.FetchableTopicResponse,
        "partitions",
        _indexed(fetch.PartitionData),
    ),
    2: Shape(
        "topics",
        "partitions",
        "partition_index",
        list_offsets.ListOffsetsResponse,
        "topics",
        list_offsets.ListOffsetsTopicResponse,
        "partitions",
        _indexed(list_offsets.ListOffsetsPartitionResponse),
    ),
    8: Shape(
        "topics",
        "partitions",
        "partition_index",
        offset_commit.OffsetCommitResponse,
        "topics",
        offset_commit.OffsetCommitResponseTopic,
        "partitions",
        _indexed(offset_commit.OffsetCommitResponsePartition),
    ),
    21: Shape(
        "topics",
        "partitions",
        "partition_index",
        delete_records.DeleteRecordsResponse,
        "topics",
        delete_records.DeleteRecordsTopicResult,
        "partitions",
        _indexed(delete_records.DeleteRecordsPartitionResult),
    ),
    23: Shape(
        "topics",
        "partitions",
        "partition",
        offset_for_leader_epoch.OffsetForLeaderEpochResponse,
        "topics",
        offset_for_leader_epoch.OffsetForLeaderTopicResult,
        "partitions",
        lambda index, code: offset_for_leader_epoch.EpochEndOffset(partition=index, error_code=code),
    ),
}


def identity(topic: Any) -> dict[str, Any]:
    """A topic's name and id, under the names that its message gives them."""
    return {name: getattr(topic, name) for name in ("name", "topic", "topic_id") if hasattr(topic, name)}


def partitions(request: Any, name: Callable[[Any], str | None]) -> Iterable[tuple[TopicPartition | None, Any]]:
    """Each partition that is asked for, with its part of the request; `name` tells a topic's name."""
    shape = SHAPES[request.KEY]
    for topic in getattr(request, shape.topics):
        known = name(topic)
        for item in getattr(topic, shape.partitions):
            yield (None if known is None else TopicPartition(known, getattr(item, shape.index))), item


def refusal(request: Any, version: int, code: int) -> Any:
    """The answer that says `code` of all that is asked for."""
    special = _SPECIAL.get(request.KEY)
    if special is not None:
        return special(request, version, code)
    if request.KEY in SHAPES:
        return _of_partitions(request, code)
    return APIS[request.KEY].response(error_code=code)


def _of_partitions(request: Any, code: int) -> Any:
    shape = SHAPES[request.KEY]
    topics = []
    for topic in getattr(request, shape.topics):
        refused = tuple(shape.partition(getattr(item, shape.index), code) for item in getattr(topic, shape.partitions))
        topics.append(shape.topic(**identity(topic), **{shape.answer_partitions: refused}))
    return shape.answer(**{shape.answer_topics: tuple(topics)})


def _fetch(request: Any, version: int, code: int) -> Any:
    return fetch.FetchResponse(error_code=code) if code in OF_A_SESSION else _of_partitions(request, code)


def _offset_fetch(request: Any, version: int, code: int) -> Any:
    if version < FIRST_WITH_GROUPS:
        topics = _unknown_offsets(request.topics, code, offset_fetch.OffsetFetchResponseTopic)
        return offset_fetch.OffsetFetchResponse(topics=topics, error_code=_group_code(code))
    groups = tuple(
        offset_fetch.OffsetFetchResponseGroup(
            group_id=group.group_id,
            topics=_unknown_offsets(group.topics, code, offset_fetch.OffsetFetchResponseTopics),
            error_code=_group_code(code),
        )
        for group in request.groups
    )
    return offset_fetch.OffsetFetchResponse(groups=groups)


def _group_code(code: int) -> int:
    return 0 if code in OF_A_PARTITION_OFFSET_FETCH else code


def _unknown_offsets(topics: Any, code: int, kind: type[Any]) -> tuple[Any, ...]:
    if code not in OF_A_PARTITION_OFFSET_FETCH or topics is None:
        return ()
    item = (
        offset_fetch.OffsetFetchResponsePartition
        if kind is offset_fetch.OffsetFetchResponseTopic
        else offset_fetch.OffsetFetchResponsePartitions
    )
    return tuple(
        kind(
            **identity(topic),
            partitions=tuple(
                item(partition_index=index, committed_offset=-1, error_code=code) for index in topic.partition_indexes
            ),
        )
        for topic in topics
    )


def _find_coordinator(request: FindCoordinatorRequest, version: int, code: int) -> Any:
    if version < FIRST_WITH_KEYS:
        return FindCoordinatorResponse(error_code=code)
    return FindCoordinatorResponse(
        coordinators=tuple(Coordinator(key=key, error_code=code) for key in request.coordinator_keys)
    )


def _create_topics(request: CreateTopicsRequest, version: int, code: int) -> Any:
    return CreateTopicsResponse(
        topics=tuple(CreatableTopicResult(name=item.name, error_code=code) for item in request.topics)
    )


def _describe_groups(request: DescribeGroupsRequest, version: int, code: int) -> Any:
    return DescribeGroupsResponse(
        groups=tuple(DescribedGroup(group_id=item, error_code=code) for item in request.groups)
    )


def _delete_groups(request: DeleteGroupsRequest, version: int, code: int) -> Any:
    return DeleteGroupsResponse(
        results=tuple(DeletableGroupResult(group_id=item, error_code=code) for item in request.groups_names)
    )


_SPECIAL: dict[int, Callable[[Any, int, int], Any]] = {
    1: _fetch,
    9: _offset_fetch,
    10: _find_coordinator,
    15: _describe_groups,
    19: _create_topics,
    42: _delete_groups,
}
