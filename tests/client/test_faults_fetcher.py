"""Fetching through the fault proxy: leaders that move, answers that are lost or late, every retriable code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.fault_proxy import FaultProxy
from tests.client.filled import EACH, PARTITIONS

from rota.client.config import ConsumerConfig
from rota.client.consumer.fetcher import Fetcher
from rota.client.consumer.positions import Positions
from rota.client.errors import BrokerError, CorruptRecords, KafkaError, OffsetOutOfRange
from rota.client.network.cluster import Cluster
from rota.client.types import ConsumerRecord, TopicPartition

FETCH = 1
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "fetch_max_wait_ms": 100,
}


class Reading:
    """A fetcher, and what came out of it, checked as it comes: in order, nothing twice, nothing left out."""

    def __init__(self, fetcher: Fetcher, positions: Positions, topic: str) -> None:
        self.fetcher, self.positions = fetcher, positions
        self.partitions = [TopicPartition(topic, at) for at in range(PARTITIONS)]
        self.read = dict.fromkeys(self.partitions, 0)

    def took(self, records: dict[TopicPartition, list[ConsumerRecord]]) -> None:
        for partition, found in records.items():
            for record in found:
                assert record.offset == self.read[partition]
                assert record.value == str(record.offset).encode()
                self.read[partition] += 1

    async def until(self, each: int = EACH, *, at_once: int = 7) -> None:
        async with asyncio.timeout(20):
            while min(self.read.values()) < each:
                taken = self.fetcher.take(at_once)
                self.took(taken)
                if not taken:
                    await self.fetcher.wait()


@asynccontextmanager
async def reading(proxy: FaultProxy, topic: str, **more: Any) -> AsyncIterator[Reading]:
    config = ConsumerConfig(bootstrap_servers=proxy.bootstrap, **QUICK | more)
    cluster = Cluster(config)
    await cluster.start()
    cluster.set_topics([topic])
    await cluster.until(lambda known: known.partitions(topic), what="the topic")
    positions = Positions()
    fetcher = Fetcher(cluster, config, positions)
    its = Reading(fetcher, positions, topic)
    positions.assign(its.partitions)
    for partition in its.partitions:
        positions.seek(partition, 0)
    fetcher.start()
    try:
        yield its
    finally:
        await fetcher.close()
        await cluster.close()


async def test_all_is_read_through_all_nodes(proxy: FaultProxy, full: str) -> None:
    async with reading(proxy, full) as its:
        await its.until()
        assert all(proxy.request_count(FETCH, node) for node in proxy.brokers)


async def test_leaders_that_move_in_mid_stream_are_followed(proxy: FaultProxy, full: str) -> None:
    async with reading(proxy, full, max_partition_fetch_bytes=200) as its:
        for step in range(1, 7):
            await its.until(step * 4, at_once=2)
            for partition in its.partitions:
                proxy.lead(partition, 1 + (partition.partition + step) % 3)
        await its.until()


@pytest.mark.parametrize("sends_leaders", [True, False], ids=["sent by the broker", "read in metadata"])
async def test_a_leader_that_moves_is_found(proxy: FaultProxy, full: str, sends_leaders: bool) -> None:
    proxy.table.sends_leaders = sends_leaders
    async with reading(proxy, full, max_partition_fetch_bytes=200) as its:
        await its.until(3, at_once=1)
        proxy.lead(its.partitions[0], 3)
        await its.until()


async def test_metadata_that_lags_delays_and_loses_nothing(proxy: FaultProxy, full: str) -> None:
    proxy.table.sends_leaders = False
    async with reading(proxy, full, max_partition_fetch_bytes=200) as its:
        await its.until(3, at_once=1)
        proxy.serve_old_metadata()
        proxy.lead(its.partitions[0], 2)
        requests = proxy.request_count(3)
        going_on = asyncio.ensure_future(its.until())
        async with asyncio.timeout(20):
            while proxy.request_count(3) < requests + 3:
                await asyncio.sleep(0.01)
        proxy.serve_current_metadata()
        await going_on


PASSING = (3, 5, 6, 7, 9, 56, 70, 71, 72, 74, 75, 78, 100, 103, 106)


@pytest.mark.parametrize("code", PASSING, ids=str)
async def test_a_code_that_passes_is_not_seen(rota_proxy: FaultProxy, rota_full: str, code: int) -> None:
    async with reading(rota_proxy, rota_full, max_partition_fetch_bytes=200) as its:
        await its.until(2, at_once=1)
        refused = rota_proxy.refuse(FETCH, code, times=2)
        await its.until()
        assert refused.hits == 2


@pytest.mark.parametrize("code", [29, 76, 87], ids=str)
async def test_a_fatal_error_is_raised_and_reading_can_continue(
    rota_proxy: FaultProxy, rota_full: str, code: int
) -> None:
    async with reading(rota_proxy, rota_full, max_partition_fetch_bytes=200) as its:
        await its.until(2, at_once=1)
        refused = rota_proxy.refuse(FETCH, code)
        with pytest.raises(BrokerError) as caught:
            await its.until()
        assert caught.value.code == code
        assert refused.hits == 1
        failures = 0
        while failures < PARTITIONS:  # each partition of that fetch tells it once
            try:
                await its.until()
                break
            except BrokerError:
                failures += 1


@pytest.mark.parametrize(("code", "raised"), [(1, OffsetOutOfRange), (2, CorruptRecords)])
async def test_without_a_reset_policy_the_error_is_raised(
    rota_proxy: FaultProxy, rota_full: str, code: int, raised: type[KafkaError]
) -> None:
    async with reading(rota_proxy, rota_full, auto_offset_reset="none") as its:
        rota_proxy.refuse(FETCH, code, times=None)
        with pytest.raises(raised):
            await its.until()


async def test_answers_that_are_lost_cut_or_late_are_fetched_again(proxy: FaultProxy, full: str) -> None:
    async with reading(proxy, full, max_partition_fetch_bytes=200) as its:
        for at, fault in enumerate(
            (
                lambda: proxy.close(FETCH),
                lambda: proxy.close(FETCH, after=True),
                lambda: proxy.cut(FETCH),
                lambda: proxy.hold(FETCH, after=True),
            )
        ):
            happens = fault()
            going_on = asyncio.ensure_future(its.until(5 * (at + 1), at_once=2))
            await happens.happened()
            happens.release()
            await going_on
        await its.until()


async def test_an_unresponsive_broker_is_disconnected(proxy: FaultProxy, full: str) -> None:
    async with reading(proxy, full, max_partition_fetch_bytes=200, request_timeout_ms=300) as its:
        await its.until(2, at_once=1)
        silent = proxy.swallow(FETCH, node=1)
        await its.until()
        assert silent.hits == 1


async def test_brokers_that_stop_and_start_are_read_on(proxy: FaultProxy, full: str) -> None:
    async with reading(proxy, full, max_partition_fetch_bytes=200) as its:
        for step in range(1, 4):
            await its.until(step * 5, at_once=2)
            await proxy.stop_brokers()
            its.took(its.fetcher.take(100))
            await proxy.start_brokers()
        await its.until()


async def test_waits_that_are_cancelled_lose_nothing(proxy: FaultProxy, full: str) -> None:
    async with reading(proxy, full, max_partition_fetch_bytes=200) as its:
        async with asyncio.timeout(20):
            while min(its.read.values()) < EACH:
                waiting = asyncio.ensure_future(its.fetcher.wait())
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait({waiting})
                its.took(its.fetcher.take(3))
