"""DeleteTopics, key 20, versions 1-6.

v1 throttle time · v4 flexible · v5 error messages (KIP-599) · v6 topics by id (KIP-516)

Each topic has its own error. `delete.topic.enable=false` refuses all. Clients cannot delete internal topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.throttling import MutationQuota
from rota.coordinator.api.timeout import gather_within, is_over
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import Refusal, Topic
from rota.coordinator.metadata.topic_refusals import unknown_topic, unknown_topic_id
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rota.protocol.wire import UUID_ZERO

STRICT_SINCE = 5  # versions whose clients know THROTTLING_QUOTA_EXCEEDED


def delete_topics(
    node: Node, call: Call, request: DeleteTopicsRequest
) -> DeleteTopicsResponse | DelayedReply[DeleteTopicsResponse]:
    """Delete the topics; delayed until they are out of the store and their logs are removed, or for `timeout_ms`."""
    requested = _requested(call, request)
    if not node.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        disabled = Refusal(code, "Topic deletion is disabled.")
        return DeleteTopicsResponse(responses=tuple(_result(entry, disabled) for entry in requested))
    if is_over(request.timeout_ms) and _is_one_to_find(requested):
        return DeleteTopicsResponse(responses=tuple(_timed_out(entry) for entry in requested))
    return eager_tasks.start(
        _delete_all(node, requested, request.timeout_ms, MutationQuota(node, call, strict_since=STRICT_SINCE))
    )


def _requested(call: Call, request: DeleteTopicsRequest) -> Sequence[DeleteTopicState]:
    if call.version >= 6:
        return request.topics
    return [DeleteTopicState(name=name, topic_id=UUID_ZERO) for name in request.topic_names]


def _is_one_to_find(requested: Sequence[DeleteTopicState]) -> bool:
    """Any of them is named once, by its name or its id."""
    times = Counter((entry.name, entry.topic_id) for entry in requested)
    return any((name is None) != (topic_id == UUID_ZERO) for (name, topic_id), count in times.items() if count == 1)


def _timed_out(requested: DeleteTopicState) -> DeletableTopicResult:
    code = ErrorCode.REQUEST_TIMED_OUT
    return DeletableTopicResult(name=requested.name, topic_id=requested.topic_id, error_code=code)


async def _delete_all(
    node: Node, requested: Sequence[DeleteTopicState], timeout_ms: int, quota: MutationQuota
) -> DeleteTopicsResponse:
    times = Counter((entry.name, entry.topic_id) for entry in requested)
    found = {(entry.name, entry.topic_id): (entry, _find(node, entry)) for entry in requested}
    mentions = Counter(topic.name for _, topic in found.values() if isinstance(topic, Topic))
    deletions: list[tuple[DeleteTopicState, Topic | Refusal]] = []
    for key, (entry, topic) in found.items():
        if times[key] > 1:
            deletions.append((entry, _duplicate(entry)))
        elif isinstance(topic, Topic) and mentions[topic.name] > 1:
            if entry.name is not None:
                deletions.append((DeleteTopicState(name=topic.name, topic_id=topic.topic_id), _ALREADY_SUPPLIED))
        else:
            deletions.append((entry, topic))
    outcomes = await gather_within(node, timeout_ms, (_delete(node, entry, topic, quota) for entry, topic in deletions))
    responses = (_result(entry, outcome) for (entry, _), outcome in zip(deletions, outcomes, strict=True))
    response = DeleteTopicsResponse(responses=tuple(responses))
    quota.apply(response)
    return response


_ALREADY_SUPPLIED = Refusal(
    ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
)


def _find(node: Node, requested: DeleteTopicState) -> Topic | Refusal:
    if requested.name is not None and requested.topic_id != UUID_ZERO:
        return Refusal(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if requested.name is None and requested.topic_id == UUID_ZERO:
        return Refusal(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if requested.name is not None:
        return node.topics.get(requested.name) or unknown_topic()
    return node.topics.by_id(requested.topic_id) or unknown_topic_id()


def _duplicate(requested: DeleteTopicState) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"Duplicate topic {'id' if requested.name is None else 'name'}.")


async def _delete(
    node: Node, requested: DeleteTopicState, topic: Topic | Refusal, quota: MutationQuota
) -> Topic | Refusal:
    """Return the deleted topic. Raises StoreFailed."""
    if isinstance(topic, Refusal):
        return topic
    if topic.is_internal:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Internal topic {topic.name} cannot be deleted.")
    refusal = quota.refuse(len(topic.partitions))
    return refusal or await node.topics.delete(topic.name, topic.topic_id if requested.name is None else None)


def _result(requested: DeleteTopicState, outcome: Topic | Refusal) -> DeletableTopicResult:
    if isinstance(outcome, Topic):
        return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id)
    return DeletableTopicResult(
        name=requested.name, topic_id=requested.topic_id, error_code=outcome.code, error_message=outcome.message
    )
