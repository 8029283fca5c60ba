"""Which partitions there are and who leads them, asked now: what an Admin knows of topics it does not keep.

Laws
    A partition that does not exist fails at once, as UnknownTopic; asking does not create it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rota.client.admin.asking import Deadline
from rota.client.admin.outcomes import Outcomes, Place
from rota.client.admin.topics import describe_topics
from rota.client.errors import AdminFailed
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode


async def leaders_of(
    cluster: Cluster, outcomes: Outcomes[TopicPartition, Any], deadline: Deadline
) -> dict[TopicPartition, int]:
    """The leaders of what is open in `outcomes`, where there are any; what does not exist has failed there."""
    leaders = await existing(cluster, {one.topic for one in outcomes.open()}, outcomes, deadline)
    for one in outcomes.open():
        if one not in leaders:
            outcomes.fail(one, outcomes.error(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return {one: leader for one, leader in leaders.items() if leader >= 0}


async def existing(
    cluster: Cluster, topics: Iterable[str], outcomes: Outcomes[TopicPartition, Any], deadline: Deadline
) -> dict[TopicPartition, int]:
    """All partitions of these topics with their leaders, -1 for none. Where a topic cannot be asked about, all of its
    partitions that are open in `outcomes` have failed."""
    try:
        found = await describe_topics(cluster, topics, deadline)
    except AdminFailed as some:
        found = some.done
        for one in outcomes.open():
            if one.topic in some.failed:
                outcomes.fail(one, some.failed[one.topic])
    return {TopicPartition(one.topic, one.partition): one.leader for told in found.values() for one in told.partitions}


async def partitions_of(
    cluster: Cluster, what: Iterable[str | TopicPartition], deadline: Deadline
) -> tuple[TopicPartition, ...]:
    """The given partitions, and all partitions of the given topics. Raises AdminFailed for what does not exist."""
    given = tuple(what)
    named = [one if isinstance(one, str) else one.topic for one in given]
    told = await describe_topics(cluster, dict.fromkeys(named), deadline)
    there = {TopicPartition(name, one.partition) for name, topic in told.items() for one in topic.partitions}
    single = [one for one in given if not isinstance(one, str)]
    outcomes = Outcomes[TopicPartition, None]("looking for partitions", 3, single, lambda key: Place(*key))
    for one in single:
        if one in there:
            outcomes.succeed(one, None)
        else:
            outcomes.fail(one, outcomes.error(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    whole = {one for one in there if one.topic in given}
    return tuple(sorted({*outcomes.results(), *whole}))
