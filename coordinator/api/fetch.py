"""Fetch, key 1, versions 4-18.

v4 isolation level · v5 log start offset · v7 fetch sessions (KIP-227) · v9 leader epoch (KIP-320) · v10 zstd
v11 rack (KIP-392) · v12 flexible, last fetched epoch · v13 topic ids (KIP-516) · v15 replica state (KIP-903)
v16 node endpoints (KIP-951) · v17 directory id (KIP-853) · v18 high watermark of the follower (KIP-1166)

Replica ids from 0 on are followers. One counts as a follower when it names the epoch of its registration (KIP-903).
Left out: tiered storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from rota.coordinator.api.access.fetches import AuthorizedLookup
from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.throttling import throttle_fetch
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.replica.cold_reads import load_and_read
from rota.coordinator.replica.delayed_fetch import DelayedFetch
from rota.coordinator.replica.fetch_plan import FetchPlan, FetchResult, PartitionResponse, Reader, refused
from rota.coordinator.replica.fetch_sessions import FetchContext, Incremental, SessionRequest
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.coordinator.replica.read_replica import read_replica_of
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
FOLLOWER_FETCH_SINCE: Final = 11  # from here on consumers may fetch from followers (KIP-392)
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
HIGH_WATERMARK_NOT_WANTED: Final = (1 << 63) - 1
NO_CONNECTION: Final = 0  # of requests that this broker sends itself
CONSUMER_MAX: Final = -1  # replica ids from 0 on are brokers


def fetch(node: Node, call: Call, request: FetchRequest) -> FetchResponse | DelayedReply[FetchResponse]:
    """Return records from each partition's offset on; delayed until `min_bytes` are available or for `max_wait_ms`."""
    now_ms = node.now_ms()
    context = node.fetch_sessions.open(_session_request(call.version, request), now_ms)
    if context.error is not ErrorCode.NONE:
        return _response(node, context, ())
    replica_id = _replica_id(request)
    is_follower = replica_id > CONSUMER_MAX
    bytes_max = _bytes_max(node, call, request, is_follower=is_follower)
    lookup = _lookup(node, call, is_follower=is_follower)
    plan = FetchPlan(
        lookup,
        context.requested(),
        bytes_max,
        _reader(node, call, request, now_ms),
        offline_error=_offline_error(call.version),
        is_unchanged=context.is_unchanged,
        counts_sent=call.connection_id != NO_CONNECTION,
        to_send=call.sends_files,
    )
    if is_follower and not _is_registered(node, request):
        return _response(node, context, _refused_all(plan))
    result = plan.read(wait=False)
    if result.loads:
        return eager_tasks.start(_load_and_respond(node, call, context, plan, result, lookup))
    bytes_missing = min(request.min_bytes, bytes_max) - result.size_bytes
    if bytes_missing <= 0 or request.max_wait_ms <= 0 or result.must_answer or not plan.partitions:
        return _answer(node, call, context, plan, result)
    delayed = DelayedFetch(
        node.timers,
        now_ms + request.max_wait_ms,
        bytes_missing,
        plan.watches(result),
        lambda: _answer_delayed(node, call, context, plan, lookup),
        of_follower=is_follower,
        read_committed=request.isolation_level == READ_COMMITTED and not is_follower,
    )
    if is_follower:
        _answer_soon(delayed, context, plan)
    return delayed.delayed_reply


def _offline_error(version: int) -> ErrorCode:
    """Return what a client of that version knows for a partition that is offline."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if version < STORAGE_ERROR_SINCE else ErrorCode.KAFKA_STORAGE_ERROR


def _lookup(node: Node, call: Call, *, is_follower: bool) -> PartitionLookup:
    """Return what finds the partitions: all of them, or those that the client may read."""
    if node.authorizer is None:
        return PartitionLookup(node.topics, node.partitions)
    return AuthorizedLookup(node, node.authorizer, call, is_follower=is_follower)


def _read_again(plan: FetchPlan, lookup: PartitionLookup, *, wait: bool) -> FetchResult:
    """Read what a delayed fetch waited for, of the partitions that the client may read now."""
    if isinstance(lookup, AuthorizedLookup) and lookup.is_outdated:
        plan.look_up_again()
    return plan.read(wait=wait)


def _answer_soon(delayed: DelayedFetch[FetchResponse], context: FetchContext, plan: FetchPlan) -> None:
    """Answer a follower's delayed fetch at its next fetch, and when a high watermark advances that it must learn."""
    if isinstance(context, Incremental):
        context.wait(delayed.complete)
    for _, request, partition in plan.partitions:
        if request.high_watermark != HIGH_WATERMARK_NOT_WANTED:
            delayed.complete_on_commit(partition)


def _answer_delayed(
    node: Node, call: Call, context: FetchContext, plan: FetchPlan, lookup: PartitionLookup
) -> FetchResponse | DelayedReply[FetchResponse]:
    """Return the response of a fetch that has waited; delayed while a thread loads records from the disk."""
    result = _read_again(plan, lookup, wait=False)
    if result.loads:
        return eager_tasks.start(_load_and_respond(node, call, context, plan, result, lookup))
    return _answer(node, call, context, plan, result)


async def _load_and_respond(
    node: Node, call: Call, context: FetchContext, plan: FetchPlan, result: FetchResult, lookup: PartitionLookup
) -> FetchResponse:
    """Load data that is not in the page cache in a thread, then respond without delay: such a fetch has records."""
    result = await load_and_read(result, lambda wait: _read_again(plan, lookup, wait=wait))
    return _answer(node, call, context, plan, result)


def _bytes_max(node: Node, call: Call, request: FetchRequest, *, is_follower: bool) -> int:
    """Return the maximum size of the response: the least of the request's, the broker's and a burst of the quota."""
    bytes_max, throttle = min(request.max_bytes, node.config.fetch_max_bytes), node.client_throttle
    if throttle is None or is_follower:
        return bytes_max
    burst_bytes = throttle.consumers.burst_bytes(call.principal.name, call.client_id)
    return bytes_max if burst_bytes is None else min(bytes_max, burst_bytes)


def _answer(node: Node, call: Call, context: FetchContext, plan: FetchPlan, result: FetchResult) -> FetchResponse:
    """Return the response; one without partitions to a consumer that is throttled. No session begins with that."""
    throttle = node.client_throttle
    throttle_ms = 0 if throttle is None or plan.of_follower else throttle_fetch(throttle, call, result.size_bytes)
    if not throttle_ms:
        return _response(node, context, result.responses, plan)
    response = _response(node, context, ()) if isinstance(context, Incremental) else FetchResponse()
    response.throttle_time_ms = throttle_ms
    return response


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


def _reader(node: Node, call: Call, request: FetchRequest, now_ms: int) -> Reader:
    replica_id = _replica_id(request)
    if replica_id > CONSUMER_MAX:
        return Reader(replica_id, now_ms, throttle=node.leader_throttle)
    is_read_committed = request.isolation_level == READ_COMMITTED
    if call.version < FOLLOWER_FETCH_SINCE:
        return Reader(read_committed=is_read_committed, leader_only=True)
    return Reader(read_committed=is_read_committed, select_replica=_selector(node, request.rack_id))


def _selector(node: Node, rack: str) -> Callable[[Partition, int], int] | None:
    """Return the selector of the replica that a consumer in this rack should read from; None if none is configured."""
    if not rack or node.config.replica_selector_class != RACK_AWARE:
        return None
    racks = {broker.broker_id: broker.rack for broker in node.topics.brokers.values()}
    return partial(read_replica_of, racks, rack)


def _is_registered(node: Node, request: FetchRequest) -> bool:
    """KIP-903. Return whether the request has the current registration epoch of the follower that it names."""
    replica = request.replica_state
    broker = None if replica is None else node.topics.brokers.get(replica.replica_id)
    return broker is not None and replica is not None and broker.epoch == replica.replica_epoch


def _refused_all(plan: FetchPlan) -> list[PartitionResponse]:
    refusals: list[PartitionResponse] = [
        (key, refused(key[1], ErrorCode.NOT_LEADER_OR_FOLLOWER, read_committed=False)) for key, _, _ in plan.partitions
    ]
    return refusals + plan.missing


def _response(
    node: Node, context: FetchContext, responses: Sequence[PartitionResponse], plan: FetchPlan | None = None
) -> FetchResponse:
    selected = context.select(responses, node.now_ms())
    if plan is not None:
        plan.count_sent(selected.responses)
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
