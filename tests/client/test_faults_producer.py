"""A producer behind the fault proxy: answers that are lost, leaders that move, codes that pass or do not.

Law: what an idempotent producer sends lies in its partition once and in order, and every delivery tells the truth.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.chaos.line import Line
from tests.chaos.requests import records_of
from tests.client.fault_proxy import FaultProxy
from tests.interop.kit import create_topic

from rota.client.config import ProducerConfig
from rota.client.errors import DeliveryFailed, TimedOut
from rota.client.producer.delivery import Delivery
from rota.client.producer.producer import Producer
from rota.client.types import TopicPartition

PRODUCE, METADATA, INIT_PRODUCER_ID = 0, 3, 22
PARTITIONS = 3
MANY = 60
QUICK: dict[str, Any] = {
    "linger_ms": 0,
    "batch_size": 200,  # a few records, so that several batches are under way
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "request_timeout_ms": 5_000,
    "delivery_timeout_ms": 30_000,
}


@pytest.fixture(scope="module")
def shared(bootstrap: str) -> str:
    return create_topic(bootstrap, PARTITIONS)


@pytest.fixture(scope="module")
def rota_shared(rota: str) -> str:
    return create_topic(rota, PARTITIONS)


class Writing:
    """A producer that numbers its records; a topic of its own or a shared one with a prefix of its own."""

    def __init__(self, producer: Producer, bootstrap: str, topic: str, mark: str) -> None:
        self.producer, self.bootstrap, self.topic, self.mark = producer, bootstrap, topic, mark
        self.partitions = [TopicPartition(topic, at) for at in range(PARTITIONS)]
        self.sent: list[tuple[int, bytes, Delivery]] = []

    async def write(self, count: int = MANY) -> None:
        for _ in range(count):
            number = len(self.sent)
            value = f"{self.mark}/{number}".encode()
            delivery = await self.producer.send(self.topic, value, partition=number % PARTITIONS)
            self.sent.append((number % PARTITIONS, value, delivery))
            if number % 7 == 0:
                await asyncio.sleep(0)

    async def check(self, *, once: bool = True) -> None:
        """Every delivery says where its record lies; the records lie in order, each once."""
        async with asyncio.timeout(20):
            await self.producer.flush()
        line = await Line.open(self.bootstrap)
        try:
            for at in range(PARTITIONS):
                log = await records_of(line, at, self.topic)
                mine = [value for value in log.values() if value.startswith(f"{self.mark}/".encode())]
                sent = [value for partition, value, _ in self.sent if partition == at]
                assert (mine if once else sorted(set(mine), key=mine.index)) == sent
                for partition, value, delivery in self.sent:
                    if partition == at:
                        assert log[delivery.result().offset] == value
        finally:
            await line.close()


@asynccontextmanager
async def writing(proxy: FaultProxy, bootstrap: str, topic: str, mark: str, **more: Any) -> AsyncIterator[Writing]:
    async with Producer(ProducerConfig(bootstrap_servers=proxy.bootstrap, **QUICK | more)) as producer:
        yield Writing(producer, bootstrap, topic, mark)


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


async def test_a_partition_that_was_given_is_taken(proxy: FaultProxy, bootstrap: str, shared: str, mark: str) -> None:
    """Also when it is the one that records without a key stick to."""
    async with writing(proxy, bootstrap, shared, mark, batch_size=0) as its:
        for _ in range(20):
            await its.producer.send_and_wait(shared, b"anywhere")
            await its.write(PARTITIONS)
        await its.check()


async def test_answers_that_are_lost_neither_double_nor_reorder(
    proxy: FaultProxy, bootstrap: str, shared: str, mark: str
) -> None:
    async with writing(proxy, bootstrap, shared, mark) as its:
        await its.write(10)
        for _ in range(3):
            lost = proxy.close(PRODUCE, after=True)
            await its.write()
            await lost.happened()
        await its.check()


@pytest.mark.parametrize("fault", ["close", "cut", "hold", "swallow"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_records_are_written_once_whatever_the_fault(
    proxy: FaultProxy, bootstrap: str, shared: str, mark: str, fault: str, after: bool
) -> None:
    async with writing(proxy, bootstrap, shared, mark, request_timeout_ms=300) as its:
        await its.write(10)
        happens = proxy.cut(PRODUCE) if fault == "cut" else getattr(proxy, fault)(PRODUCE, after=after)
        await its.write()
        await happens.happened()
        if fault == "hold" and not after:
            happens.release()
        await its.check()


async def test_leaders_that_move_in_mid_stream_are_followed(
    proxy: FaultProxy, bootstrap: str, shared: str, mark: str
) -> None:
    async with writing(proxy, bootstrap, shared, mark) as its:
        for step in range(6):
            await its.write(20)
            for partition in its.partitions:
                proxy.lead(partition, 1 + (partition.partition + step) % 3)
        await its.check()


async def test_metadata_that_lags_delays_and_loses_nothing(
    proxy: FaultProxy, bootstrap: str, shared: str, mark: str
) -> None:
    proxy.table.sends_leaders = False
    async with writing(proxy, bootstrap, shared, mark) as its:
        await its.write(10)
        proxy.serve_old_metadata()
        proxy.lead(its.partitions[0], 3)
        await its.write()
        count_before = proxy.request_count(METADATA)
        async with asyncio.timeout(20):
            while proxy.request_count(METADATA) < count_before + 3:
                await asyncio.sleep(0.01)
        proxy.serve_current_metadata()
        await its.check()


async def test_brokers_that_stop_and_start_get_everything(
    proxy: FaultProxy, bootstrap: str, shared: str, mark: str
) -> None:
    async with writing(proxy, bootstrap, shared, mark) as its:
        for _ in range(3):
            await its.write(20)
            await proxy.stop_brokers()
            await its.write(20)
            await proxy.start_brokers()
        await its.check()


PASSING = (2, 3, 5, 6, 7, 9, 19, 20, 56, 74, 100)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("code", PASSING, ids=str)
async def test_a_code_that_passes_is_not_seen(
    rota_proxy: FaultProxy, rota: str, rota_shared: str, mark: str, code: int, after: bool
) -> None:
    async with writing(rota_proxy, rota, rota_shared, mark) as its:
        await its.write(10)
        refused = rota_proxy.refuse(PRODUCE, code, times=2, after=after)
        await its.write()
        await its.check()
        assert refused.hits == 2


@pytest.mark.parametrize("code", [10, 17, 29, 38, 45, 87], ids=str)
async def test_a_code_that_does_not_pass_fails_the_batch_and_no_other(
    rota_proxy: FaultProxy, rota: str, rota_shared: str, mark: str, code: int
) -> None:
    async with writing(rota_proxy, rota, rota_shared, mark) as its:
        await its.write(9)
        await its.producer.flush()
        rota_proxy.refuse(PRODUCE, code, times=1 if code != 10 else None)
        failed = await its.producer.send(rota_shared, b"refused", partition=0)
        if code == 45:  # of a producer whose sequence the broker has: numbered anew, sent again
            await failed
        else:
            with pytest.raises(DeliveryFailed) as caught:
                await failed
            assert getattr(caught.value.cause, "code", None) == code
            assert not caught.value.maybe_written
        for fault in rota_proxy.faults:
            fault.end()
        await its.write()
        await its.check()


@pytest.mark.parametrize("code", [14, 15, 51], ids=str)
async def test_init_producer_id_is_retried(
    rota_proxy: FaultProxy, rota: str, rota_shared: str, mark: str, code: int
) -> None:
    refused = rota_proxy.refuse(INIT_PRODUCER_ID, code, times=2)
    lost = rota_proxy.close(INIT_PRODUCER_ID, after=True)
    async with writing(rota_proxy, rota, rota_shared, mark) as its:
        await its.write()
        await its.check()
    assert (refused.hits, lost.hits) == (2, 1)


async def test_without_idempotence_a_lost_answer_may_double_and_loses_nothing(
    proxy: FaultProxy, bootstrap: str, shared: str, mark: str
) -> None:
    more = {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1}
    async with writing(proxy, bootstrap, shared, mark, **more) as its:
        await its.write(10)
        lost = proxy.close(PRODUCE, after=True)
        await its.write()
        await lost.happened()
        await its.check(once=False)


@pytest.mark.parametrize("after", [False, True], ids=["not written", "perhaps written"])
async def test_a_delivery_timeout_says_whether_the_record_may_be_written(
    proxy: FaultProxy, bootstrap: str, shared: str, mark: str, after: bool
) -> None:
    more = {"delivery_timeout_ms": 400, "request_timeout_ms": 300}
    async with writing(proxy, bootstrap, shared, mark, **more) as its:
        await its.producer.partitions_for(shared)
        if after:
            proxy.swallow(PRODUCE, times=None, after=True)
        else:
            await proxy.stop_brokers(2)
        lost = await its.producer.send(shared, f"{mark}x/0".encode(), partition=1)
        with pytest.raises(DeliveryFailed) as caught:
            await lost
        assert isinstance(caught.value.cause, TimedOut)
        assert caught.value.maybe_written == after
        for fault in proxy.faults:
            fault.end()
        proxy.reset()
        await proxy.start_brokers()
        await its.write()
        await its.check()


async def test_a_send_that_is_cancelled_takes_all_or_nothing(
    proxy: FaultProxy, bootstrap: str, shared: str, mark: str
) -> None:
    async with writing(proxy, bootstrap, shared, mark, buffer_memory=1_000, max_block_ms=10_000) as its:
        await its.write(3)
        held = proxy.hold(PRODUCE, times=None)
        sends = [asyncio.ensure_future(its.producer.send(shared, bytes(300), partition=0)) for _ in range(8)]
        await held.happened()
        for send in sends[1::2]:
            send.cancel()
        held.end()
        await asyncio.wait(sends)
        taken = [send.result() for send in sends if not send.cancelled()]
        await its.producer.flush()
        offsets = [(await item).offset for item in taken]
        assert offsets == sorted(set(offsets))
        assert len(taken) < len(sends)
        await its.check()
