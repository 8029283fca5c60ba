"""The facade: what `send` waits for, refuses and promises."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.unit.client.network.scripted import eventually
from tests.unit.client.producer.leader import Leader, settings

from rota.client.config import ProducerConfig
from rota.client.errors import (
    BrokerError,
    BufferFull,
    ConfigError,
    DeliveryFailed,
    IllegalUse,
    RecordTooLarge,
    TimedOut,
    Unreachable,
)
from rota.client.producer.producer import BATCHES_PER_TURN_MAX, Producer
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import PartitionProduceResponse, ProduceRequest

REFUSED = PartitionProduceResponse(index=0, error_code=ErrorCode.INVALID_RECORD)


async def test_send_gives_up_no_turn_of_the_loop_when_it_has_all_it_needs() -> None:
    async with Leader() as leader, Producer(settings(leader)) as producer:
        await producer.send_and_wait("t", b"0")
        turns: list[int] = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        deliveries = [await producer.send("t", b"1", b"key") for _ in range(10)]
        assert turns == []
        assert not any(item.done() for item in deliveries)


async def test_records_of_one_tick_share_a_request() -> None:
    async with Leader(partitions=1) as leader:
        async with Producer(settings(leader)) as producer:
            await producer.send_and_wait("t", b"0")
            for _ in range(50):
                await producer.send("t", b"1")
        assert len([request for request in leader.requests if isinstance(request, ProduceRequest)]) == 2


async def test_an_endless_sender_yields_to_other_tasks() -> None:
    async with Leader(partitions=1) as leader, Producer(settings(leader, batch_size=200)) as producer:
        await producer.send_and_wait("t", b"0")
        turns: list[int] = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        for _ in range(2 * BATCHES_PER_TURN_MAX):
            await producer.send("t", b"x" * 100)
        assert turns == [1]


async def test_text_is_refused_before_anything_happens() -> None:
    async with Leader() as leader, Producer(settings(leader)) as producer:
        with pytest.raises(IllegalUse, match=r"value\.encode\(\)"):
            await producer.send("t", "text")  # type: ignore[arg-type]
        with pytest.raises(IllegalUse, match=r"key\.encode\(\)"):
            await producer.send("t", b"", "text")  # type: ignore[arg-type]
        assert producer._accumulator.used_bytes == 0


@pytest.mark.parametrize("key", [None, b"key"])
async def test_a_record_that_is_too_large_is_refused_before_it_is_buffered(key: bytes | None) -> None:
    async with Leader() as leader, Producer(settings(leader, max_request_size=1_000)) as producer:
        with pytest.raises(RecordTooLarge, match="max_request_size"):
            await producer.send("t", b"x" * 1_000, key)
        with pytest.raises(RecordTooLarge, match="max_request_size"):
            await producer.send("t", b"", key, headers=[("h", b"x" * 1_000)])
        assert producer._accumulator.used_bytes == 0


async def test_a_record_larger_than_the_buffer_is_refused() -> None:
    async with Leader() as leader, Producer(settings(leader, buffer_memory=500)) as producer:
        with pytest.raises(RecordTooLarge, match="buffer_memory"):
            await producer.send("t", b"x" * 500)


async def test_a_full_buffer_is_waited_for_in_turn() -> None:
    held = asyncio.Event()
    async with Leader(partitions=1) as leader:

        async def answer(request: ProduceRequest) -> object:
            await held.wait()
            return leader._produce(request)

        leader.on(ProduceRequest, answer)
        async with Producer(settings(leader, buffer_memory=400, batch_size=100)) as producer:
            sending = [asyncio.create_task(producer.send("t", b"%02d" % number + b"x" * 78)) for number in range(20)]
            await eventually(lambda: producer._memory.waits)
            assert sum(item.done() for item in sending) == 3
            assert producer._accumulator.used_bytes <= 400
            sending[10].cancel()
            held.set()
            for number, item in enumerate(sending):
                if number != 10:
                    await (await item)
            assert producer._accumulator.used_bytes == 0
    values = [int((record.value or b"")[:2]) for record in leader.logs[0]]
    assert values == [number for number in range(20) if number != 10]


async def test_a_full_buffer_is_not_waited_for_longer_than_max_block_ms() -> None:
    async with Leader(partitions=1) as leader:
        leader.on(ProduceRequest, lambda _: None)
        async with Producer(settings(leader, buffer_memory=200, max_block_ms=300)) as producer:
            producer._cluster.set_topics(["t"])
            await producer._topics.find("t", None)
            await producer.send("t", b"x" * 100)
            with pytest.raises(BufferFull, match="buffer_memory"):
                await producer.send("t", b"x" * 100)
            with pytest.raises(DeliveryFailed):
                await producer.close(timeout_ms=0)


async def test_a_topic_that_does_not_appear_is_named() -> None:
    async with Leader() as leader:
        leader.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        async with Producer(settings(leader, max_block_ms=500)) as producer:
            with pytest.raises(TimedOut, match=r"topic nowhere.*UNKNOWN_TOPIC_OR_PARTITION"):
                await producer.send("nowhere", b"1")
            assert not producer._topics._waiting


async def test_a_name_that_no_topic_may_have_is_refused_at_once() -> None:
    async with Leader() as leader:
        leader.error = ErrorCode.INVALID_TOPIC_EXCEPTION
        async with Producer(settings(leader)) as producer:
            with pytest.raises(BrokerError, match="INVALID_TOPIC"):
                await producer.send("no/such", b"1")


async def test_an_unknown_partition_is_refused() -> None:
    async with Leader(partitions=2) as leader, Producer(settings(leader, max_block_ms=30)) as producer:
        with pytest.raises(TimedOut, match="partition 2 of topic t"):
            await producer.send("t", b"1", partition=2)
        with pytest.raises(IllegalUse, match="partition is -1"):
            await producer.send("t", b"1", partition=-1)
        with pytest.raises(IllegalUse, match="timestamp_ms"):
            await producer.send("t", b"1", timestamp_ms=-5)


async def test_partitions_for_a_topic() -> None:
    async with Leader(partitions=3) as leader, Producer(settings(leader)) as producer:
        assert [item.partition for item in await producer.partitions_for("t")] == [0, 1, 2]


async def test_flush_ends_lingering_and_waits_for_everything() -> None:
    async with Leader() as leader, Producer(settings(leader, linger_ms=30_000)) as producer:
        deliveries = [await producer.send("t", b"%d" % number, b"%d" % number) for number in range(20)]
        await producer.flush()
        assert all(item.done() for item in deliveries)
        await producer.flush()


async def test_a_flush_timeout_keeps_the_records_buffered() -> None:
    held = asyncio.Event()
    async with Leader(partitions=1) as leader:

        async def answer(request: ProduceRequest) -> object:
            await held.wait()
            return leader._produce(request)

        leader.on(ProduceRequest, answer)
        async with Producer(settings(leader)) as producer:
            delivery = await producer.send("t", b"1")
            with pytest.raises(TimedOut, match="1 records"):
                await producer.flush(timeout_ms=10)
            held.set()
            assert (await delivery).offset == 0


async def test_flush_raises_an_unreported_failure_once() -> None:
    async with Leader(partitions=1) as leader:
        leader.before = lambda *_: REFUSED
        async with Producer(settings(leader)) as producer:
            await producer.send("t", b"1")
            with pytest.raises(DeliveryFailed, match="INVALID_RECORD"):
                await producer.flush()
            await producer.flush()


async def test_flush_does_not_raise_reported_failures() -> None:
    async with Leader(partitions=1) as leader:
        leader.before = lambda *_: REFUSED
        async with Producer(settings(leader)) as producer:
            awaited, called = await producer.send("t", b"1"), await producer.send("t", b"2")
            called.add_done_callback(lambda item: None)
            waiting = asyncio.ensure_future(_wait(awaited))
            await asyncio.sleep(0)
            await producer.flush()
            with pytest.raises(DeliveryFailed):
                await waiting


async def test_a_failure_is_logged_once_for_its_batch(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "rota.client")
    async with Leader(partitions=1) as leader:
        leader.before = lambda *_: REFUSED
        async with Producer(settings(leader)) as producer:
            for _ in range(5):
                await producer.send("t", b"1")
            with pytest.raises(DeliveryFailed):
                await producer.flush()
    reply = [record.getMessage() for record in caplog.records if "not delivered" in record.getMessage()]
    assert len(reply) == 1
    assert "records=5" in reply[0]


async def test_leaving_flushes_and_raises_failures() -> None:
    async with Leader(partitions=1) as leader:
        leader.before = lambda *_: REFUSED
        with pytest.raises(DeliveryFailed):
            async with Producer(settings(leader)) as producer:
                await producer.send("t", b"1")
        await producer.close()


async def test_leaving_by_an_exception_flushes_too_and_hides_nothing() -> None:
    async with Leader(partitions=1) as leader:
        with pytest.raises(ZeroDivisionError):
            await _fail_inside(settings(leader, linger_ms=1_000))
        assert len(leader.logs[0]) == 1
        leader.before = lambda *_: REFUSED
        with pytest.raises(ZeroDivisionError) as raised:
            await _fail_inside(settings(leader))
        assert "INVALID_RECORD" in raised.value.__notes__[0]


async def test_a_cancelled_task_fails_its_undelivered_records() -> None:
    async with Leader(partitions=1) as leader:
        leader.on(ProduceRequest, lambda _: None)
        deliveries = []

        async def work() -> None:
            async with Producer(settings(leader)) as producer:
                deliveries.append(await producer.send("t", b"1"))
                await eventually(lambda: producer._sender._brokers[0].in_flight)
                await deliveries[0]

        task = asyncio.create_task(work())
        await eventually(lambda: any(isinstance(request, ProduceRequest) for request in leader.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(DeliveryFailed, match="closed") as failed:
            deliveries[0].result()
        assert failed.value.maybe_written


async def test_closing_in_time_gives_up_the_rest() -> None:
    async with Leader(partitions=1) as leader:
        leader.on(ProduceRequest, lambda _: None)
        producer = await Producer(settings(leader)).start()
        delivery = await producer.send("t", b"1")
        waiting = asyncio.ensure_future(_wait(delivery))
        await eventually(lambda: producer._sender._brokers and producer._sender._brokers[0].in_flight)
        await producer.close(timeout_ms=5)
        with pytest.raises(DeliveryFailed, match="closed"):
            await waiting
        await producer.close()


async def test_pd13_closing_at_once_does_not_wait_for_a_broker_that_reads_nothing() -> None:
    """NC13 without time."""
    gate = asyncio.Event()
    async with Leader(partitions=1) as leader:

        async def never(_: ProduceRequest) -> None:
            await gate.wait()

        leader.on(ProduceRequest, never)
        more = {"acks": 0, "enable_idempotence": False, "max_request_size": 30_000_000}
        producer = await Producer(settings(leader, buffer_memory=60_000_000, **more)).start()
        await producer.send("t", b"1")
        await eventually(lambda: any(isinstance(request, ProduceRequest) for request in leader.requests))
        await producer.send("t", bytes(20_000_000))
        await eventually(lambda: producer._sender._brokers[0].in_flight)
        async with asyncio.timeout(4):
            with pytest.raises(DeliveryFailed):
                await producer.close(timeout_ms=0)
        gate.set()


async def test_closed_is_closed() -> None:
    async with Leader() as leader:
        async with Producer(settings(leader)) as producer:
            await producer.send("t", b"1")
        for call in (producer.send("t", b"1"), producer.flush(), producer.partitions_for("t")):
            with pytest.raises(IllegalUse, match="closed"):
                await call
        with pytest.raises(IllegalUse):
            await producer.start()


async def test_send_before_start_is_illegal_use() -> None:
    producer = Producer.from_properties({"bootstrap.servers": "127.0.0.1:9092", "linger.ms": "7"})
    with pytest.raises(IllegalUse, match="async with"):
        await producer.send("t", b"1")
    assert "not started" in repr(producer)
    await producer.close()
    with pytest.raises(ConfigError, match="linger"):
        Producer.from_properties({"bootstrap.servers": "127.0.0.1:9092", "linger_ms": "7"})


async def test_an_unreachable_cluster_raises_at_start() -> None:
    async with Leader() as leader:
        config = settings(leader, default_api_timeout_ms=30)
    with pytest.raises(Unreachable):
        async with Producer(config):
            pass


async def test_repr_shows_buffered_records_and_bytes() -> None:
    async with Leader() as leader, Producer(settings(leader, linger_ms=1_000)) as producer:
        await producer.send("t", b"1")
        assert "open, 1 topics, 1 records in 22 bytes under way" in repr(producer)


async def test_a_partitioner_that_fails_fails_its_send() -> None:
    async with Leader() as leader, Producer(settings(leader, partitioner=lambda *_: 9)) as producer:
        with pytest.raises(IllegalUse, match="partitioner gave 9"):
            await producer.send("t", b"1")
        assert producer._accumulator.used_bytes == 0


async def _fail_inside(config: ProducerConfig) -> None:
    async with Producer(config) as producer:
        await producer.send("t", b"1")
        raise ZeroDivisionError


async def _wait(delivery: object) -> object:
    return await delivery  # type: ignore[misc]


async def test_arguments_of_a_wrong_type_are_refused() -> None:
    async with Leader(partitions=1) as leader, Producer(settings(leader)) as producer:
        with pytest.raises(IllegalUse, match="a topic is a str"):
            await producer.send(b"t", b"1")  # type: ignore[arg-type]
        for wrong in (1 << 63, -1):
            with pytest.raises(IllegalUse, match="timestamp_ms"):
                await producer.send("t", b"1", timestamp_ms=wrong)
        with pytest.raises(TypeError):
            await producer.send("t", b"1", timestamp_ms=1.5)  # type: ignore[arg-type]
        assert (await producer.send_and_wait("t", b"1")).offset == 0
