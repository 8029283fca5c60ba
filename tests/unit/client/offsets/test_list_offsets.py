"""A listing on a scripted cluster: answers are told as they come, moves are followed, the deadline holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client.network.scripted import Scripted as Broker

from rota.client.config import ClientConfig
from rota.client.errors import BrokerError, KafkaError, TimedOut, UnknownTopic, Unreachable
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import BrokerInfo, Metadata, TopicInfo
from rota.client.offsets.list_offsets import EARLIEST, each_offset, leaders_in, list_offsets, partition_error
from rota.client.types import OffsetAndTimestamp, PartitionInfo, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = dict.fromkeys((FIRST, SECOND), EARLIEST)
Answer = Callable[[int, TopicPartition], int]  # the code that a node gives for a partition, 0: offset = 10 * node


class Scripted(Cluster):
    """A cluster of two brokers without a socket: what it knows and what it answers is told to it."""

    def __init__(self, leaders: dict[TopicPartition, int], answer: Answer) -> None:
        super().__init__(ClientConfig(bootstrap_servers="nowhere:1", retry_backoff_ms=1, retry_backoff_max_ms=2))
        self.leaders, self.answer = leaders, answer
        self.requests: list[tuple[int, list[int]]] = []
        self.follows = True

    @property
    def metadata(self) -> Metadata:
        infos = {
            item.partition: PartitionInfo(item.topic, item.partition, node, 3, (), ())
            for item, node in self.leaders.items()
        }
        topics = {"orders": TopicInfo("orders", bytes(16), False, infos)} if self.follows else {}
        return Metadata(brokers={node: BrokerInfo(node, "nowhere", node) for node in (1, 2)}, topics=topics)

    def stale(self) -> None:
        pass

    async def send_request(self, node: int, request: Any, **_: Any) -> Any:
        if request.KEY != ListOffsetsRequest.KEY:
            raise AssertionError(request)
        partitions = [item.partition_index for topic in request.topics for item in topic.partitions]
        self.requests.append((node, partitions))
        codes = {number: self.answer(node, TopicPartition("orders", number)) for number in partitions}
        results = tuple(
            ListOffsetsPartitionResponse(partition_index=number, error_code=code, offset=10 * node, timestamp=5)
            for number, code in codes.items()
        )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="orders", partitions=results),))

    async def send_request_until(self, target: Any, request: Any, codes: Any, **_: Any) -> Any:
        several = tuple(
            MetadataResponsePartition(partition_index=item.partition, leader_id=node)
            for item, node in self.leaders.items()
        )
        error = 0 if several else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponse(topics=(MetadataResponseTopic(name="orders", partitions=several, error_code=error),))


async def test_one_request_is_sent_to_each_leader() -> None:
    cluster = Scripted({FIRST: 1, SECOND: 2}, lambda *_: 0)
    found = await list_offsets(cluster, BOTH)
    assert found == {FIRST: OffsetAndTimestamp(10, 5), SECOND: OffsetAndTimestamp(20, 5)}
    assert sorted(cluster.requests) == [(1, [0]), (2, [1])]


async def test_only_moved_partitions_are_requested_again() -> None:
    cluster = Scripted({FIRST: 1, SECOND: 1}, lambda *_: 0)

    def answer(node: int, partition: TopicPartition) -> int:
        moved = partition == SECOND and node == 1
        if moved:
            cluster.leaders[SECOND] = 2
        return int(ErrorCode.NOT_LEADER_OR_FOLLOWER) if moved else 0

    cluster.answer = answer
    assert (await list_offsets(cluster, BOTH))[SECOND] == OffsetAndTimestamp(20, 5)
    assert cluster.requests == [(1, [0, 1]), (2, [1])]


async def test_topics_that_are_not_followed_are_looked_up() -> None:
    cluster = Scripted({FIRST: 1, SECOND: 2}, lambda *_: 0)
    cluster.follows = False
    assert set(await list_offsets(cluster, BOTH)) == {FIRST, SECOND}


async def test_a_partition_without_a_leader_does_not_delay_the_others() -> None:
    cluster = Scripted({FIRST: 1}, lambda *_: 0)
    answers: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    with pytest.raises(UnknownTopic, match="orders-1"):
        await each_offset(cluster, BOTH, answers.__setitem__, timeout_ms=30)
    assert answers == {FIRST: OffsetAndTimestamp(10, 5)}


async def test_a_fatal_error_is_raised_at_once() -> None:
    cluster = Scripted({FIRST: 1, SECOND: 2}, lambda node, _: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED) * (node == 2))
    with pytest.raises(BrokerError, match="orders-1") as raised:
        await list_offsets(cluster, BOTH)
    assert raised.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_a_partition_that_is_refused_delays_no_other_of_its_leader() -> None:
    cluster = Scripted(
        {FIRST: 1, SECOND: 1}, lambda _, each: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED) * (each == FIRST)
    )
    answers: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    with pytest.raises(BrokerError, match="orders-0"):
        await each_offset(cluster, BOTH, answers.__setitem__)
    assert answers == {SECOND: OffsetAndTimestamp(10, 5)}


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION])
async def test_a_topic_that_the_metadata_refuse_is_raised_at_once_and_delays_no_other(code: ErrorCode) -> None:
    class Refusing(Scripted):
        async def send_request_until(self, *_: Any, **__: Any) -> MetadataResponse:
            return MetadataResponse(topics=(MetadataResponseTopic(name="secrets", error_code=code),))

    cluster, secret = Refusing({FIRST: 1}, lambda *_: 0), TopicPartition("secrets", 0)
    answers: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    with pytest.raises(BrokerError, match="secrets-0") as raised:
        await each_offset(cluster, {secret: EARLIEST, FIRST: EARLIEST}, answers.__setitem__, timeout_ms=60_000)
    assert (raised.value.code, answers) == (code, {FIRST: OffsetAndTimestamp(10, 5)})


async def test_nc1_a_call_whose_time_is_over_closes_no_connection_that_others_use() -> None:
    async with Broker(0) as broker:
        partition = MetadataResponsePartition(partition_index=0, leader_id=0)
        topic = MetadataResponseTopic(name="orders", topic_id=b"\1" * 16, partitions=(partition,))
        broker.on(MetadataRequest, lambda _: broker.metadata(topic))
        broker.on(ListOffsetsRequest, lambda _: None)
        cluster = Cluster(ClientConfig(bootstrap_servers=broker.address))
        cluster.set_topics(["orders"])
        await cluster.start()
        with pytest.raises(TimedOut):
            await list_offsets(cluster, {FIRST: EARLIEST}, timeout_ms=20)
        assert broker.counted()[ListOffsetsRequest]
        assert cluster._all_brokers.ready(0, "") is not None
        await cluster.close()


async def test_the_timeout_names_the_last_failure() -> None:
    class Unavailable(Scripted):
        async def send_request(self, node: int, request: Any, **_: Any) -> Any:
            await asyncio.sleep(0)
            raise Unreachable("gone")

    with pytest.raises(TimedOut, match=r"orders-0, orders-1.*gone"):
        await list_offsets(Unavailable({FIRST: 1, SECOND: 2}, lambda *_: 0), BOTH, timeout_ms=30)


class Unanswered(Scripted):
    """No request is answered; `under_way` counts those that have begun and not ended."""

    under_way = 0

    async def send_request(self, node: int, request: Any, **_: Any) -> Any:
        self.under_way += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.under_way -= 1


@pytest.mark.parametrize("leaders", [1, 2])
@pytest.mark.parametrize("turns", range(5))
async def test_a_cancelled_lookup_leaves_no_request(turns: int, leaders: int) -> None:
    """Law C9: at each step, also before the first one."""
    before = asyncio.all_tasks()
    cluster = Unanswered({FIRST: 1, SECOND: leaders}, lambda *_: 0)
    lookup = asyncio.create_task(list_offsets(cluster, BOTH))
    for _ in range(turns):
        await asyncio.sleep(0)
    assert cluster.under_way == leaders or turns < 3
    lookup.cancel()
    await asyncio.wait({lookup})
    assert lookup.cancelled()
    assert cluster.under_way == 0
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    ("code", "kind"),
    [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UnknownTopic), (ErrorCode.LEADER_NOT_AVAILABLE, BrokerError)],
)
def test_an_unknown_topic_has_its_own_error(code: ErrorCode, kind: type[KafkaError]) -> None:
    assert type(partition_error(FIRST, code)) is kind


def test_leaders_are_read_from_a_metadata_response() -> None:
    several = (
        MetadataResponsePartition(partition_index=0, leader_id=4),
        MetadataResponsePartition(partition_index=1, leader_id=-1),
    )
    answer = MetadataResponse(topics=(MetadataResponseTopic(name="orders", partitions=several),))
    assert leaders_in(answer) == {FIRST: 4}
