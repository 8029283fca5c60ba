"""A reply that refuses a whole request with one error code, for the APIs that clients use.

An API whose response has one error code gets it there. The others name every topic and partition of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from rota.protocol.errors import ErrorCode
from rota.protocol.messages import (
    create_topics,
    fetch,
    find_coordinator,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
)
from rota.protocol.registry import APIS


class NoErrorReply(ValueError):
    """The kit cannot make such a reply; the message says for which APIs it can."""


def error_reply(api: str, version: int, request: Any, error: ErrorCode) -> Any:
    """Return the response that refuses this request."""
    if api in _SPECIAL:
        return _SPECIAL[api](version, request, error)
    return _response(api)(error_code=error)


def check_api(api: str) -> None:
    """Raise NoErrorReply unless requests of that API can be refused."""
    known = api in _SPECIAL or any(entry.name == api and _has_error_code(entry.response) for entry in APIS.values())
    if not known:
        raise NoErrorReply(f"no error replies for {api}; there are for {', '.join(supported())}")


def supported() -> list[str]:
    """Return the APIs whose requests can be refused."""
    return sorted({api.name for api in APIS.values() if _has_error_code(api.response)} | set(_SPECIAL))


def _has_error_code(response: type[Any]) -> bool:
    return any(field.name == "error_code" for field in fields(response))


def _response(api: str) -> Any:
    return next(entry.response for entry in APIS.values() if entry.name == api)


def _produce(version: int, request: produce.ProduceRequest, error: ErrorCode) -> Any:
    return produce.ProduceResponse(
        responses=tuple(
            produce.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    produce.PartitionProduceResponse(index=partition.index, error_code=error)
                    for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def _fetch(version: int, request: fetch.FetchRequest, error: ErrorCode) -> Any:
    """The error of each partition named; of the whole request when an incremental fetch names none."""
    return fetch.FetchResponse(
        error_code=ErrorCode.NONE if request.topics else error,
        responses=tuple(
            fetch.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=tuple(
                    fetch.PartitionData(partition_index=partition.partition, error_code=error)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _list_offsets(version: int, request: list_offsets.ListOffsetsRequest, error: ErrorCode) -> Any:
    return list_offsets.ListOffsetsResponse(
        topics=tuple(
            list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    list_offsets.ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _offset_commit(version: int, request: offset_commit.OffsetCommitRequest, error: ErrorCode) -> Any:
    return offset_commit.OffsetCommitResponse(
        topics=tuple(
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    offset_commit.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _offset_fetch(version: int, request: offset_fetch.OffsetFetchRequest, error: ErrorCode) -> Any:
    if version < 8:
        return offset_fetch.OffsetFetchResponse(error_code=error)
    groups = tuple(
        offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=error) for group in request.groups
    )
    return offset_fetch.OffsetFetchResponse(groups=groups)


def _find_coordinator(version: int, request: find_coordinator.FindCoordinatorRequest, error: ErrorCode) -> Any:
    if version < 4:
        return find_coordinator.FindCoordinatorResponse(error_code=error)
    coordinators = tuple(find_coordinator.Coordinator(key=key, error_code=error) for key in request.coordinator_keys)
    return find_coordinator.FindCoordinatorResponse(coordinators=coordinators)


def _metadata(version: int, request: metadata.MetadataRequest, error: ErrorCode) -> Any:
    topics = tuple(
        metadata.MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, error_code=error)
        for topic in request.topics or ()
    )
    return metadata.MetadataResponse(topics=topics)


def _create_topics(version: int, request: create_topics.CreateTopicsRequest, error: ErrorCode) -> Any:
    topics = tuple(
        create_topics.CreatableTopicResult(name=topic.name, error_code=error, configs=()) for topic in request.topics
    )
    return create_topics.CreateTopicsResponse(topics=topics)


_SPECIAL: Final[dict[str, Callable[[int, Any, ErrorCode], Any]]] = {
    "CreateTopics": _create_topics,
    "Fetch": _fetch,
    "FindCoordinator": _find_coordinator,
    "ListOffsets": _list_offsets,
    "Metadata": _metadata,
    "OffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch,
    "Produce": _produce,
}
