"""Offsets of partitions: what cannot be told harms nothing that can."""

from __future__ import annotations

import pytest
from tests.unit.client.admin.conftest import Pair

from rota.client.admin.partition_offsets import bounds, list_offsets
from rota.client.admin.requests import Deadline
from rota.client.errors import AdminFailed, TimedOut, UnknownTopic
from rota.client.network.cluster import Cluster
from rota.client.offsets.list_offsets import EARLIEST, LATEST
from rota.client.types import OffsetAndTimestamp, TopicPartition
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

FIRST, SECOND = TopicPartition("a", 0), TopicPartition("a", 1)
NOWHERE = TopicPartition("nowhere", 0)


def lists(pair: Pair) -> None:
    """Logs from 10 to 20; no record at any time."""
    at = {EARLIEST: 10, LATEST: 20}

    def answer(request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ListOffsetsPartitionResponse(
                        partition_index=item.partition_index, offset=at.get(item.timestamp, -1), timestamp=-1
                    )
                    for item in topic.partitions
                ),
            )
            for topic in request.topics
        )
        return ListOffsetsResponse(topics=topics)

    for broker in pair.both:
        broker.on(ListOffsetsRequest, answer)


async def test_ends_and_times(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [0, 1]}
    lists(pair)
    reply = await list_offsets(cluster, {FIRST: EARLIEST, SECOND: 12345}, deadline, isolation_level="read_uncommitted")
    assert reply == {FIRST: OffsetAndTimestamp(10, -1), SECOND: None}
    assert await list_offsets(cluster, {}, deadline, isolation_level="read_committed") == {}
    assert await bounds(cluster, [FIRST, SECOND], deadline) == {FIRST: (10, 20), SECOND: (10, 20)}


async def test_an_unknown_partition_fails_alone_without_a_retry(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    pair.topics = {"a": [0]}
    lists(pair)
    times = dict.fromkeys((FIRST, SECOND, NOWHERE), LATEST)
    with pytest.raises(AdminFailed, match="describe_topics") as failed:
        await list_offsets(cluster, times, deadline, isolation_level="read_uncommitted")
    assert failed.value.done == {FIRST: OffsetAndTimestamp(20, -1)}
    assert {type(error) for error in failed.value.failed.values()} == {UnknownTopic}


async def test_a_partition_without_a_leader_does_not_affect_the_others(
    pair: Pair, cluster: Cluster, later: Deadline
) -> None:
    pair.topics = {"a": [0, -1]}
    lists(pair)
    assert await bounds(cluster, [FIRST, SECOND, NOWHERE], later) == {FIRST: (10, 20)}
    with pytest.raises(AdminFailed) as failed:
        await list_offsets(cluster, {FIRST: LATEST, SECOND: LATEST}, later, isolation_level="read_uncommitted")
    assert list(failed.value.done) == [FIRST]
    assert isinstance(failed.value.failed[SECOND], TimedOut)
