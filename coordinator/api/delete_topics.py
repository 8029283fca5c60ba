"""DeleteTopics, key 20, versions 1-6.

v1 throttle time · v4 flexible · v5 error messages (KIP-599) · v6 topics by id (KIP-516)

Each topic is answered for itself. `delete.topic.enable=false` refuses all; topics of the system are not for clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import Refusal, Topic
from rota.coordinator.metadata.topics import unknown_topic
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rota.protocol.wire import UUID_ZERO


def delete_topics(
    node: Node, call: Call, request: DeleteTopicsRequest
) -> DeleteTopicsResponse | DelayedReply[DeleteTopicsResponse]:
    """Answered when the topics are out of the metadata store and their logs are gone."""
    asked = _asked(call, request)
    if not node.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        disabled = Refusal(code, "Topic deletion is disabled.")
        return DeleteTopicsResponse(responses=tuple(_result(one, disabled) for one in asked))
    return eager.start(_delete_all(node, asked))


def _asked(call: Call, request: DeleteTopicsRequest) -> Sequence[DeleteTopicState]:
    if call.version >= 6:
        return request.topics
    return [DeleteTopicState(name=name, topic_id=UUID_ZERO) for name in request.topic_names]


async def _delete_all(node: Node, asked: Sequence[DeleteTopicState]) -> DeleteTopicsResponse:
    times = Counter((one.name, one.topic_id) for one in asked)
    found = {(one.name, one.topic_id): (one, _find(node, one)) for one in asked}
    mentions = Counter(topic.name for _, topic in found.values() if isinstance(topic, Topic))
    deletions: list[tuple[DeleteTopicState, Topic | Refusal]] = []
    for key, (one, topic) in found.items():
        if times[key] > 1:
            deletions.append((one, _twice(one)))
        elif isinstance(topic, Topic) and mentions[topic.name] > 1:
            if one.name is not None:
                deletions.append((DeleteTopicState(name=topic.name, topic_id=topic.topic_id), _ALREADY))
        else:
            deletions.append((one, topic))
    return DeleteTopicsResponse(
        responses=tuple(await eager.gather(_delete(node, one, topic) for one, topic in deletions))
    )


_ALREADY = Refusal(ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied.")


def _find(node: Node, asked: DeleteTopicState) -> Topic | Refusal:
    if asked.name is not None and asked.topic_id != UUID_ZERO:
        return Refusal(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if asked.name is None and asked.topic_id == UUID_ZERO:
        return Refusal(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if asked.name is not None:
        return node.topics.get(asked.name) or unknown_topic()
    unknown = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return node.topics.by_id(asked.topic_id) or unknown


def _twice(asked: DeleteTopicState) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"Duplicate topic {'id' if asked.name is None else 'name'}.")


async def _delete(node: Node, asked: DeleteTopicState, topic: Topic | Refusal) -> DeletableTopicResult:
    if isinstance(topic, Refusal):
        return _result(asked, topic)
    if topic.is_internal:
        return _result(asked, Refusal(ErrorCode.INVALID_REQUEST, f"Internal topic {topic.name} cannot be deleted."))
    try:
        return _result(asked, await node.topics.delete(topic.name))
    except StoreFailed as failure:
        return _result(asked, Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure)))


def _result(asked: DeleteTopicState, outcome: Topic | Refusal) -> DeletableTopicResult:
    if isinstance(outcome, Topic):
        return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id)
    return DeletableTopicResult(
        name=asked.name, topic_id=asked.topic_id, error_code=outcome.code, error_message=outcome.message
    )
