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
    leaders = await list_leaders(cluster, {one.topic for one in results.pending()}, results, deadline)
    for one in results.pending():
        if one not in leaders:
            results.fail(one, results.error(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return {one: leader for one, leader in leaders.items() if leader >= 0}


async def list_leaders(
    cluster: Cluster, topics: Iterable[str], results: CallResults[TopicPartition, Any], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Return the leader of each partition of these topics, -1 for none. When a topic cannot be described, its pending
    partitions fail in `results`."""
    try:
        described = await describe_topics(cluster, topics, deadline)
    except AdminFailed as error:
        described = error.done
        for one in results.pending():
            if one.topic in error.failed:
                results.fail(one, error.failed[one.topic])
    return {
        TopicPartition(one.topic, one.partition): one.leader for topic in described.values() for one in topic.partitions
    }


async def resolve_partitions(
    cluster: Cluster, what: Iterable[str | TopicPartition], deadline: Deadline
) -> tuple[TopicPartition, ...]:
    """Return the given partitions and all partitions of the given topics, sorted. Raises AdminFailed for those that do
    not exist."""
    given = tuple(what)
    named = [one if isinstance(one, str) else one.topic for one in given]
    described = await describe_topics(cluster, dict.fromkeys(named), deadline)
    existing = {TopicPartition(name, one.partition) for name, topic in described.items() for one in topic.partitions}
    single = [one for one in given if not isinstance(one, str)]
    results = CallResults[TopicPartition, None]("looking up partitions", 3, single, lambda key: ErrorContext(*key))
    for one in single:
        if one in existing:
            results.succeed(one, None)
        else:
            results.fail(one, results.error(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    whole = {one for one in existing if one.topic in given}
    return tuple(sorted({*results.all_or_raise(), *whole}))
