"""CreatePartitions, key 37, versions 0-3.

v1 throttle time only · v2 flexible · v3 quotas (KIP-599)

The response has every topic of the request. Groups that subscribe to it rebalance (R14).
"""

from __future__ import annotations

from collections import Counter

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.throttling import MutationQuota
from rota.coordinator.api.timeout import gather_within, is_over
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import INTERNAL, PartitionState, Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_SINCE = 3  # versions whose clients know THROTTLING_QUOTA_EXCEEDED
Partitions = tuple[PartitionState, ...]


def create_partitions(
    node: Node, call: Call, request: CreatePartitionsRequest
) -> DelayedReply[CreatePartitionsResponse]:
    """Add the partitions; delayed until they are in the store and their logs are open, or for `timeout_ms`."""
    return eager_tasks.start(_create_all(node, request, MutationQuota(node, call, strict_since=STRICT_SINCE)))


async def _create_all(node: Node, request: CreatePartitionsRequest, quota: MutationQuota) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in request.topics)
    duplicate = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_result(name, duplicate) for name, count in times.items() if count > 1]
    topics = [topic for topic in request.topics if times[topic.name] == 1]
    if topics and is_over(request.timeout_ms):
        return CreatePartitionsResponse(results=tuple(_timed_out(topic.name) for topic in request.topics))
    outcomes = await gather_within(
        node, request.timeout_ms, (_create(node, topic, quota, request.validate_only) for topic in topics)
    )
    results += [_result(topic.name, outcome) for topic, outcome in zip(topics, outcomes, strict=True)]
    response = CreatePartitionsResponse(results=tuple(results))
    quota.apply(response)
    return response


async def _create(
    node: Node, requested: CreatePartitionsTopic, quota: MutationQuota, validate_only: bool
) -> Partitions | Refusal:
    """Return all partitions of the topic, or the new ones alone with `validate_only`. Raises StoreFailed."""
    if requested.name in INTERNAL and requested.name in node.topics:
        why = f"The number of partitions of internal topic {requested.name} says which group lives where, and stays."
        return Refusal(ErrorCode.INVALID_REQUEST, why)
    assignment = None if requested.assignments is None else [entry.broker_ids for entry in requested.assignments]
    planned = node.topics.plan_partitions(requested.name, requested.count, assignment)
    if not isinstance(planned, Refusal):
        planned = quota.refuse(len(planned)) or planned
    if validate_only or isinstance(planned, Refusal):
        return planned
    grown = await node.topics.add_partitions(requested.name, requested.count, assignment)
    return grown if isinstance(grown, Refusal) else grown.partitions


def _result(name: str, outcome: Partitions | Refusal) -> CreatePartitionsTopicResult:
    if isinstance(outcome, Refusal):
        return CreatePartitionsTopicResult(name=name, error_code=outcome.code, error_message=outcome.message)
    return CreatePartitionsTopicResult(name=name)


def _timed_out(name: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=ErrorCode.REQUEST_TIMED_OUT)
