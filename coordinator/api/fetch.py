"""Fetch, key 1, versions 4-18.

v4 isolation level · v5 log start offset · v7 fetch sessions (KIP-227) · v9 leader epoch (KIP-320) · v10 zstd
v11 rack (KIP-392) · v12 flexible, last fetched epoch · v13 topic ids (KIP-516) · v15 replica state (KIP-903)
v16 node endpoints (KIP-951) · v17 directory id (KIP-853) · v18 high watermark of the follower (KIP-1166)

Left out: fetching from followers, tiered storage. Followers (replica id 0 and up) come with the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager
from rota.coordinator.replica.cold_reads import load_and_read
from rota.coordinator.replica.delayed_fetch import DelayedFetch
from rota.coordinator.replica.fetch_plan import FetchPlan, FetchResult, PartitionResponse, refused
from rota.coordinator.replica.fetch_sessions import FetchContext, SessionRequest
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

TOPIC_IDS_SINCE: Final = 13
STORAGE_ERROR_SINCE: Final = 6
READ_COMMITTED: Final = 1
CONSUMER_MAX: Final = -1  # replica ids from 0 on are brokers


def fetch(node: Node, call: Call, request: FetchRequest) -> FetchResponse | DelayedReply[FetchResponse]:
    """Return records from each partition's offset on; delayed until `min_bytes` are available or for `max_wait_ms`."""
    now_ms = node.now_ms()
    context = node.fetch_sessions.open(_session_request(call.version, request), now_ms)
    if context.error is not ErrorCode.NONE:
        return _response(node, context, ())
    bytes_max = min(request.max_bytes, node.config.fetch_max_bytes)
    old_client = call.version < STORAGE_ERROR_SINCE
    plan = FetchPlan(
        PartitionLookup(node.topics, node.partitions),
        context.requested(),
        bytes_max,
        read_committed=request.isolation_level == READ_COMMITTED,
        offline_error=ErrorCode.NOT_LEADER_OR_FOLLOWER if old_client else ErrorCode.KAFKA_STORAGE_ERROR,
        is_unchanged=context.is_unchanged,
    )
    if _replica_id(request) > CONSUMER_MAX:
        return _response(node, context, _to_follower(plan))
    result = plan.read(wait=False)
    if result.loads:
        return eager.start(_load_and_respond(node, context, plan, result))
    bytes_missing = min(request.min_bytes, bytes_max) - result.size_bytes
    if bytes_missing <= 0 or request.max_wait_ms <= 0 or result.must_answer or not plan.partitions:
        return _response(node, context, result.responses)
    return DelayedFetch(
        node.timers,
        now_ms + request.max_wait_ms,
        bytes_missing,
        plan.watches(result),
        lambda: _response(node, context, plan.read().responses),
    ).delayed_reply


async def _load_and_respond(node: Node, context: FetchContext, plan: FetchPlan, result: FetchResult) -> FetchResponse:
    """Load data that is not in the page cache in a thread, then respond at once: such a fetch has records."""
    result = await load_and_read(result, lambda wait: plan.read(wait=wait))
    return _response(node, context, result.responses)


def _session_request(version: int, request: FetchRequest) -> SessionRequest:
    by_id = version >= TOPIC_IDS_SINCE
    partitions: dict[Key, FetchPartition] = {
        (topic.topic_id if by_id else topic.topic, partition.partition): partition
        for topic in request.topics
        for partition in topic.partitions
    }
    forgotten: list[Key] = [
        (topic.topic_id if by_id else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    return SessionRequest(
        partitions=partitions,
        forgotten=forgotten,
        session_id=request.session_id,
        epoch=request.session_epoch,
        by_id=by_id,
    )


def _replica_id(request: FetchRequest) -> int:
    return request.replica_id if request.replica_state is None else request.replica_state.replica_id


def _to_follower(plan: FetchPlan) -> list[PartitionResponse]:
    """No partition has followers yet."""
    refusals: list[PartitionResponse] = [
        (key, refused(key[1], ErrorCode.NOT_LEADER_OR_FOLLOWER, read_committed=False)) for key, _, _ in plan.partitions
    ]
    return refusals + plan.missing


def _response(node: Node, context: FetchContext, responses: Sequence[PartitionResponse]) -> FetchResponse:
    selected = context.select(responses, node.now_ms())
    topics = _by_topic(selected.responses)
    return FetchResponse(error_code=selected.error, session_id=selected.session_id, responses=topics)


def _by_topic(responses: Sequence[PartitionResponse]) -> tuple[FetchableTopicResponse, ...]:
    """Group adjacent partitions of one topic; the order of reading does not change."""
    return tuple(
        _topic(name, tuple(response for _, response in group))
        for name, group in groupby(responses, key=lambda response: response[0][0])
    )


def _topic(name: str | bytes, partitions: tuple[PartitionData, ...]) -> FetchableTopicResponse:
    if isinstance(name, str):
        return FetchableTopicResponse(topic=name, partitions=partitions)
    return FetchableTopicResponse(topic_id=name, partitions=partitions)
