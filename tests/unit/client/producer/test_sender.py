"""Batches to brokers, over real sockets, with a broker that says what a test wants."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.client.network.scripted import CLOSE, eventually
from tests.unit.client.producer.leader import Leader, settings

from rota.client.errors import BrokerError, DeliveryFailed, TimedOut
from rota.client.producer.producer import Producer
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rota.protocol.messages.produce import PartitionProduceResponse, ProduceRequest
from rota.protocol.records.batch import read_header
from rota.protocol.records.record import Record


def produced(leader: Leader) -> list[ProduceRequest]:
    return [request for request in leader.requests if isinstance(request, ProduceRequest)]


def refusing(code: int, times: int = 1, **more: Any) -> Any:
    left = iter(range(times))

    def before(partition: int, records: list[Record]) -> PartitionProduceResponse | None:
        closes = next(left, None) is None
        return None if closes else PartitionProduceResponse(index=partition, error_code=code, **more)

    return before


async def test_no_more_requests_are_in_flight_than_allowed() -> None:
    held = asyncio.Event()
    async with Leader(partitions=1) as leader:

        async def answer(request: ProduceRequest) -> Any:
            await held.wait()
            return leader._produce(request)

        leader.on(ProduceRequest, answer)
        config = settings(leader, max_in_flight_requests_per_connection=2, batch_size=0)
        async with Producer(config) as producer:
            held.set()
            await producer.send_and_wait("t", b"0")
            held.clear()
            deliveries = [await producer.send("t", b"%d" % number) for number in range(5)]
            await eventually(lambda: producer._sender._brokers and producer._sender._brokers[0].in_flight == 2)
            assert sum(batch.attempts for batch in producer._accumulator.incomplete) == 2
            held.set()
            assert [(await item).offset for item in deliveries] == list(range(1, 6))


async def test_retriable_errors_are_retried_in_order() -> None:
    async with Leader(partitions=1) as leader:
        leader.before = refusing(ErrorCode.NOT_ENOUGH_REPLICAS, times=3)
        async with Producer(settings(leader, batch_size=0, enable_idempotence=False)) as producer:
            for number in range(4):
                await producer.send("t", b"%d" % number)
        assert [record.value for record in leader.logs[0]] == [b"0", b"1", b"2", b"3"]


async def test_a_broken_connection_is_made_again() -> None:
    async with Leader(partitions=1) as leader:
        answers = iter([CLOSE])
        leader.before = lambda *_: next(answers, None)
        async with Producer(settings(leader)) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == 0
        first, second = produced(leader)
        raws = [bytes(item.topic_data[0].partition_data[0].records) for item in (first, second)]
        assert raws[0] == raws[1]  # the same sequence: a broker that has it would know


async def test_after_a_gap_the_epoch_grows() -> None:
    async with Leader(partitions=1) as leader:
        leader.before = refusing(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        async with Producer(settings(leader)) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == 0
        heads = [read_header(bytes(item.topic_data[0].partition_data[0].records)) for item in produced(leader)]
        assert [(item.producer_epoch, item.base_sequence) for item in heads] == [(0, 0), (1, 0)]


async def test_a_duplicate_is_delivered() -> None:
    async with Leader(partitions=1) as leader:
        leader.before = refusing(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
        async with Producer(settings(leader)) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == -1


async def test_a_too_large_batch_is_split() -> None:
    async with Leader(partitions=1) as leader:

        def before(partition: int, records: list[Record]) -> PartitionProduceResponse | None:
            small = len(records) <= 2
            return None if small else PartitionProduceResponse(index=partition, error_code=10)

        leader.before = before
        async with Producer(settings(leader)) as producer:
            deliveries = [await producer.send("t", b"%d" % number) for number in range(7)]
            assert [(await item).offset for item in deliveries] == list(range(7))
        assert [record.value for record in leader.logs[0]] == [b"%d" % number for number in range(7)]


async def test_the_brokers_words_reach_the_record_that_they_are_for() -> None:
    response = PartitionProduceResponse(
        index=0, error_code=ErrorCode.INVALID_RECORD, error_message="one record is bad", record_errors=()
    )
    async with Leader(partitions=1) as leader:
        leader.before = lambda *_: response
        async with Producer(settings(leader)) as producer:
            with pytest.raises(DeliveryFailed, match="one record is bad") as failed:
                await producer.send_and_wait("t", b"1")
    assert not failed.value.maybe_written
    assert isinstance(failed.value.cause, BrokerError)
    assert failed.value.cause.code is ErrorCode.INVALID_RECORD


async def test_acks_0_waits_for_no_answer() -> None:
    async with Leader(partitions=1) as leader:
        async with Producer(settings(leader, acks=0)) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == -1
            await eventually(lambda: leader.logs)
        assert leader.ids == 0


async def test_without_a_producer_id_for_now_records_wait() -> None:
    async with Leader(partitions=1) as leader:
        answers = [InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) for _ in range(3)]
        last = InitProducerIdResponse(producer_id=5, producer_epoch=0)
        leader.on(InitProducerIdRequest, lambda _: answers.pop() if answers else last)
        async with Producer(settings(leader)) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == 0


async def test_a_refused_producer_id_fails_the_delivery() -> None:
    async with Leader(partitions=1) as leader:
        refusal = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        leader.on(InitProducerIdRequest, lambda _: refusal)
        async with Producer(settings(leader)) as producer:
            with pytest.raises(DeliveryFailed, match="getting a producer id") as failed:
                await producer.send_and_wait("t", b"1")
            assert not failed.value.maybe_written


async def test_a_broker_that_is_away_costs_no_doubt() -> None:
    async with Leader(partitions=1) as leader:
        config = settings(leader, linger_ms=0, request_timeout_ms=100, delivery_timeout_ms=150)
        async with Producer(config) as producer:
            await producer.send_and_wait("t", b"1")
            await leader.stop()
            await eventually(lambda: not producer._cluster._brokers._connections[0, ""].is_open)
            producer._sender._brokers[0].version = None
            with pytest.raises(DeliveryFailed, match="delivery_timeout_ms") as failed:
                await producer.send_and_wait("t", b"2")
            assert not failed.value.maybe_written
            assert "t-0" in str(failed.value)


async def test_a_batch_without_a_response_may_be_written() -> None:
    async with Leader(partitions=1) as leader:
        leader.on(ProduceRequest, lambda _: None)
        config = settings(leader, request_timeout_ms=50, delivery_timeout_ms=60)
        async with Producer(config) as producer:
            with pytest.raises(DeliveryFailed, match="may or may not") as failed:
                await producer.send_and_wait("t", b"1")
            assert failed.value.maybe_written
            assert isinstance(failed.value.cause, TimedOut)


async def test_an_answer_that_misses_a_partition_is_no_delivery() -> None:
    async with Leader(partitions=1) as leader:
        first = iter([PartitionProduceResponse(index=77)])
        leader.before = lambda *_: next(first, None)
        async with Producer(settings(leader)) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == 0
        assert len(produced(leader)) == 2
