"""DescribeQuorum, key 55, versions 0-2.

v0 flexible (KIP-595) · v1 time of the last fetch and catch-up (KIP-836) · v2 messages, addresses (KIP-853)

A single broker keeps its own metadata: the quorum has one voter, which is always caught up. Offsets are the change
numbers of the metadata store. Its address is that of the listener that the request came by.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    PartitionData,
    ReplicaState,
    TopicData,
)
from rota.protocol.messages.describe_quorum import Node as Voter

METADATA: Final = "__cluster_metadata"


def describe_quorum(node: Node, call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Return this broker as the only voter, with its log end offset."""
    listener = Listener(name=call.listener, host=call.reached_host, port=call.reached_port)
    this_broker = Voter(node_id=node.config.node_id, listeners=(listener,))
    has_metadata_topic = any(topic.topic_name == METADATA for topic in request.topics)
    topics = tuple(
        TopicData(
            topic_name=topic.topic_name,
            partitions=tuple(
                _partition(node, topic.topic_name, partition.partition_index) for partition in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return DescribeQuorumResponse(error_message="", topics=topics, nodes=(this_broker,) if has_metadata_topic else ())


def _partition(node: Node, name: str, index: int) -> PartitionData:
    if (name, index) != (METADATA, 0):
        return PartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="This server does not host this topic-partition.",
            leader_id=0,
            leader_epoch=0,
            high_watermark=0,
        )
    end, wall_ms = node.topics.store.last_change, node.wall_ms()
    this_broker = ReplicaState(
        replica_id=node.config.node_id,
        log_end_offset=end,
        last_fetch_timestamp=wall_ms,
        last_caught_up_timestamp=wall_ms,
    )
    return PartitionData(
        partition_index=index,
        error_message="",
        leader_id=node.config.node_id,
        leader_epoch=1,  # the controller's epoch in the metadata store
        high_watermark=end,
        current_voters=(this_broker,),
    )
