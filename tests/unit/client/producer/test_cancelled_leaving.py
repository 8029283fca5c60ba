"""`async with Producer` in a cancelled task: buffered records are delivered within a bounded time, or given up."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.unit.client.network.scripted import eventually
from tests.unit.client.producer.leader import Leader, settings

from rota.client.errors import DeliveryFailed
from rota.client.producer import producer as module
from rota.client.producer.producer import Producer
from rota.protocol.messages.metadata import MetadataRequest
from rota.protocol.messages.produce import ProduceRequest

RECORDS = 5


class Steps:
    """Cancels `task` at its n-th step in the event loop."""

    def __init__(self, task: asyncio.Task[None], at: int) -> None:
        self.task, self.left = task, at
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._step)

    def _step(self) -> None:
        if self.left <= 0:
            self.task.cancel()
        elif not self.task.done():
            self.left -= 1
            self._loop.call_soon(self._step)


async def test_a_cancelled_body_still_delivers_buffered_records() -> None:
    async with Leader(partitions=1) as leader:
        entered = asyncio.Event()

        async def work() -> None:
            async with Producer(settings(leader, linger_ms=60_000, delivery_timeout_ms=120_000)) as producer:
                for _ in range(RECORDS):
                    await producer.send("t", b"1")
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(leader.logs[0]) == RECORDS


async def test_a_cancelled_exit_still_delivers_buffered_records() -> None:
    async with Leader(partitions=1) as leader:
        held = asyncio.Event()

        async def answer(request: ProduceRequest) -> object:
            await held.wait()
            return leader._produce(request)

        leader.on(ProduceRequest, answer)

        async def work() -> None:
            async with Producer(settings(leader)) as producer:
                await producer.send("t", b"1")

        task = asyncio.create_task(work())
        await eventually(lambda: any(isinstance(request, ProduceRequest) for request in leader.requests))
        task.cancel()
        await asyncio.sleep(0)
        held.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(leader.logs[0]) == 1


async def test_undelivered_records_fail_at_the_limit_and_are_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rota.client")
    monkeypatch.setattr(module, "CANCELLED_FLUSH_MS", 20)
    async with Leader(partitions=1) as leader:
        leader.on(ProduceRequest, lambda _: None)
        deliveries = []

        async def work() -> None:
            async with Producer(settings(leader)) as producer:
                deliveries.extend([await producer.send("t", b"1") for _ in range(RECORDS)])
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await eventually(lambda: len(deliveries) == RECORDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for delivery in deliveries:
            with pytest.raises(DeliveryFailed, match="closed"):
                delivery.result()
    assert f"the producer was closed before all records were delivered  records={RECORDS}" in caplog.text


async def test_a_second_cancellation_gives_up_at_once() -> None:
    async with Leader(partitions=1) as leader:
        leader.on(ProduceRequest, lambda _: None)

        async def work() -> None:
            async with Producer(settings(leader)) as producer:
                await producer.send("t", b"1")

        task = asyncio.create_task(work())
        await eventually(lambda: any(isinstance(request, ProduceRequest) for request in leader.requests))
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: not leader._writers)


@pytest.mark.parametrize("step", range(0, 60, 3))
async def test_a_cancellation_at_any_step_loses_no_sent_record(step: int) -> None:
    """Cancelled at each step of starting, sending and leaving: a record whose send() returned is in the log, and no
    task, timer or connection is left."""
    async with Leader(partitions=1) as leader:
        sent = []
        before = asyncio.all_tasks()

        async def work() -> None:
            async with Producer(settings(leader)) as producer:
                for number in range(RECORDS):
                    sent.append(await producer.send("t", b"%d" % number))

        task = asyncio.create_task(work())
        Steps(task, step)
        await asyncio.wait({task})
        assert task.cancelled() or task.exception() is None
        assert [record.value for record in leader.logs.get(0, [])] == [b"%d" % n for n in range(len(sent))]
        assert all(delivery.done() for delivery in sent)
        await eventually(lambda: not leader._writers)
        assert {item for item in asyncio.all_tasks() - before if "_serve" not in repr(item)} == set()
        assert any(isinstance(request, MetadataRequest) for request in leader.requests) or not sent
