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
from rota.coordinator.replica.delayed_fetch import DelayedFetch
from rota.coordinator.replica.fetch_plan import FetchPlan, PartitionResponse, Reading, refused
from rota.coordinator.replica.fetch_sessions import FetchContext, FetchPartition, SessionRequest
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from rota.protocol.messages.fetch import FetchPartition as RequestedPartition

TOPIC_IDS_SINCE: Final = 13
STORAGE_ERROR_SINCE: Final = 6
READ_COMMITTED: Final = 1
CONSUMER_MAX: Final = -1  # replica ids from 0 on are brokers


def fetch(node: Node, call: Call, request: FetchRequest) -> FetchResponse | DelayedReply[FetchResponse]:
    """Records from each partition's offset on; parked until `min_bytes` are there or `max_wait_ms` is over."""
    now_ms = node.now_ms()
    context = node.fetch_sessions.open(_asked(call.version, request), now_ms)
    if context.error is not ErrorCode.NONE:
        return _response(node, context, ())
    bytes_max = min(request.max_bytes, node.config.fetch_max_bytes)
    plan = FetchPlan(
        PartitionLookup(node.topics, node.partitions),
        context.wants(),
        bytes_max,
        committed=request.isolation_level == READ_COMMITTED,
        old=call.version < STORAGE_ERROR_SINCE,
        knows=context.knows,
    )
    if _replica_id(request) > CONSUMER_MAX:
        return _response(node, context, _to_follower(plan))
    reading = plan.read()
    bytes_missing = min(request.min_bytes, bytes_max) - reading.size_bytes
    if _leaves_now(request, plan, reading, bytes_missing):
        return _response(node, context, reading.answers)
    return DelayedFetch(
        node.timers,
        now_ms + request.max_wait_ms,
        bytes_missing,
        plan.watches(reading),
        lambda: _response(node, context, plan.read().answers),
    ).delayed_reply


def _leaves_now(request: FetchRequest, plan: FetchPlan, reading: Reading, bytes_missing: int) -> bool:
    return bytes_missing <= 0 or request.max_wait_ms <= 0 or reading.urgent or not plan.wants


def _asked(version: int, request: FetchRequest) -> SessionRequest:
    by_id = version >= TOPIC_IDS_SINCE
    wants: dict[Key, FetchPartition] = {}
    for topic in request.topics:
        name: str | bytes = topic.topic_id if by_id else topic.topic
        for one in topic.partitions:
            wants[name, one.partition] = _want(one)
    forgotten: list[Key] = [
        (topic.topic_id if by_id else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    return SessionRequest(
        wants=wants,
        forgotten=forgotten,
        session_id=request.session_id,
        epoch=request.session_epoch,
        by_id=by_id,
    )


def _want(one: RequestedPartition) -> FetchPartition:
    return FetchPartition(one.fetch_offset, one.partition_max_bytes, one.current_leader_epoch, one.last_fetched_epoch)


def _replica_id(request: FetchRequest) -> int:
    return request.replica_id if request.replica_state is None else request.replica_state.replica_id


def _to_follower(plan: FetchPlan) -> list[PartitionResponse]:
    """No partition has followers yet."""
    refusals: list[PartitionResponse] = [
        (key, refused(key[1], ErrorCode.NOT_LEADER_OR_FOLLOWER, committed=False)) for key, _, _ in plan.wants
    ]
    return refusals + plan.lost


def _response(node: Node, context: FetchContext, answers: Sequence[PartitionResponse]) -> FetchResponse:
    chosen = context.select(answers, node.now_ms())
    return FetchResponse(error_code=chosen.error, session_id=chosen.session_id, responses=_by_topic(chosen.answers))


def _by_topic(answers: Sequence[PartitionResponse]) -> tuple[FetchableTopicResponse, ...]:
    """Neighbours of one topic share an entry; the order stays that of reading."""
    return tuple(
        _topic(name, tuple(answer for _, answer in group))
        for name, group in groupby(answers, key=lambda told: told[0][0])
    )


def _topic(name: str | bytes, partitions: tuple[PartitionData, ...]) -> FetchableTopicResponse:
    if isinstance(name, str):
        return FetchableTopicResponse(topic=name, partitions=partitions)
    return FetchableTopicResponse(topic_id=name, partitions=partitions)
