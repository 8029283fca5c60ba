"""Fetching from a real broker: whatever clients wrote, wherever the position is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as TheirPartition
from confluent_kafka.admin import AdminClient
from tests.client.fault_proxy import FaultProxy
from tests.interop.kit import PATIENCE_S, create_topic, produce, produce_to, unique, until

from rota.client.config import ConsumerConfig
from rota.client.consumer.fetcher import Fetcher
from rota.client.consumer.positions import Positions
from rota.client.errors import KafkaError, LogTruncated, OffsetOutOfRange
from rota.client.network.cluster import Cluster
from rota.client.types import ConsumerRecord, TopicPartition
from rota.protocol.messages.fetch import FetchRequest

QUICK: dict[str, Any] = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 50, "fetch_max_wait_ms": 100}


def write(bootstrap: str, topic: str, values: list[bytes], **settings: object) -> None:
    """In order, also when a topic is so new that the first batches are refused."""
    produce(bootstrap, topic, values, **{"enable.idempotence": True} | settings)


class Reading:
    """A fetcher on all partitions of a topic, from their start."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig, topic: str, partitions: tuple[int, ...]) -> None:
        self.positions = Positions()
        self.fetcher = Fetcher(cluster, config, self.positions)
        self.partitions = [TopicPartition(topic, number) for number in partitions]
        self.taken: list[ConsumerRecord] = []
        self.positions.assign(self.partitions)
        for partition in self.partitions:
            self.positions.seek(partition, 0)

    async def until(self, count: int, records_max: int = 500) -> list[ConsumerRecord]:
        """All that was taken, when so many were."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.taken) < count:
                found = self.fetcher.take(records_max)
                self.taken += [record for records in found.values() for record in records]
                if not found:
                    await self.fetcher.wait()
        return self.taken

    async def failure(self) -> KafkaError:
        try:
            await self.until(1_000_000)
        except KafkaError as why:
            return why
        raise AssertionError("nothing failed")

    def seek(self, number: int, offset: int, leader_epoch: int = -1) -> None:
        self.taken.clear()
        self.positions.seek(self.partitions[number], offset, leader_epoch)
        self.fetcher.wake()


@asynccontextmanager
async def reading(bootstrap: str, topic: str, **settings: Any) -> AsyncIterator[Reading]:
    config = ConsumerConfig(bootstrap_servers=bootstrap, **QUICK | settings)
    cluster = Cluster(config)
    await cluster.start()
    try:
        cluster.set_topics([topic])
        partitions = await cluster.until(lambda known: known.partitions(topic), what="the topic")
        its = Reading(cluster, config, topic, partitions)
        its.fetcher.start()
        try:
            yield its
        finally:
            await its.fetcher.close()
    finally:
        await cluster.close()


def offsets(records: list[ConsumerRecord]) -> list[int]:
    return [item.offset for item in records]


def delete_before(bootstrap: str, topic: str, offset: int) -> None:
    position = TheirPartition(topic, 0, offset)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.delete_records([position]).values():
        done.result(PATIENCE_S)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_compressed_batches_of_other_clients_are_read(bootstrap: str, codec: str) -> None:
    topic = create_topic(bootstrap, 1)
    values = [f"{number} ".encode() * 50 for number in range(300)]
    write(bootstrap, topic, values, **{"compression.type": codec, "linger.ms": 50})
    async with reading(bootstrap, topic) as its:
        found = await its.until(300)
        assert [item.value for item in found] == values
        assert offsets(found) == list(range(300))


async def test_all_fields_of_a_record_are_returned(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"value", b"key", timestamp=1_234, headers=[("h", b"1"), ("none", None), ("h", b"2")])
    producer.produce(topic, None, b"tombstone", timestamp=5_678)
    producer.produce(topic, b"", None)
    assert producer.flush(PATIENCE_S) == 0
    async with reading(bootstrap, topic) as its:
        first, second, third = await its.until(3)
        assert (first.topic, first.partition, first.offset, first.timestamp) == (topic, 0, 0, 1_234)
        assert (first.key, first.value, first.timestamp_type) == (b"key", b"value", 0)
        assert first.headers == (("h", b"1"), ("none", None), ("h", b"2"))
        assert first.leader_epoch == 0
        assert (second.key, second.value, second.timestamp) == (b"tombstone", None, 5_678)
        assert (third.key, third.value, third.headers) == (None, b"", ())


async def test_log_append_time_is_in_the_timestamp_type(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1, config={"message.timestamp.type": "LogAppendTime"})
    write(bootstrap, topic, [b"one"])
    async with reading(bootstrap, topic) as its:
        [item] = await its.until(1)
        assert item.timestamp_type == 1
        assert item.timestamp > 1_700_000_000_000


async def test_many_partitions_are_read_completely_and_in_order(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 7)
    write(bootstrap, topic, [str(number).encode() for number in range(7_000)])
    async with reading(bootstrap, topic, max_partition_fetch_bytes=5_000) as its:
        found = await its.until(7_000, records_max=333)
        for number in range(7):
            mine = [item for item in found if item.partition == number]
            assert offsets(mine) == list(range(1_000))
            assert [item.value for item in mine] == [str(at * 7 + number).encode() for at in range(1_000)]


async def test_a_record_above_the_fetch_limits_is_returned(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    values = [bytes(300_000), b"small", bytes(200_000)]
    write(bootstrap, topic, values)
    async with reading(bootstrap, topic, max_partition_fetch_bytes=1_000, fetch_max_bytes=1_000) as its:
        assert [item.value for item in await its.until(3)] == values


async def test_a_position_in_the_middle_of_a_batch(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    write(bootstrap, topic, [b"%d" % number for number in range(100)], **{"linger.ms": 100})
    async with reading(bootstrap, topic) as its:
        its.seek(0, 42)
        assert offsets(await its.until(58)) == list(range(42, 100))


async def test_a_record_written_during_a_waiting_fetch_is_returned_at_once(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 2)
    async with reading(bootstrap, topic, fetch_max_wait_ms=15_000) as its:
        for number in range(3):
            await asyncio.to_thread(produce_to, bootstrap, topic, number % 2, [b"x"])
            await its.until(number + 1)


async def test_a_resumed_partition_continues_at_its_position(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 2)
    write(bootstrap, topic, [bytes(100) for _ in range(2_000)], **{"batch.num.messages": 50})
    async with reading(bootstrap, topic, max_partition_fetch_bytes=20_000) as its:
        first, second = its.partitions
        await its.until(150, records_max=50)
        its.positions.pause([first])
        its.fetcher.wake()
        before = len([item for item in its.taken if item.partition == 0])
        await its.until(before + 1_000)
        assert len([item for item in its.taken if item.partition == 0]) == before
        assert its.fetcher.held_bytes < 100_000
        its.positions.resume([first])
        its.fetcher.wake()
        found = await its.until(2_000)
        assert offsets([item for item in found if item.partition == 0]) == list(range(1_000))
        assert its.positions.of(second).offset == 1_000


async def test_deleted_records_are_out_of_range(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    write(bootstrap, topic, [b"%d" % number for number in range(10)])
    delete_before(bootstrap, topic, 6)
    async with reading(bootstrap, topic, auto_offset_reset="none") as its:
        error = await its.failure()
        assert isinstance(error, OffsetOutOfRange)
        assert error.positions == {its.partitions[0]: 0}
        its.seek(0, 6)
        assert offsets(await its.until(4)) == [6, 7, 8, 9]
        its.seek(0, 11)
        assert isinstance(await its.failure(), OffsetOutOfRange)


async def test_out_of_range_is_reset_by_policy(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    async with reading(bootstrap, topic, auto_offset_reset="earliest") as its:
        its.seek(0, 5)
        async with asyncio.timeout(PATIENCE_S):
            while not its.positions.without_offset():
                assert its.fetcher.take(10) == {}
                await its.fetcher.wait()
        assert its.positions.of(its.partitions[0]).reset == "earliest"


async def test_a_log_that_ends_before_the_position_raises_log_truncated(bootstrap: str) -> None:
    """KIP-320: the epoch of the last record tells that it is not only an offset too far."""
    topic = create_topic(bootstrap, 1)
    write(bootstrap, topic, [b"%d" % number for number in range(10)])
    async with reading(bootstrap, topic, auto_offset_reset="none") as its:
        its.seek(0, 15, leader_epoch=0)
        error = await its.failure()
        assert isinstance(error, LogTruncated)
        assert error.offsets == {its.partitions[0]: 10}
    async with reading(bootstrap, topic, auto_offset_reset="latest") as its:
        its.seek(0, 15, leader_epoch=0)
        async with asyncio.timeout(PATIENCE_S):
            while its.positions.of(its.partitions[0]).offset != 10:
                assert its.fetcher.take(10) == {}
                its.fetcher.wake()
                await asyncio.sleep(0.01)
        await asyncio.to_thread(write, bootstrap, topic, [b"next"])
        assert [item.value for item in await its.until(1)] == [b"next"]


async def test_a_topic_that_is_created_again_is_read_by_the_policy(bootstrap: str) -> None:
    """It is another topic of that name: nothing was truncated, and what it has is not passed over."""
    topic = create_topic(bootstrap, 1)
    write(bootstrap, topic, [b"old" for _ in range(10)])
    async with reading(bootstrap, topic, auto_offset_reset="earliest") as its:
        await its.until(10)
        await asyncio.to_thread(create_again, bootstrap, topic)
        async with asyncio.timeout(PATIENCE_S):
            while not its.positions.without_offset():
                assert its.fetcher.take(10) == {}
                await its.fetcher.wait()
        assert its.positions.of(its.partitions[0]).reset == "earliest"


def create_again(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    until(lambda: topic not in admin.list_topics(timeout=PATIENCE_S).topics, "the topic to go")
    create_topic(bootstrap, 1, name=topic)
    write(bootstrap, topic, [b"new"])


async def test_an_epoch_that_no_leader_had_does_not_lose_the_position(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    write(bootstrap, topic, [b"%d" % number for number in range(10)])
    async with reading(bootstrap, topic, auto_offset_reset="latest") as its:
        its.seek(0, 4, leader_epoch=99)
        assert offsets(await its.until(6)) == [4, 5, 6, 7, 8, 9]


async def test_a_fetch_session_sends_only_changed_partitions(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 3)
    async with FaultProxy(bootstrap, nodes=1) as proxy, reading(proxy.bootstrap, topic) as its:
        for number in range(3):
            await asyncio.to_thread(produce_to, bootstrap, topic, number, [b"x", b"y"])
            await its.until(2 * (number + 1))
        async with asyncio.timeout(PATIENCE_S):
            while not quiet(proxy):
                await asyncio.sleep(0.01)
        first, *others = fetches(proxy)
        assert (first.session_id, first.session_epoch) == (0, 0)
        assert [item.session_epoch for item in others] == list(range(1, len(others) + 1))
        assert len({item.session_id for item in others}) == 1
        assert all(len(topic.partitions) <= 2 for item in others for topic in item.topics)


def fetches(proxy: FaultProxy) -> list[FetchRequest]:
    return [request for _, request in proxy.requests if isinstance(request, FetchRequest)]


def quiet(proxy: FaultProxy) -> list[FetchRequest]:
    """The requests of a session that change nothing: the first idle ones may still forget partitions."""
    later = [each for each in fetches(proxy) if each.session_epoch > 0]
    return [each for each in later if not each.topics and not each.forgotten_topics_data]


@pytest.mark.peer
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_transactions_are_read_as_the_isolation_level_says(isolation: str) -> None:
    """On Apache Kafka alone: Rota has no transactions."""
    bootstrap = os.environ.get("ROTA_PEER")
    if not bootstrap:
        pytest.skip("no Apache Kafka runs beside: ROTA_PEER is not set")
    topic = create_topic(bootstrap, 1)
    await asyncio.to_thread(transactions, bootstrap, topic)
    expected = ["a1", "a2", "b1", "b2", "c1", "c2", "plain"]
    if isolation == "read_committed":
        expected = ["a1", "a2", "c1", "c2", "plain"]
    async with reading(bootstrap, topic, isolation_level=isolation) as its:
        found = await its.until(len(expected))
        assert [(item.value or b"").decode() for item in found] == expected
        assert found[-1].offset == 9, "three markers have offsets too"


def transactions(bootstrap: str, topic: str) -> None:
    """a is committed, b aborted, c committed, and one record is of no transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": unique("transactions")})
    producer.init_transactions(PATIENCE_S)
    for name in "abc":
        producer.begin_transaction()
        for number in (1, 2):
            producer.produce(topic, f"{name}{number}".encode())
        producer.flush(PATIENCE_S)
        if name == "b":
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)
    write(bootstrap, topic, [b"plain"])
