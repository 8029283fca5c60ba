"""The topics of the cluster. A look-up creates no topic and follows none.

Laws
    A topic that does not exist has no partitions; it is not an error.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.client.errors import BrokerError
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode
from rota.client.types import PartitionInfo
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic

ABSENT = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


async def catalog(
    cluster: Cluster, topics: Iterable[str] | None, *, timeout_ms: int | None = None
) -> dict[str, tuple[PartitionInfo, ...]]:
    """Partitions by topic, in order; `topics` None: all that there are. Raises BrokerError, TimedOut."""
    requested = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)
    request = MetadataRequest(topics=requested, allow_auto_topic_creation=False)
    answer = await cluster.send_request_until(
        AnyNode(), request, lambda _: (), what="reading topics", timeout_ms=timeout_ms
    )
    for topic in answer.topics:
        if topic.error_code not in ABSENT:
            raise BrokerError(topic.error_code, "reading topics", topic=topic.name)
    return {topic.name or "": partitions_of(topic) for topic in answer.topics if topic.partitions}


def partitions_of(topic: MetadataResponseTopic) -> tuple[PartitionInfo, ...]:
    """A topic's partitions as the client shows them."""
    return tuple(
        PartitionInfo(
            topic.name or "",
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
        )
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    )
