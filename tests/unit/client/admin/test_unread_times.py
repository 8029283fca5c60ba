"""Unread records are fetched from the leaders; what no leader returns is not known."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.client.admin.conftest import Pair
from tests.unit.client.network.scripted import CLOSE

from rota.client.admin import unread_times as module
from rota.client.admin.requests import Deadline
from rota.client.admin.unread_times import unread_times
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from rota.protocol.records.record import Record, write_batch

PARTS = [TopicPartition("a", number) for number in range(4)]
END = 100
Answer = tuple[int, bytes]  # error code, records


def batch(offset: int, time_ms: int, size: int = 1) -> bytes:
    return write_batch([Record(offset, time_ms, None, b"v" * size, ())], base_offset=offset)


def fetches(pair: Pair, node: int, answers: Mapping[int, Answer], alone: Mapping[int, Answer] | None = None) -> None:
    """`alone`: the answer of a partition that is asked for by itself."""

    def answer(request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        chosen = alone if alone is not None and len(topic.partitions) == 1 else answers
        results = []
        for item in topic.partitions:
            code, records = chosen[item.partition]
            results.append(
                PartitionData(partition_index=item.partition, error_code=code, high_watermark=END, records=records)
            )
        return FetchResponse(responses=(FetchableTopicResponse(topic="a", partitions=tuple(results)),))

    pair.both[node].on(FetchRequest, answer)


async def test_each_leader_is_asked_once_and_says_when(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [0, 1, 0, 1]}
    fetches(pair, 0, {0: (0, batch(3, 1_000)), 2: (0, batch(7, 2_000))})  # compaction has removed 5 and 6
    fetches(pair, 1, {1: (0, batch(0, 3_000)), 3: (0, batch(4, 4_000))})
    offsets = dict(zip(PARTS, (3, 0, 5, 4), strict=True))
    assert await unread_times(cluster, offsets, deadline) == dict(zip(PARTS, (1_000, 3_000, 2_000, 4_000), strict=True))
    assert [len(received) for received in pair.requests(FetchRequest)] == [1, 1]


@pytest.mark.parametrize(
    "answer",
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, b""),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, b""),
        (0, batch(0, -1)),  # without a timestamp
        (0, b"\xff" * 80),  # no batch
        (0, batch(0, 1_000)[:-3]),
    ],
    ids=["out-of-range", "refused", "no-timestamp", "garbage", "cut"],
)
async def test_what_no_leader_returns_is_not_known(
    pair: Pair, cluster: Cluster, deadline: Deadline, answer: Answer
) -> None:
    pair.topics = {"a": [0, 0]}
    fetches(pair, 0, {0: answer, 1: (0, batch(0, 1_000))})
    missing = TopicPartition("missing", 0)
    assert await unread_times(cluster, {PARTS[0]: 0, PARTS[1]: 0, missing: 0}, deadline) == {PARTS[1]: 1_000}


async def test_a_leader_that_does_not_answer_hides_its_partitions_only(
    pair: Pair, cluster: Cluster, later: Deadline
) -> None:
    pair.topics = {"a": [0, 1, -1]}
    fetches(pair, 0, {0: (0, batch(0, 1_000))})
    pair.two.on(FetchRequest, lambda _: CLOSE)
    assert await unread_times(cluster, dict.fromkeys(PARTS[:3], 0), later) == {PARTS[0]: 1_000}


async def test_a_batch_that_did_not_fit_is_fetched_alone(
    pair: Pair, cluster: Cluster, deadline: Deadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.topics = {"a": [0, 0, 0]}
    answers = {0: (0, batch(0, 1_000)), 1: (0, b""), 2: (0, batch(0, 2_000, 99)[:-1])}
    whole = {1: (0, batch(0, 5_000)), 2: (0, batch(0, 2_000, 99))}
    fetches(pair, 0, answers, whole)
    expected = {PARTS[0]: 1_000, PARTS[1]: 5_000, PARTS[2]: 2_000}
    assert await unread_times(cluster, dict.fromkeys(PARTS[:3], 0), deadline) == expected
    monkeypatch.setattr(module, "ALONE_MAX", 1)
    del expected[PARTS[2]]
    assert await unread_times(cluster, dict.fromkeys(PARTS[:3], 0), deadline) == expected


async def test_the_number_of_partitions_is_limited(
    pair: Pair, cluster: Cluster, deadline: Deadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.topics = {"a": [0, 0, 0]}
    fetches(pair, 0, {number: (0, batch(0, 1_000)) for number in range(3)})
    monkeypatch.setattr(module, "PARTITIONS_MAX", 2)
    assert set(await unread_times(cluster, dict.fromkeys(PARTS[:3], 0), deadline)) == set(PARTS[:2])
