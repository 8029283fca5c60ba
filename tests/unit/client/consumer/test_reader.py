"""Reading partitions by hand, from brokers whose answers are written by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.client.consumer.kit import P0, P1, TOPIC, Feed, batch, marker, transactional
from tests.unit.client.consumer.test_catalog import topic
from tests.unit.client.network.scripted import eventually

from rota.client.config import ClientConfig
from rota.client.consumer.reader import PartitionReader
from rota.client.errors import BrokerError, ConfigError, CorruptRecords, IllegalUse, OffsetOutOfRange, UnknownTopic
from rota.client.offsets.list_offsets import EARLIEST, LATEST
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import AbortedTransaction, PartitionData
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponseTopic
from rota.protocol.records.record import read_all


@asynccontextmanager
async def reader(feed: Feed, *, timeout_ms: int = 5_000, **how: Any) -> AsyncIterator[PartitionReader]:
    for broker in feed.brokers:
        await broker.listen()
    config = ClientConfig(
        bootstrap_servers=feed.brokers[0].address, default_api_timeout_ms=timeout_ms, retry_backoff_ms=1
    )
    try:
        async with PartitionReader(config, **how) as reader:
            yield reader
    finally:
        for broker in feed.brokers:
            await broker.stop()


async def limited(reader: PartitionReader, topic: str, timeout_ms: int) -> None:
    """Wait until the metadata has the topic, then limit the time of the calls that follow.

    A connection and a first answer may take longer than this limit on a busy machine.
    """
    cluster = reader._cluster
    cluster.set_topics({topic})
    await eventually(lambda: topic in cluster.metadata.topics)
    cluster.config = replace(cluster.config, default_api_timeout_ms=timeout_ms)


def refusal(code: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=0, error_code=code)


async def test_partitions_have_their_leaders_and_replicas() -> None:
    feed = Feed(2)
    feed.leaders[1] = 1
    async with reader(feed) as ours:
        found = await ours.partitions(TOPIC)
        assert [(item.partition, item.leader, item.replicas) for item in found] == [(0, 0, (0, 1)), (1, 1, (0, 1))]
        assert (await ours.leader(P1)).port == feed.brokers[1].port
        assert {item.id for item in ours.brokers} == {0, 1}


async def test_a_record_is_read_as_often_as_one_likes() -> None:
    feed = Feed(1)
    feed.write(0, batch(0, 5), batch(5, 5))
    async with reader(feed) as ours:
        once = await ours.fetch(P0, 3)
        assert [item.offset for item in once.records] == list(range(3, 10))
        assert once == await ours.fetch(P0, 3)
        assert (once.next_offset, once.high_watermark, once.log_start_offset) == (10, 10, 0)
        assert (once.leader, once.leader_epoch) == (0, 0)


async def test_a_fetch_request_has_the_limits_of_the_call() -> None:
    feed = Feed(1)
    feed.write(0, batch(0, 5))
    async with reader(feed, isolation_level="read_committed") as ours:
        await ours.fetch(P0, 2, max_bytes=77, max_wait_ms=9, min_bytes=3)
        [requests] = feed.requests()
        [wanted] = requests.topics[0].partitions
        assert (requests.max_bytes, requests.max_wait_ms, requests.min_bytes, requests.isolation_level) == (77, 9, 3, 1)
        assert (wanted.fetch_offset, wanted.partition_max_bytes, wanted.current_leader_epoch) == (2, 77, 0)
        assert requests.session_epoch == -1


async def test_nothing_new_is_nothing_given() -> None:
    feed = Feed(1)
    async with reader(feed) as ours:
        found = await ours.fetch(P0, 0, max_wait_ms=1)
        assert (found.records, found.next_offset) == ([], 0)


async def test_raw_batches_are_those_of_the_log() -> None:
    feed = Feed(1)
    first, second = batch(0, 5), batch(5, 5, epoch=3)
    feed.instead[0] = [PartitionData(partition_index=0, records=first + second + batch(10, 5)[:70], high_watermark=15)]
    async with reader(feed) as ours:
        found = await ours.fetch_raw(P0, 2)
        assert bytes(found.batches) == first + second
        assert [item.offset for item in read_all(found.batches)] == list(range(10))
        assert (found.next_offset, found.leader_epoch, found.high_watermark, found.aborted) == (10, 3, 15, ())
        empty = await ours.fetch_raw(P0, 0, max_wait_ms=1)
        assert (bytes(empty.batches), empty.next_offset) == (b"", 0)


async def test_raw_bytes_that_are_no_batches_are_refused() -> None:
    feed = Feed(1)
    feed.instead[0] = [PartitionData(partition_index=0, records=b"\0" * 100)]
    async with reader(feed) as ours:
        with pytest.raises(CorruptRecords, match="orders-0 at offset 2"):
            await ours.fetch_raw(P0, 2)


async def test_read_committed_hides_aborted_records() -> None:
    feed = Feed(1)
    log = transactional(0, 2) + marker(2, 0) + batch(3, 1)
    aborted = (AbortedTransaction(producer_id=7, first_offset=0),)
    answer = PartitionData(partition_index=0, records=log, aborted_transactions=aborted)
    feed.instead[0] = [answer, answer]
    async with reader(feed, isolation_level="read_committed") as ours:
        assert [item.offset for item in (await ours.fetch(P0, 0)).records] == [3]
        assert (await ours.fetch_raw(P0, 0)).aborted == aborted


async def test_offsets_are_found() -> None:
    feed = Feed(1)
    feed.write(0, batch(3, 5), batch(8, 2))
    async with reader(feed) as ours:
        assert await ours.offset_at(P0, EARLIEST) == 3
        assert await ours.offset_at(P0, LATEST) == 10
        assert await ours.offset_at(P0, 1_008) == 8
        assert await ours.offset_at(P0, 9_999) == 10, "nothing is so late: the end"


async def test_records_are_read_in_order_up_to_the_stop_offset() -> None:
    feed = Feed(1)
    feed.write(0, *(batch(base, 5) for base in range(3, 103, 5)))
    async with reader(feed) as ours:
        assert [item.offset async for item in ours.read(P0, EARLIEST, LATEST)] == list(range(3, 103))
        assert [item.offset async for item in ours.read(P0, 50, 61)] == list(range(50, 61))
        assert [item.offset async for item in ours.read(P0, 50, 50)] == []


async def test_without_a_stop_offset_it_waits_for_new_records() -> None:
    feed = Feed(1)
    feed.write(0, batch(0, 2))
    seen = []
    async with reader(feed) as ours, asyncio.timeout(10):
        async for record in ours.read(P0, 0):
            seen.append(record.offset)
            if len(seen) == 2:
                feed.write(0, batch(2, 2))
            if len(seen) == 4:
                break
    assert seen == [0, 1, 2, 3]


async def test_a_leader_that_moves_is_followed() -> None:
    feed = Feed(1)
    feed.write(0, batch(0, 2))
    async with reader(feed) as ours:
        assert (await ours.fetch(P0, 0)).leader == 0
        feed.leaders[0], feed.epochs[0] = 1, 1
        feed.instead[0] = [refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)]
        again = await ours.fetch(P0, 0)
        assert again.leader == 1
        assert [item.offset for item in again.records] == [0, 1]


async def test_transient_errors_are_retried() -> None:
    feed = Feed(1)
    feed.write(0, batch(0, 2))
    async with reader(feed) as ours:
        codes = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR)
        feed.instead[0] = [refusal(code) for code in codes]
        assert len((await ours.fetch(P0, 0)).records) == 2
        feed.brokers[0].drop()
        assert len((await ours.fetch(P0, 0)).records) == 2


async def test_out_of_range_names_the_bounds_of_the_log() -> None:
    feed = Feed(1)
    feed.write(0, batch(3, 5))
    feed.instead[0] = [refusal(ErrorCode.OFFSET_OUT_OF_RANGE)]
    async with reader(feed) as ours:
        with pytest.raises(OffsetOutOfRange, match=r"offset 99 of orders-0 .* begins at 3 and ends at 8") as caught:
            await ours.fetch(P0, 99)
        assert caught.value.positions == {P0: 99}


async def test_a_fatal_error_is_raised() -> None:
    feed = Feed(1)
    feed.instead[0] = [refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    async with reader(feed) as ours:
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
            await ours.fetch(P0, 0)
        assert (caught.value.topic, caught.value.partition) == (TOPIC, 0)


async def test_a_topic_that_does_not_appear_is_unknown() -> None:
    feed = Feed(1)
    unknown = MetadataResponseTopic(name="other", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for broker in feed.brokers:
        broker.on(MetadataRequest, lambda _: feed.brokers[0].metadata(unknown))
    async with reader(feed) as ours:
        await limited(ours, "other", 50)
        with pytest.raises(UnknownTopic, match="other"):
            await ours.partitions("other")
        with pytest.raises(UnknownTopic, match="other"):
            await ours.fetch(TopicPartition("other", 0), 0)


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION])
async def test_a_topic_that_the_metadata_refuse_is_raised_at_once(code: ErrorCode) -> None:
    """Law C13; and asked for again by the next call, which may be allowed."""
    feed = Feed(1)
    answers = [MetadataResponseTopic(name="other", error_code=code)]
    async with reader(feed, timeout_ms=60_000) as ours:
        feed.brokers[0].on(MetadataRequest, lambda _: feed.brokers[0].metadata(*answers))
        for look in (ours.partitions("other"), ours.fetch(TopicPartition("other", 0), 0)):
            with pytest.raises(BrokerError, match=code.name):
                await asyncio.wait_for(look, 10)
        answers[0] = topic("other", 0)
        assert len(await asyncio.wait_for(ours.partitions("other"), 10)) == 1


async def test_a_partition_that_stays_away_is_unknown() -> None:
    feed = Feed(1)
    async with reader(feed) as ours:
        await ours.leader(P0)
        await limited(ours, TOPIC, 60)
        feed.instead[0] = [refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for _ in range(10_000)]
        with pytest.raises(UnknownTopic, match="orders-0"):
            await ours.fetch(P0, 0)


async def test_corrupt_records_are_raised() -> None:
    feed = Feed(1)
    raw = bytearray(batch(0, 2))
    raw[-1] ^= 1
    feed.write(0, bytes(raw))
    async with reader(feed) as ours:
        with pytest.raises(CorruptRecords):
            await ours.fetch(P0, 0)


def test_settings_are_checked() -> None:
    PartitionReader.from_properties({"bootstrap.servers": "h:1"})
    with pytest.raises(ConfigError):
        PartitionReader.from_properties({"bootstrap.server": "h:1"})
    with pytest.raises(IllegalUse, match="read_committed"):
        PartitionReader(ClientConfig(bootstrap_servers="h:1"), isolation_level="committed")


async def test_a_lower_high_watermark_of_a_new_leader_delays_a_read() -> None:
    """The new leader of a partition may know of a lower high watermark than the old one for a while."""
    feed = Feed(1)
    feed.write(0, batch(0, 5), batch(5, 5))
    behind = PartitionData(partition_index=0, high_watermark=2, last_stable_offset=2, log_start_offset=0)
    async with reader(feed) as ours:
        feed.instead[0] = [behind, behind]
        assert [record.offset async for record in ours.read(P0, 5, stop=LATEST)] == list(range(5, 10))
        feed.instead[0] = [behind]
        late = await ours.fetch(P0, 5)
        assert (late.records, late.next_offset, late.high_watermark) == ([], 5, 2)
