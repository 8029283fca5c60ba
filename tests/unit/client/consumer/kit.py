"""Two brokers with logs in memory, whose next answers for a partition a test may write; and a fetcher on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.unit.client.network.scripted import Scripted

from rota.client.config import ConsumerConfig
from rota.client.consumer.fetcher import Fetcher
from rota.client.consumer.positions import Positions
from rota.client.errors import KafkaError
from rota.client.network.cluster import Cluster
from rota.client.types import ConsumerRecord, TopicPartition
from rota.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
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
from rota.protocol.records.batch import read_header
from rota.protocol.records.record import Record, write_batch

TOPIC = "orders"
TOPIC_ID = bytes(range(16))
P0, P1, P2, P3 = (TopicPartition(TOPIC, number) for number in range(4))
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
    "fetch_max_wait_ms": 50,
}


def batch(base: int, count: int, value: bytes = b"v", **more: Any) -> bytes:
    """Records whose keys are their offsets."""
    records = [Record(0, 1_000 + at, str(at).encode(), value) for at in range(base, base + count)]
    return write_batch(records, base_offset=base, leader_epoch=more.pop("epoch", 0), **more)


class Feed:
    """Broker `leaders[p]` has partition p of the topic, `batches[p]` is its log. `instead[p]`: answers to come."""

    def __init__(self, partitions: int = 4) -> None:
        self.brokers = Scripted(0), Scripted(1)
        self.leaders = dict.fromkeys(range(partitions), 0)
        self.epochs = dict.fromkeys(range(partitions), 0)
        self.topic_id = TOPIC_ID
        self.batches: dict[int, list[bytes]] = {number: [] for number in range(partitions)}
        self.instead: dict[int, list[PartitionData]] = {}
        self.whole: list[FetchResponse] = []  # answers that come first, whoever is asked
        self.written = asyncio.Event()
        for broker in self.brokers:
            broker.peers = list(self.brokers)
            broker.on(MetadataRequest, self._metadata)
            broker.on(FetchRequest, self._fetched)
            broker.on(ListOffsetsRequest, self._listed)

    def write(self, partition: int, *batches: bytes) -> None:
        self.batches[partition] += batches
        self.written.set()

    def end(self, partition: int) -> int:
        log = self.batches[partition]
        return read_header(log[-1]).next_offset if log else 0

    def requests(self, broker: int = 0) -> list[FetchRequest]:
        return [item for item in self.brokers[broker].requests if isinstance(item, FetchRequest)]

    def _metadata(self, _: MetadataRequest) -> MetadataResponse:
        parts = tuple(
            MetadataResponsePartition(
                partition_index=number,
                leader_id=leader,
                leader_epoch=self.epochs[number],
                replica_nodes=(0, 1),
                isr_nodes=(0, 1),
            )
            for number, leader in self.leaders.items()
        )
        topic = MetadataResponseTopic(name=TOPIC, topic_id=self.topic_id, partitions=parts)
        return self.brokers[0].metadata(topic)

    def _listed(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """The start, the end, or the first batch at or after a time."""
        found = []
        for item in request.topics[0].partitions:
            late = [head.base_offset for head in map(read_header, self.batches[item.partition_index])]
            times = [head.max_timestamp for head in map(read_header, self.batches[item.partition_index])]
            at = {-2: late[0] if late else 0, -1: self.end(item.partition_index)}.get(item.timestamp)
            if at is None:
                at = next((base for base, time in zip(late, times, strict=True) if time >= item.timestamp), -1)
            found.append(ListOffsetsPartitionResponse(partition_index=item.partition_index, offset=at))
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=TOPIC, partitions=tuple(found)),))

    async def _fetched(self, request: FetchRequest) -> FetchResponse:
        if self.whole:
            return self.whole.pop(0)
        urgent = any(self.instead.get(item.partition) for topic in request.topics for item in topic.partitions)
        answer = self._answer(request)
        if not urgent and not any(item.records for item in answer.responses[0].partitions):
            self.written.clear()
            try:
                async with asyncio.timeout(request.max_wait_ms / 1000):
                    await self.written.wait()
            except TimeoutError:
                pass
            answer = self._answer(request)
        return answer

    def _answer(self, request: FetchRequest) -> FetchResponse:
        assert [topic.topic_id for topic in request.topics] == [self.topic_id]
        left, found = request.max_bytes, []
        for item in request.topics[0].partitions:
            instead = self.instead.get(item.partition)
            if instead:
                found.append(instead.pop(0))
                continue
            records = b""
            for raw in self.batches[item.partition]:
                behind = read_header(raw).next_offset > item.fetch_offset
                if behind and (not records or len(records) + len(raw) <= min(item.partition_max_bytes, left)):
                    records += raw
            left -= len(records)
            found.append(
                PartitionData(
                    partition_index=item.partition,
                    high_watermark=self.end(item.partition),
                    log_start_offset=0,
                    records=records,
                )
            )
        return FetchResponse(responses=(FetchableTopicResponse(topic_id=self.topic_id, partitions=tuple(found)),))


class Reading:
    """A fetcher, its positions, and all that was taken."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig) -> None:
        self.cluster = cluster
        self.positions = Positions()
        self.fetcher = Fetcher(cluster, config, self.positions)
        self.taken: list[ConsumerRecord] = []

    def begin(self, *partitions: TopicPartition) -> None:
        self.positions.assign(partitions)
        for partition in partitions:
            self.positions.seek(partition, 0)
        self.fetcher.wake()

    def take(self, records_max: int = 1000) -> int:
        records = [record for found in self.fetcher.take(records_max).values() for record in found]
        self.taken += records
        return len(records)

    async def until(self, count: int, records_max: int = 1000) -> None:
        """So many were taken in all."""
        async with asyncio.timeout(10):
            while len(self.taken) < count:
                if not self.take(records_max):
                    await self.fetcher.wait()

    async def failure(self) -> KafkaError:
        """The next failure that is told."""
        async with asyncio.timeout(10):
            while True:
                try:
                    if not self.take():
                        await self.fetcher.wait()
                except KafkaError as why:
                    return why

    async def offsets(self, partition: TopicPartition, count: int, records_max: int = 1000) -> list[int]:
        await self.until(count, records_max)
        return [item.offset for item in self.taken if item.partition == partition.partition]


@asynccontextmanager
async def reading(feed: Feed, **settings: Any) -> AsyncIterator[Reading]:
    for broker in feed.brokers:
        await broker.listen()
    config = ConsumerConfig(bootstrap_servers=feed.brokers[0].address, **QUICK | settings)
    cluster = Cluster(config)
    try:
        await cluster.start()
        cluster.set_topics([TOPIC])
        await cluster.until(lambda known: known.partitions(TOPIC), what="the topic")
        its = Reading(cluster, config)
        its.fetcher.start()
        try:
            yield its
        finally:
            await its.fetcher.close()
    finally:
        await cluster.close()
        for broker in feed.brokers:
            await broker.stop()


def marker(base: int, kind: int, producer_id: int = 7) -> bytes:
    """The end of a transaction: 0 abort, 1 commit."""
    key = b"\0\0" + kind.to_bytes(2, "big")
    control = Record(0, 1_000, key, b"\0\0\0\0\0\0")
    return write_batch([control], base_offset=base, is_control=True, is_transactional=True, producer_id=producer_id)


def transactional(base: int, count: int, producer_id: int = 7) -> bytes:
    return batch(base, count, producer_id=producer_id, producer_epoch=0, is_transactional=True)
