"""CreatePartitions, key 37, versions 0-3.

v1 throttle time only · v2 flexible · v3 quotas (KIP-599)

The response has every topic of the request. Groups that subscribe to it rebalance (R14).
"""

from __future__ import annotations

from collections import Counter

from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import INTERNAL, Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(
    node: Node, call: Call, request: CreatePartitionsRequest
) -> DelayedReply[CreatePartitionsResponse]:
    """Add the partitions; delayed until they are in the metadata store and their logs are open."""
    return eager.start(_create_all(node, request))


async def _create_all(node: Node, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in request.topics)
    duplicate = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_result(name, duplicate) for name, count in times.items() if count > 1]
    topics = [topic for topic in request.topics if times[topic.name] == 1]
    refusals = await eager.gather(_create(node, topic, request.validate_only) for topic in topics)
    results += [_result(topic.name, refusal) for topic, refusal in zip(topics, refusals, strict=True)]
    return CreatePartitionsResponse(results=tuple(results))


async def _create(node: Node, requested: CreatePartitionsTopic, validate_only: bool) -> Refusal | None:
    if requested.name in INTERNAL and requested.name in node.topics:
        why = f"The number of partitions of internal topic {requested.name} says which group lives where, and stays."
        return Refusal(ErrorCode.INVALID_REQUEST, why)
    assignment = None if requested.assignments is None else [entry.broker_ids for entry in requested.assignments]
    if validate_only:
        planned = node.topics.plan_partitions(requested.name, requested.count, assignment)
        return planned if isinstance(planned, Refusal) else None
    try:
        grown = await node.topics.add_partitions(requested.name, requested.count, assignment)
    except StoreFailed as failure:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
    return grown if isinstance(grown, Refusal) else None


def _result(name: str, refusal: Refusal | None) -> CreatePartitionsTopicResult:
    if refusal is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(name=name, error_code=refusal.code, error_message=refusal.message)
