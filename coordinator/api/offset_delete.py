"""OffsetDelete, key 47, version 0 (KIP-496).

Deletes the committed offsets of topics that the group does not subscribe to.
"""

from __future__ import annotations

from rota.coordinator.api.committed_partitions import by_topic
from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.effects import OffsetsDropped
from rota.coordinator.group.events import DropOffsets
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def offset_delete(
    node: Node, call: Call, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | DelayedReply[OffsetDeleteResponse]:
    """Return one error code for each partition; delayed until all tombstones are durable."""
    shard = node.groups.ready(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
    if isinstance(shard, ErrorCode):
        return OffsetDeleteResponse(error_code=shard)
    group = shard.machines.get(request.group_id)
    if group is None:
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    known: list[tuple[str, int]] = []
    unknown: list[tuple[str, int]] = []
    for topic in request.topics:
        found = node.topics.get(topic.name)
        for partition in topic.partitions:
            exists = found is not None and 0 <= partition.partition_index < len(found.partitions)
            (known if exists else unknown).append((topic.name, partition.partition_index))
    event = DropOffsets(shard.token(), tuple(known))
    delayed_reply: DelayedReply[OffsetsDropped] = shard.submit(group, event, OffsetsDropped)
    return delayed_reply.map(lambda body: _response(body, unknown))


def _response(body: OffsetsDropped, unknown: list[tuple[str, int]]) -> OffsetDeleteResponse:
    if body.error:
        return OffsetDeleteResponse(error_code=body.error)
    missing = [(topic, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for topic, index in unknown]
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index, code in answers
                ),
            )
            for name, answers in by_topic([*missing, *body.partitions]).items()
        )
    )
