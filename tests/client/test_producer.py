"""The producer on both brokers: where records go, what is promised of them, what is refused."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as Confluent
from confluent_kafka import Message
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentPartition
from tests.client.fault_proxy import FaultProxy
from tests.interop.broker import PROPERTIES, broker
from tests.interop.java_kit import run_java
from tests.interop.kit import PATIENCE_S, create_topic, unique
from tools.peer.jars import lib

from rota.client.admin.admin import Admin
from rota.client.config import AdminConfig, ProducerConfig
from rota.client.errors import BrokerError, BufferFull, DeliveryFailed, RecordTooLarge, TimedOut
from rota.client.producer.partitioner import partition_of
from rota.client.producer.producer import Producer
from rota.client.types import RecordMetadata, TimestampType, TopicPartition
from rota.protocol.errors import ErrorCode

PRODUCE = 0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@asynccontextmanager
async def producing(bootstrap: str, **settings: Any) -> AsyncIterator[Producer]:
    quick: dict[str, Any] = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 50, "reconnect_backoff_ms": 10}
    async with Producer(ProducerConfig(bootstrap_servers=bootstrap, **quick | settings)) as producer:
        yield producer


async def read(bootstrap: str, topic: str, count: int) -> dict[tuple[int, int], Message]:
    """What librdkafka sees: exactly `count` records, by partition and offset."""
    return await asyncio.to_thread(_read, bootstrap, topic, count)


def _read(bootstrap: str, topic: str, count: int) -> dict[tuple[int, int], Message]:
    consumer = Confluent({"bootstrap.servers": bootstrap, "group.id": unique("group"), "check.crcs": True})
    try:
        known = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        parts = [ConfluentPartition(topic, number, 0) for number in known]
        ends = sum(consumer.get_watermark_offsets(part, timeout=PATIENCE_S)[1] for part in parts)
        assert ends == count
        consumer.assign(parts)
        found: dict[tuple[int, int], Message] = {}
        while len(found) < count:
            messages = consumer.consume(count, timeout=PATIENCE_S)
            assert messages, f"{len(found)} of {count} records came"
            for message in messages:
                assert message.error() is None
                found[message.partition(), message.offset()] = message
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", CODECS)
async def test_another_client_reads_the_records_at_the_delivered_offsets(bootstrap: str, codec: str) -> None:
    topic = create_topic(bootstrap, 3)
    sent: list[tuple[bytes | None, bytes | None]] = [(b"key%d" % at, b"value %d " % at * 20) for at in range(60)]
    sent += [(None, b"no key"), (b"tombstone", None), (b"", b"")]
    async with producing(bootstrap, compression_type=codec) as producer:
        deliveries = [
            await producer.send(topic, value, key, timestamp_ms=1_700_000_000_000 + at, headers=[("h", b"%d" % at)])
            for at, (key, value) in enumerate(sent)
        ]
        where = [await delivery for delivery in deliveries]
    found = await read(bootstrap, topic, len(sent))
    for at, (item, (key, value)) in enumerate(zip(where, sent, strict=True)):
        message = found[item.partition, item.offset]
        assert (message.key(), message.value()) == (key, value)
        assert message.timestamp()[1] == item.timestamp == 1_700_000_000_000 + at
        assert message.headers() == [("h", b"%d" % at)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_acks(bootstrap: str, acks: int | str) -> None:
    topic = create_topic(bootstrap, 1)
    async with producing(bootstrap, acks=acks) as producer:
        where = [await item for item in [await producer.send(topic, b"%d" % at) for at in range(10)]]
    assert [item.offset for item in where] == ([-1] * 10 if acks == 0 else list(range(10)))
    async with asyncio.timeout(PATIENCE_S):
        while True:  # acks=0 says nothing of when it is written
            try:
                found = await read(bootstrap, topic, 10)
                break
            except AssertionError:
                if acks != 0:
                    raise
    assert [found[0, at].value() for at in range(10)] == [b"%d" % at for at in range(10)]


async def test_keys_go_where_librdkafka_sends_them(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 7)
    keys = [b"%d" % at * (at % 9 + 1) for at in range(200)]
    theirs = ConfluentProducer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 5})
    for key in keys:
        theirs.produce(topic, b"theirs", key)
    assert await asyncio.to_thread(theirs.flush, PATIENCE_S) == 0
    async with producing(bootstrap) as producer:
        deliveries = [await producer.send(topic, b"ours", key) for key in keys]
        ours = {key: (await item).partition for key, item in zip(keys, deliveries, strict=True)}
    found = await read(bootstrap, topic, 2 * len(keys))
    assert {message.key(): message.partition() for message in found.values()} == ours
    assert ours == {key: partition_of(key, 7) for key in keys}


@pytest.mark.java
@pytest.mark.parametrize("partitions", [7, 48])
def test_keys_go_where_java_sends_them(partitions: int) -> None:
    if shutil.which("java") is None or lib() is None:
        pytest.skip("no Java, or no jars of Kafka: python -m tools.peer fetch")
    keys = [random.Random(at).randbytes(at % 40 + 1) for at in range(200)]
    theirs = run_java(
        str(Path(__file__).with_name("java") / "PartitionForKey.java"), str(partitions), *[key.hex() for key in keys]
    )
    assert [partition_of(key, partitions) for key in keys] == [int(line) for line in theirs.split()]


async def test_with_log_append_time_the_delivery_has_the_time_of_the_broker(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1, config={"message.timestamp.type": "LogAppendTime"})
    async with producing(bootstrap) as producer:
        where = await producer.send_and_wait(topic, b"1", timestamp_ms=5)
    assert where.timestamp_type is TimestampType.LOG_APPEND_TIME
    found = await read(bootstrap, topic, 1)
    assert found[0, 0].timestamp()[1] == where.timestamp > 5


async def test_without_keys_every_partition_gets_some_in_large_pieces(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 4)
    async with producing(bootstrap, batch_size=2_000) as producer:
        deliveries = [await producer.send(topic, b"x" * 100) for _ in range(2_000)]
        where = [await item for item in deliveries]
    counted = Counter(item.partition for item in where)
    turns = sum(before.partition != after.partition for before, after in pairwise(where))
    assert set(counted) == {0, 1, 2, 3}
    assert turns < 2_000 / 15  # a batch holds eighteen


async def test_large_records_and_too_large_ones(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1, config={"max.message.bytes": "300000"})
    async with producing(bootstrap, max_request_size=2_000_000) as producer:
        assert (await producer.send_and_wait(topic, b"x" * 290_000)).offset == 0
        with pytest.raises(RecordTooLarge, match="max_request_size"):
            await producer.send(topic, b"x" * 2_000_000)
        with pytest.raises(DeliveryFailed, match="MESSAGE_TOO_LARGE") as failed:
            await producer.send_and_wait(topic, b"x" * 310_000)
        assert isinstance(failed.value.cause, BrokerError)
        assert not failed.value.maybe_written
        assert (await producer.send_and_wait(topic, b"after")).offset == 1


async def test_a_batch_that_is_too_large_is_split_and_each_record_has_its_place(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1, config={"max.message.bytes": "5000"})
    async with producing(bootstrap, batch_size=60_000, linger_ms=50) as producer:
        deliveries = [await producer.send(topic, b"%03d" % at + b"x" * 400) for at in range(100)]
        assert [(await item).offset for item in deliveries] == list(range(100))
    found = await read(bootstrap, topic, 100)
    assert [int(found[0, at].value()[:3]) for at in range(100)] == list(range(100))


async def test_a_compacted_topic_names_the_record_that_has_no_key(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1, config={"cleanup.policy": "compact"})
    async with producing(bootstrap, linger_ms=20) as producer:
        good, bad = await producer.send(topic, b"1", b"key"), await producer.send(topic, b"2")
        with pytest.raises(DeliveryFailed, match="INVALID_RECORD"):
            await bad
        with pytest.raises(DeliveryFailed):
            await good
        assert (await producer.send_and_wait(topic, b"1", b"key")).offset == 0


async def test_a_small_buffer_only_slows_down(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 2)
    async with producing(bootstrap, buffer_memory=4_000, batch_size=1_000) as producer:
        sending = [asyncio.create_task(producer.send(topic, b"%04d" % at + b"x" * 100)) for at in range(1_000)]
        sending[500].cancel()
        deliveries = [await item for at, item in enumerate(sending) if at != 500]
        assert producer._accumulator.used_bytes <= 4_000
        await producer.flush()
        assert producer._accumulator.used_bytes == 0
        assert all(item.done() for item in deliveries)
    found = await read(bootstrap, topic, 999)
    for partition in (0, 1):
        values = [int(found[key].value()[:4]) for key in sorted(found) if key[0] == partition]
        assert values == sorted(values)


async def test_a_full_buffer_raises_after_max_block_ms(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    async with (
        FaultProxy(bootstrap, nodes=1) as proxy,
        producing(proxy.bootstrap, buffer_memory=300, max_block_ms=500) as producer,
    ):
        await producer.send_and_wait(topic, b"1")
        held = proxy.hold(PRODUCE)
        await producer.send(topic, b"x" * 200)
        with pytest.raises(BufferFull, match="max_block_ms"):
            await producer.send(topic, b"x" * 200)
        held.release()
        assert (await producer.send_and_wait(topic, b"x" * 200)).offset == 2


async def test_a_topic_is_made_by_sending_where_the_broker_does_that(bootstrap: str, topic: str) -> None:
    async with producing(bootstrap) as producer:
        where = await producer.send_and_wait(topic, b"1", b"key")
        assert where.topic == topic
        assert where.offset == 0
        assert len(await producer.partitions_for(topic)) >= 1


@pytest.fixture
def makes_no_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A Rota that creates no topic when it is asked for one."""
    if os.environ.get("ROTA_BOOTSTRAP"):
        pytest.skip("the given broker creates topics")
    monkeypatch.setitem(PROPERTIES, "auto.create.topics.enable", "false")
    with broker(tmp_path) as address:
        yield address


async def test_an_unknown_topic_raises_after_max_block_ms(makes_no_topics: str, topic: str) -> None:
    async with producing(makes_no_topics, max_block_ms=200) as producer:
        with pytest.raises(TimedOut, match=f"{topic}.*200 ms.*UNKNOWN_TOPIC_OR_PARTITION"):
            await producer.send(topic, b"1")
        create_topic(makes_no_topics, 1, name=topic)
        assert (await producer.send_and_wait(topic, b"1")).offset == 0


async def test_a_partition_that_does_not_exist_is_named(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 2)
    async with producing(bootstrap, max_block_ms=200) as producer:
        assert (await producer.send_and_wait(topic, b"1", partition=1)).partition == 1
        with pytest.raises(TimedOut, match=f"partition 2 of topic {topic}"):
            await producer.send(topic, b"1", partition=2)


async def test_a_name_that_no_topic_can_have(bootstrap: str) -> None:
    async with producing(bootstrap) as producer:
        with pytest.raises(BrokerError, match="INVALID_TOPIC"):
            await producer.send("no/such topic", b"1")


@pytest.mark.parametrize("does", ["close", "cut", "swallow", "refuse"])
async def test_a_lost_answer_makes_no_duplicate(bootstrap: str, does: str) -> None:
    topic = create_topic(bootstrap, 1)
    async with (
        FaultProxy(bootstrap, nodes=1) as proxy,
        producing(proxy.bootstrap, batch_size=500, request_timeout_ms=400) as producer,
    ):
        await producer.send_and_wait(topic, b"000")
        more = {} if does == "cut" else {"after": True}
        if does == "refuse":
            more |= {"code": int(ErrorCode.REQUEST_TIMED_OUT)}
        fault = getattr(proxy, does)(PRODUCE, **more)
        deliveries = [await producer.send(topic, b"%03d" % at + b"x" * 100) for at in range(1, 100)]
        assert [(await item).offset for item in deliveries] == list(range(1, 100))
        await fault.happened()
    found = await read(bootstrap, topic, 100)
    assert [int(found[0, at].value()[:3]) for at in range(100)] == list(range(100))


async def test_a_leader_that_moves_is_followed_and_order_kept(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    async with (
        FaultProxy(bootstrap, nodes=3) as proxy,
        producing(proxy.bootstrap, batch_size=300, linger_ms=0) as producer,
    ):
        deliveries = []
        for at in range(300):
            deliveries.append(await producer.send(topic, b"%03d" % at + b"x" * 50, partition=0))
            if at % 60 == 59:
                proxy.lead(TopicPartition(topic, 0), at // 60 % 3 + 1)
                await deliveries[-1]
        assert [(await item).offset for item in deliveries] == list(range(300))
    found = await read(bootstrap, topic, 300)
    assert [int(found[0, at].value()[:3]) for at in range(300)] == list(range(300))


@pytest.mark.parametrize("idle_ms", [300_000, 200], ids=["kept", "forgotten"])
async def test_a_producer_that_idles_does_not_create_a_deleted_topic_again(bootstrap: str, idle_ms: int) -> None:
    topic = unique("topic")
    async with (
        Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin,
        producing(bootstrap, metadata_max_age_ms=20, metadata_max_idle_ms=idle_ms) as producer,
    ):
        await producer.send_and_wait(topic, b"1")  # creates it
        await admin.delete_topics([topic])
        read_at = set()
        async with asyncio.timeout(PATIENCE_S):
            while len(read_at) < 5 or (idle_ms < 1_000 and producer._topics.routes):
                read_at.add(producer._cluster.metadata.at)
                await asyncio.sleep(0.01)
        assert topic not in await admin.list_topics()
        assert (await producer.send_and_wait(topic, b"2")).offset == 0, "a record creates it"


async def test_ten_thousand_keyed_records_without_lingering(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 6)
    async with producing(bootstrap, linger_ms=0) as producer:
        deliveries = []
        for at in range(10_000):
            deliveries.append(await producer.send(topic, b"%05d" % at, b"key%d" % (at % 100)))
            if at % 20 == 0:
                await asyncio.sleep(0)
        where: list[RecordMetadata] = [await item for item in deliveries]
    offsets: dict[int, list[int]] = {}
    for item in where:
        offsets.setdefault(item.partition, []).append(item.offset)
    assert all(found == list(range(len(found))) for found in offsets.values())
    assert sum(map(len, offsets.values())) == 10_000
