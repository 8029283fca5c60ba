"""Members of a group behind the fault proxy: coordinators that move, load, fall silent; leaders that move; every
code that passes, and those that do not.

Law: what was written is handed out in order, none left out, also while the coordinator is looked for (R11).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.fault_proxy import FaultProxy
from tests.client.filled import EACH, PARTITIONS

from rota.client.config import ConsumerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import BrokerError, CommitFailed, FencedInstance, IllegalUse, KafkaError, RebalanceInProgress
from rota.client.types import ConsumerRecord, TopicPartition

FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 1, 2, 8, 9, 10
JOIN, HEARTBEAT, LEAVE, SYNC = 11, 12, 13, 14
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "fetch_max_wait_ms": 50,
    "max_partition_fetch_bytes": 200,
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 50,
    "auto_commit_interval_ms": 50,
}


class Reading:
    """A consumer and what it was handed, checked as it comes: in order, nothing twice, nothing left out."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self.consumer = consumer
        self.partitions = [TopicPartition(topic, at) for at in range(PARTITIONS)]
        self.read = dict.fromkeys(self.partitions, 0)

    def took(self, records: Iterable[ConsumerRecord]) -> None:
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            assert record.offset == self.read[partition]
            assert record.value == str(record.offset).encode()
            self.read[partition] += 1

    async def poll(self, at_once: int = 7) -> None:
        for records in (await self.consumer.getmany(at_once, 200)).values():
            self.took(records)

    async def until(self, each: int = EACH, *, at_once: int = 7) -> None:
        async with asyncio.timeout(20):
            while min(self.read.values()) < each:
                await self.poll(at_once)

    async def on(self) -> None:
        """Polls until something is raised."""
        async with asyncio.timeout(20):
            while True:
                await self.poll()


@asynccontextmanager
async def member(proxy: FaultProxy, topic: str, group: str, **more: Any) -> AsyncIterator[Reading]:
    config = ConsumerConfig(bootstrap_servers=proxy.bootstrap, group_id=group, **QUICK | more)
    async with Consumer(config) as consumer:
        consumer.subscribe([topic])
        yield Reading(consumer, topic)


async def test_a_moved_coordinator_is_followed_while_reading_continues(
    proxy: FaultProxy, full: str, group: str
) -> None:
    """R11: the member looks for the coordinator, keeps its generation, and reads on meanwhile."""
    async with member(proxy, full, group) as its:
        await its.until(2, at_once=1)
        generation = its.consumer.group.generation_id
        for step, node in enumerate((1, 2, 3)):
            proxy.coordinate(group, node)
            heartbeats = proxy.request_count(HEARTBEAT, node)
            await its.until(2 + 8 * (step + 1), at_once=2)
            async with asyncio.timeout(20):
                while proxy.request_count(HEARTBEAT, node) == heartbeats:
                    await asyncio.sleep(0.01)
        await its.until()
        assert its.consumer.group.generation_id == generation
        await its.consumer.commit()
        committed = await its.consumer.committed()
        assert {at: item.offset for at, item in committed.items() if item} == its.read


async def test_reading_continues_without_a_coordinator(proxy: FaultProxy, full: str, group: str) -> None:
    """R11, R12: a coordinator that cannot be found is no reason to stop."""
    async with member(proxy, full, group) as its:
        await its.until(2, at_once=1)
        missing = proxy.refuse(FIND_COORDINATOR, 15, times=None)
        proxy.refuse(HEARTBEAT, 16, times=1)
        await missing.happened()
        await its.until(at_once=2)
        missing.end()
        await its.consumer.commit()


async def test_an_unresponsive_coordinator_is_left_after_the_session_timeout(
    proxy: FaultProxy, full: str, group: str
) -> None:
    """R12: half-open; the group's connection is dialled anew, where the coordinator is by then."""
    async with member(proxy, full, group, session_timeout_ms=1_000, request_timeout_ms=2_000) as its:
        await its.until(2, at_once=1)
        silent = proxy.swallow(HEARTBEAT)
        await silent.happened()
        heartbeats = proxy.request_count(HEARTBEAT)
        proxy.coordinate(group, 1)
        async with asyncio.timeout(20):
            while proxy.request_count(HEARTBEAT, 1) < 2:
                await its.consumer.getmany(1, 50)
        assert proxy.request_count(HEARTBEAT) > heartbeats


AGAIN = {
    JOIN: (14, 15, 16, 79),
    SYNC: (14, 15, 16, 27),
    HEARTBEAT: (14, 15, 16, 27),
    OFFSET_COMMIT: (7, 14, 15, 16),
    OFFSET_FETCH: (14, 15, 16, 88),
    LIST_OFFSETS: (5, 6, 7, 74, 75, 78),
    FIND_COORDINATOR: (15,),
}


@pytest.mark.parametrize(("api", "code"), [(api, code) for api, codes in AGAIN.items() for code in codes])
async def test_a_code_that_passes_is_not_seen(
    rota_proxy: FaultProxy, rota_full: str, group: str, api: int, code: int
) -> None:
    refused = rota_proxy.refuse(api, code, times=1)
    async with member(rota_proxy, rota_full, group) as its:
        await its.until(at_once=20)
        async with asyncio.timeout(20):
            while not refused.hits:
                await its.poll()
        await its.consumer.commit()
        committed = await its.consumer.committed()
        assert {at: item.offset for at, item in committed.items() if item} == its.read
    assert refused.hits == 1


@pytest.mark.parametrize("api", [JOIN, SYNC, HEARTBEAT, OFFSET_FETCH, FIND_COORDINATOR, LIST_OFFSETS, OFFSET_COMMIT])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_connection_that_breaks_is_not_seen(
    rota_proxy: FaultProxy, rota_full: str, group: str, api: int, after: bool
) -> None:
    broken = rota_proxy.close(api, after=after)
    async with member(rota_proxy, rota_full, group) as its:
        await its.until(at_once=20)
        async with asyncio.timeout(20):
            while not broken.hits:
                await its.poll()
        await its.consumer.commit()
        committed = await its.consumer.committed()
        assert {at: item.offset for at, item in committed.items() if item} == its.read


@pytest.mark.parametrize("code", [22, 25], ids=str)
async def test_a_removed_member_joins_again(proxy: FaultProxy, full: str, group: str, code: int) -> None:
    more = {"enable_auto_commit": False, "session_timeout_ms": 1_000}
    async with member(proxy, full, group, **more) as its:
        await its.until(2, at_once=1)
        await its.consumer.commit()
        committed = {at: item.offset for at, item in (await its.consumer.committed()).items() if item}
        joins = proxy.request_count(JOIN)
        refused = proxy.refuse(HEARTBEAT, code)
        await refused.happened()
        its.read = {}
        async with asyncio.timeout(20):
            while proxy.request_count(JOIN) == joins or not its.read.keys() >= committed.keys():
                for partition, records in (await its.consumer.getmany(1, 200)).items():
                    its.read.setdefault(partition, records[0].offset)
                if proxy.request_count(JOIN) == joins:
                    its.read.clear()
        assert its.read == committed


FATAL: dict[tuple[int, int], type[KafkaError]] = {
    (FIND_COORDINATOR, 30): BrokerError,
    (JOIN, 23): KafkaError,
    (JOIN, 24): BrokerError,
    (JOIN, 26): BrokerError,
    (JOIN, 30): BrokerError,
    (JOIN, 81): BrokerError,
    (SYNC, 30): BrokerError,
    (HEARTBEAT, 30): BrokerError,
    (OFFSET_FETCH, 30): BrokerError,
    (FETCH, 29): BrokerError,
}


@pytest.mark.parametrize(("api", "code"), FATAL)
async def test_a_code_that_does_not_pass_is_raised(
    rota_proxy: FaultProxy, rota_full: str, group: str, api: int, code: int
) -> None:
    async with member(rota_proxy, rota_full, group) as its:
        rota_proxy.refuse(api, code, times=1)
        with pytest.raises(FATAL[api, code]):
            await its.on()


async def test_a_fenced_member_raises_on_every_call(proxy: FaultProxy, full: str, group: str) -> None:
    async with member(proxy, full, group, group_instance_id="i") as its:
        await its.until(2, at_once=1)
        proxy.refuse(HEARTBEAT, 82)
        with pytest.raises(FencedInstance):
            await its.on()
        with pytest.raises(FencedInstance):
            await its.consumer.getmany(1, 1_000)


@pytest.mark.parametrize(
    ("code", "raised"), [(22, CommitFailed), (25, CommitFailed), (27, RebalanceInProgress), (82, FencedInstance)]
)
async def test_a_commit_after_a_rebalance_raises(
    rota_proxy: FaultProxy, rota_full: str, group: str, code: int, raised: type[KafkaError]
) -> None:
    async with member(rota_proxy, rota_full, group, enable_auto_commit=False) as its:
        await its.until(2, at_once=1)
        rota_proxy.refuse(OFFSET_COMMIT, code)
        with pytest.raises(raised):
            await its.consumer.commit()


async def test_leaders_and_coordinators_that_move_all_the_time(proxy: FaultProxy, full: str, group: str) -> None:
    async with member(proxy, full, group) as its:
        for step in range(1, 9):
            await its.until(step * 3, at_once=2)
            for partition in its.partitions:
                proxy.lead(partition, 1 + (partition.partition + step) % 3)
            proxy.coordinate(group, 1 + step % 3)
        await its.until()


async def test_brokers_that_stop_all_at_once_and_start(proxy: FaultProxy, full: str, group: str) -> None:
    async with member(proxy, full, group) as its:
        for step in range(1, 4):
            await its.until(step * 4, at_once=2)
            await proxy.stop_brokers()
            await its.poll()
            await proxy.start_brokers()
        await its.until()


async def test_calls_that_are_cancelled_lose_nothing(proxy: FaultProxy, full: str, group: str) -> None:
    async with member(proxy, full, group) as its:
        turns = 0
        async with asyncio.timeout(20):
            while min(its.read.values()) < EACH:
                turns += 1
                call = asyncio.ensure_future(its.consumer.getmany(3, 1_000))
                for _ in range(turns % 7):
                    await asyncio.sleep(0)
                if turns % 5:
                    call.cancel()
                await asyncio.wait({call})
                if not call.cancelled():
                    for records in call.result().values():
                        its.took(records)
        await its.consumer.commit()


async def test_nothing_is_handed_out_while_a_callback_takes_its_time(proxy: FaultProxy, full: str, group: str) -> None:
    """A call ends only after the callback that runs inside it, whatever its time."""
    revoking, release = asyncio.Event(), asyncio.Event()

    async def on_revoked(_: tuple[TopicPartition, ...]) -> None:
        revoking.set()
        await release.wait()

    async with member(proxy, full, group, partition_assignment_strategy=("range",)) as its:
        its.consumer.subscribe([full], on_revoked=on_revoked)
        await its.until(2, at_once=1)
        its.consumer.enforce_rebalance()

        async def polls() -> None:
            while not revoking.is_set():
                await its.poll(1)

        polling = asyncio.create_task(polls())
        await asyncio.wait_for(revoking.wait(), 20)
        done, _ = await asyncio.wait({polling}, timeout=0.1)
        assert not done
        with pytest.raises(IllegalUse, match="polled already"):
            await its.consumer.getmany(1)
        release.set()
        await polling
        await its.until()


async def test_close_ends_in_time_with_frozen_brokers(proxy: FaultProxy, full: str, group: str) -> None:
    async with member(proxy, full, group) as its:
        await its.until(2, at_once=1)
        proxy.freeze()
        async with asyncio.timeout(10):
            await its.consumer.close(timeout_ms=300)
        proxy.thaw()
