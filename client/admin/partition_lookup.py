"""Look up the partitions of topics and their leaders. An Admin does not cache topics: each look-up is a request.

Laws
    A partition that does not exist fails at once with UnknownTopic; the look-up does not create it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rota.client.admin.call_results import CallResults, ErrorContext
from rota.client.admin.requests import Deadline
from rota.client.admin.topics import describe_topics
from rota.client.errors import AdminFailed
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode


async def find_leaders(
    cluster: Cluster, results: CallResults[TopicPartition, Any], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Return the leader of each pending partition that has one. A partition that does not exist fails in `results`."""
    leaders = await list_leaders(cluster, {partition.topic for partition in results.pending()}, results, deadline)
    for partition in results.pending():
        if partition not in leaders:
            results.fail(partition, results.error(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return {partition: leader for partition, leader in leaders.items() if leader >= 0}


async def list_leaders(
    cluster: Cluster, topics: Iterable[str], results: CallResults[TopicPartition, Any], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Return the leader of each partition of these topics, -1 for none. When a topic cannot be described, its pending
    partitions fail in `results`."""
    try:
        described = await describe_topics(cluster, topics, deadline)
    except AdminFailed as error:
        described = error.done
        for partition in results.pending():
            if partition.topic in error.failed:
                results.fail(partition, error.failed[partition.topic])
    return {
        TopicPartition(partition.topic, partition.partition): partition.leader
        for topic in described.values()
        for partition in topic.partitions
    }


async def resolve_partitions(
    cluster: Cluster, what: Iterable[str | TopicPartition], deadline: Deadline
) -> tuple[TopicPartition, ...]:
    """Return the given partitions and all partitions of the given topics, sorted. Raises AdminFailed for those that do
    not exist."""
    given = tuple(what)
    topics = [item if isinstance(item, str) else item.topic for item in given]
    described = await describe_topics(cluster, dict.fromkeys(topics), deadline)
    existing = {
        TopicPartition(name, partition.partition) for name, topic in described.items() for partition in topic.partitions
    }
    single = [item for item in given if not isinstance(item, str)]
    results = CallResults[TopicPartition, None]("looking up partitions", 3, single, lambda key: ErrorContext(*key))
    for partition in single:
        if partition in existing:
            results.succeed(partition, None)
        else:
            results.fail(partition, results.error(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    of_topics = {partition for partition in existing if partition.topic in given}
    return tuple(sorted({*results.all_or_raise(), *of_topics}))
