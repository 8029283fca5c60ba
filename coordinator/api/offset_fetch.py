"""OffsetFetch, key 9, versions 1-10.

v2 all topics (null) and a group error · v5 leader epoch · v6 flexible · v7 require stable (KIP-447)
v8 many groups (KIP-709) · v9 member epochs (KIP-848; classic groups ignore them) · v10 topic ids

Laws
    O1  A response waits until the commits that it contains are durable.
    O2  A partition without a committed offset has offset -1, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.repeats import Repeats
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.group.offsets import Offsets, decode_offset
from rota.coordinator.network.call import Codecs
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from rota.protocol.records.offset_columns import FetchedTopic, encode_fetched

NONE = ErrorCode.NONE
ZERO_ID = bytes(16)
GROUP_ERROR_SINCE: Final = 2
GROUPS_SINCE: Final = 8
UNSTABLE: Final = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)
IsUnstable = Callable[[str, int], bool]  # (topic, partition): may a transaction still change its offset?


class RequestedTopic(NamedTuple):
    """One topic of the request; `name` is None when no topic has `topic_id`."""

    name: str | None
    topic_id: bytes
    partitions: Sequence[int]


def codecs(version: int) -> Codecs:
    """Return the codecs of a version: the generated decoder, and the compiled encoder, which takes columns."""
    encode = codec(OffsetFetchResponse, version).encode
    return codec(OffsetFetchRequest, version).decode, partial(encode_fetched, encode, version)


def offset_fetch(
    node: Node, call: Call, request: OffsetFetchRequest
) -> OffsetFetchResponse | DelayedReply[OffsetFetchResponse]:
    """Return the committed offsets of one group, or of several. Delayed while a commit is being written."""
    if call.version >= 8:
        return _many(node, call, request)
    requested = (
        None
        if request.topics is None
        else [RequestedTopic(t.name, ZERO_ID, t.partition_indexes) for t in request.topics]
    )
    shard = node.groups.ready(request.group_id)
    if isinstance(shard, ErrorCode):
        return _single(call, requested, Offsets(), shard)
    group = shard.machines.get(request.group_id)
    unstable = _unstable_check(group, request.require_stable)
    body = _single(call, requested, Offsets() if group is None else group.offsets, NONE, unstable)
    return shard.when_committed(body, lambda code: _single(call, requested, Offsets(), code))


def _single(
    call: Call,
    requested: list[RequestedTopic] | None,
    offsets: Offsets,
    code: ErrorCode,
    is_unstable: IsUnstable | None = None,
) -> OffsetFetchResponse:
    """Return the response up to v7. A group error has no partitions; version 1 has none, and each partition gets it."""
    if code is not NONE and call.version >= GROUP_ERROR_SINCE:
        return OffsetFetchResponse(error_code=code)
    topics: list[Any] = []
    for topic in _topics_with_offsets(offsets) if requested is None else requested:
        fetched = _fetched(call, topic, ZERO_ID, offsets, code)
        topics.append(_with_unstable(OffsetFetchResponseTopic(name=fetched.name), fetched, is_unstable))
    return OffsetFetchResponse(topics=tuple(topics), error_code=code)


def _many(
    node: Node, call: Call, request: OffsetFetchRequest
) -> OffsetFetchResponse | DelayedReply[OffsetFetchResponse]:
    """Return the response from v8 on. Delayed until the last of the shards has written its pending commits."""
    repeats = Repeats()
    bodies = [
        OffsetFetchResponseGroup(group_id=group_request.group_id, error_code=ErrorCode.INVALID_REQUEST)
        if repeats.is_refused(group_request.group_id)
        else _group(node, call, group_request, request.require_stable)
        for group_request in request.groups
    ]
    return gather(bodies, lambda groups: OffsetFetchResponse(groups=tuple(groups)))


def _group(
    node: Node, call: Call, group_request: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup | DelayedReply[OffsetFetchResponseGroup]:
    shard = node.groups.ready(group_request.group_id)
    if isinstance(shard, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group_request.group_id, error_code=shard)
    group = shard.machines.get(group_request.group_id)
    error = NONE if group is None else group.check_fetch(group_request.member_id, group_request.member_epoch)
    if error is not NONE:
        return OffsetFetchResponseGroup(group_id=group_request.group_id, error_code=error)
    offsets = Offsets() if group is None else group.offsets
    unstable = _unstable_check(group, require_stable)
    requested = (
        _topics_with_offsets(offsets) if group_request.topics is None else _requested_topics(node, call, group_request)
    )
    body = OffsetFetchResponseGroup(
        group_id=group_request.group_id,
        topics=tuple(_topic(node, call, topic, offsets, unstable) for topic in requested),
    )
    return shard.when_committed(
        body, lambda code: OffsetFetchResponseGroup(group_id=group_request.group_id, error_code=code)
    )


def _requested_topics(node: Node, call: Call, group_request: OffsetFetchRequestGroup) -> list[RequestedTopic]:
    assert group_request.topics is not None
    if call.version < 10:
        return [RequestedTopic(topic.name, ZERO_ID, topic.partition_indexes) for topic in group_request.topics]
    requested = []
    for topic in group_request.topics:
        known = node.topics.by_id(topic.topic_id)
        requested.append(RequestedTopic(known.name if known else None, topic.topic_id, topic.partition_indexes))
    return sorted(requested, key=lambda topic: topic.name is None)  # Kafka's response ends with the errors


def _topic(node: Node, call: Call, topic: RequestedTopic, offsets: Offsets, is_unstable: IsUnstable | None) -> Any:
    topic_id = topic.topic_id
    if call.version >= 10 and topic_id == ZERO_ID and topic.name is not None:
        known = node.topics.get(topic.name)
        topic_id = known.topic_id if known else ZERO_ID
    code = ErrorCode.UNKNOWN_TOPIC_ID if topic.name is None else NONE
    fetched = _fetched(call, topic, topic_id, offsets, code)
    return _with_unstable(OffsetFetchResponseTopics(name=fetched.name, topic_id=topic_id), fetched, is_unstable)


def _fetched(call: Call, topic: RequestedTopic, topic_id: bytes, offsets: Offsets, code: ErrorCode) -> FetchedTopic:
    """Return the offsets as they are now: the answer may have to wait for a write (O1)."""
    name, indexes = topic.name or "", list(topic.partitions)
    of_topic = offsets.by_topic.get(name)
    values: list[bytes | None] = [None] * len(indexes) if of_topic is None else list(map(of_topic.get, indexes))
    if topic.topic_id != ZERO_ID:
        values = [None if raw is None or _is_foreign(raw, topic.topic_id) else raw for raw in values]
    shape = OffsetFetchResponsePartitions if call.version >= GROUPS_SINCE else OffsetFetchResponsePartition
    return FetchedTopic(shape, name, topic_id, indexes, values, int(code))


def _is_foreign(raw: bytes, topic_id: bytes) -> bool:
    """Return whether the offset was committed for a deleted topic of that name: the request names another id."""
    committed_for = decode_offset(raw).topic_id
    return committed_for is not None and committed_for != topic_id


def _unstable_check(group: HostedGroup | None, require_stable: bool) -> IsUnstable | None:
    """Return the check of a client that requires stable offsets (KIP-447), while any is pending."""
    return group.is_unstable if group is not None and require_stable and group.pending else None


def _with_unstable(topic: Any, fetched: FetchedTopic, is_unstable: IsUnstable | None) -> Any:
    """Return the topic, as a message with errors where an offset is pending."""
    if is_unstable is None:
        return fetched
    unstable = {index for index in fetched.indexes if is_unstable(fetched.name, index)}
    if not unstable:
        return fetched
    error = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": "", "error_code": UNSTABLE}
    partitions = [replace(each, **error) if each.partition_index in unstable else each for each in fetched.partitions]
    return replace(topic, partitions=tuple(partitions))


def _topics_with_offsets(offsets: Offsets) -> list[RequestedTopic]:
    """Return all topics with committed offsets, for a request without topics."""
    return [RequestedTopic(name, ZERO_ID, sorted(of_topic)) for name, of_topic in sorted(offsets.by_topic.items())]
