"""The low-level consumer (R16) on a real broker: no group, everything by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.client.fault_proxy import FaultProxy
from tests.interop.kit import PATIENCE_S, create_topic, produce, produce_to

from rota.client.config import ClientConfig
from rota.client.consumer.reader import PartitionReader
from rota.client.errors import OffsetOutOfRange, UnknownTopic
from rota.client.offsets.list_offsets import EARLIEST, LATEST
from rota.client.types import TopicPartition
from rota.protocol.records.record import read_all

FETCH = 1


def write(bootstrap: str, topic: str, values: list[bytes], **settings: object) -> None:
    """In order, also when a topic is so new that the first batches are refused."""
    produce(bootstrap, topic, values, **{"enable.idempotence": True} | settings)


@pytest.fixture
async def reader(bootstrap: str) -> AsyncIterator[PartitionReader]:
    async with PartitionReader(ClientConfig(bootstrap_servers=bootstrap, retry_backoff_ms=10)) as reader:
        yield reader


@pytest.fixture(scope="module")
def full(bootstrap: str) -> str:
    """Two partitions of fifty records; the values of partition 0 are 0, 2, 4, …"""
    topic = create_topic(bootstrap, 2)
    write(bootstrap, topic, [str(number).encode() for number in range(100)], **{"batch.num.messages": 7})
    return topic


async def test_partitions_have_leaders_and_replicas(reader: PartitionReader, full: str) -> None:
    partitions = await reader.partitions(full)
    assert [item.partition for item in partitions] == [0, 1]
    leader = await reader.leader(TopicPartition(full, 1))
    assert leader.id == partitions[1].leader
    assert leader.id in partitions[1].replicas
    assert leader in reader.brokers


async def test_a_record_is_read_many_times(reader: PartitionReader, full: str) -> None:
    partition = TopicPartition(full, 0)
    for _ in range(5):
        async for record in reader.read(partition, 7, 8):
            assert (record.offset, record.value) == (7, b"14")
    first = await reader.fetch(partition, 7)
    assert first.records[0].value == b"14"
    assert first == await reader.fetch(partition, 7)


async def test_only_some_partitions_are_read(reader: PartitionReader, full: str) -> None:
    found = [record async for record in reader.read(TopicPartition(full, 1), EARLIEST, LATEST)]
    assert {item.partition for item in found} == {1}
    assert [item.value for item in found] == [str(number).encode() for number in range(1, 100, 2)]


async def test_reading_begins_at_an_offset_or_a_time(reader: PartitionReader, bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    partition = TopicPartition(topic, 0)
    produce_to(bootstrap, topic, 0, [b"early"])
    await asyncio.sleep(0.005)  # so that the clock of the records has moved on
    produce_to(bootstrap, topic, 0, [b"late", b"later"])
    early, late, _ = (await reader.fetch(partition, 0)).records
    assert early.timestamp < late.timestamp
    for time, offset in ((EARLIEST, 0), (early.timestamp, 0), (late.timestamp, 1), (LATEST, 3), (1 << 50, 3)):
        assert await reader.offset_at(partition, time) == offset
    start = await reader.offset_at(partition, late.timestamp)
    assert [item.value async for item in reader.read(partition, start, LATEST)] == [b"late", b"later"]


async def test_a_fetch_result_has_the_offsets_of_the_log(reader: PartitionReader, full: str) -> None:
    found = await reader.fetch(TopicPartition(full, 0), 10, max_bytes=1)
    assert found.records[0].offset == 10
    assert found.next_offset == found.records[-1].offset + 1 < 50, "about a batch, not all"
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (50, 50, 0)
    assert found.leader == (await reader.leader(TopicPartition(full, 0))).id
    end = await reader.fetch(TopicPartition(full, 0), 50, max_wait_ms=1)
    assert (end.records, end.next_offset) == ([], 50)


async def test_raw_batches_contain_the_records_of_fetch(reader: PartitionReader, full: str) -> None:
    partition, offset, values = TopicPartition(full, 0), 0, []
    while offset < 50:
        raw = await reader.fetch_raw(partition, offset, max_bytes=200)
        values += [item.value for item in read_all(raw.batches) if item.offset >= offset]
        assert raw.next_offset > offset
        offset = raw.next_offset
    assert values == [item.value async for item in reader.read(partition, 0, 50)]


async def test_read_waits_for_new_records(reader: PartitionReader, bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    values = []
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.to_thread(produce_to, bootstrap, topic, 0, [b"0"])
        async for record in reader.read(TopicPartition(topic, 0), EARLIEST):
            values.append(record.value)
            if len(values) == 3:
                break
            await asyncio.to_thread(produce_to, bootstrap, topic, 0, [b"%d" % len(values)])
    assert values == [b"0", b"1", b"2"]


async def test_an_offset_out_of_range_names_the_bounds_of_the_log(reader: PartitionReader, full: str) -> None:
    with pytest.raises(OffsetOutOfRange, match="begins at 0 and ends at 50"):
        await reader.fetch(TopicPartition(full, 0), 51)


async def test_an_unknown_topic_raises(bootstrap: str, topic: str) -> None:
    config = ClientConfig(bootstrap_servers=bootstrap, default_api_timeout_ms=2_000)
    async with PartitionReader(config) as reader:
        with pytest.raises(UnknownTopic, match=topic):
            await reader.partitions(topic)
        with pytest.raises(UnknownTopic, match=topic):
            await reader.fetch(TopicPartition(topic, 0), 0)


async def test_leaders_that_move_are_noticed_and_followed(bootstrap: str, full: str) -> None:
    partition = TopicPartition(full, 0)
    async with FaultProxy(bootstrap, nodes=3) as proxy:
        config = ClientConfig(bootstrap_servers=proxy.bootstrap, retry_backoff_ms=10, reconnect_backoff_ms=10)
        async with PartitionReader(config) as reader:
            for node in (2, 3, 1, 2):
                proxy.lead(partition, node)
                found = await reader.fetch(partition, 20, max_bytes=300)
                assert found.records[0].value == b"40"
                assert found.leader == node
            await proxy.stop_brokers(2)
            proxy.lead(partition, 3)
            assert (await reader.fetch(partition, 20)).leader == 3
            assert [item.offset async for item in reader.read(partition, 40, LATEST)] == list(range(40, 50))


async def test_lost_responses_are_requested_again(bootstrap: str, full: str) -> None:
    partition = TopicPartition(full, 0)
    async with FaultProxy(bootstrap, nodes=1) as proxy:
        config = ClientConfig(
            bootstrap_servers=proxy.bootstrap, retry_backoff_ms=10, reconnect_backoff_ms=10, request_timeout_ms=400
        )
        async with PartitionReader(config) as reader:
            for fault in (
                proxy.close(FETCH),
                proxy.close(FETCH, after=True),
                proxy.cut(FETCH),
                proxy.swallow(FETCH),
                proxy.refuse(FETCH, 6),
            ):
                assert (await reader.fetch(partition, 20, max_wait_ms=10)).records[0].value == b"40"
                assert fault.hits == 1
