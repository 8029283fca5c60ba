"""Records are deleted where their partitions are led."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.admin.conftest import Pair

from rota.client.admin.records import delete_records
from rota.client.admin.requests import Deadline
from rota.client.errors import AdminFailed
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

PARTS = [TopicPartition("a", number) for number in range(4)]


def deletes(pair: Pair, node: int, *, moves: int | None = None, **codes: int) -> None:
    """Partition `moves` is led by broker 1 from the first question on."""

    def answer(request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        results = []
        for topic in request.topics:
            parts = []
            for item in topic.partitions:
                code = codes.get(f"p{item.partition_index}", 0)
                if item.partition_index == moves and node == 0:
                    pair.topics["a"][moves], code = 1, ErrorCode.NOT_LEADER_OR_FOLLOWER
                parts.append(
                    DeleteRecordsPartitionResult(
                        partition_index=item.partition_index, low_watermark=item.offset, error_code=code
                    )
                )
            results.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(parts)))
        return DeleteRecordsResponse(topics=tuple(results))

    pair.both[node].on(DeleteRecordsRequest, answer)


def numbers(pair: Pair) -> list[list[list[int]]]:
    requests: Any = pair.requests(DeleteRecordsRequest)
    return [
        [[p.partition_index for t in item.topics for p in t.partitions] for item in received] for received in requests
    ]


async def test_one_request_is_sent_to_each_leader(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [0, 1, 0, 1]}
    deletes(pair, 0)
    deletes(pair, 1)
    reply = await delete_records(cluster, {item: item.partition * 10 for item in PARTS}, deadline)
    assert reply == {item: item.partition * 10 for item in PARTS}
    assert numbers(pair) == [[[0, 2]], [[1, 3]]]


async def test_a_leader_that_has_moved_is_followed(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [0, 0]}
    deletes(pair, 0, moves=1)
    deletes(pair, 1)
    reply = await delete_records(cluster, {PARTS[0]: 3, PARTS[1]: 4}, deadline)
    assert reply == {PARTS[0]: 3, PARTS[1]: 4}
    assert numbers(pair)[1] == [[1]]


async def test_an_offset_beyond_the_end_is_an_error(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [0, 0]}
    deletes(pair, 0, p1=ErrorCode.OFFSET_OUT_OF_RANGE)
    with pytest.raises(AdminFailed, match=r"a-1.*OFFSET_OUT_OF_RANGE.*beyond the end") as failed:
        await delete_records(cluster, {PARTS[0]: 3, PARTS[1]: 99, PARTS[3]: 0}, deadline)
    assert failed.value.done == {PARTS[0]: 3}
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in failed.value.codes
