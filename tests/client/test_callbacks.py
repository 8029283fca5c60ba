"""Callbacks around a rebalance, on a real broker: their order, what they may do, what happens when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.interop import kit
from tests.interop.kit import create_topic

from rota.client.config import ConsumerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import CommitFailed, IllegalUse
from rota.client.types import TopicPartition

PATIENCE_S = 20.0
TEN = [b"%d" % number for number in range(10)]
EACH_PROTOCOL = pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
Notice = list[tuple[str, set[int]]]
Made = Callable[..., Consumer]


@pytest.fixture
def make(bootstrap: str, group: str) -> Made:
    def made(**settings: Any) -> Consumer:
        given = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 50, "fetch_max_wait_ms": 50}
        return Consumer(ConsumerConfig(bootstrap_servers=bootstrap, group_id=group, **given | settings))

    return made


def listening(consumer: Consumer, topic: str) -> Notice:
    """Subscribed, with a listener that writes down what it is told; on_lost is a plain function."""
    answers: Notice = []

    async def assigned(partitions: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(0)
        assert set(partitions) <= consumer.assignment
        answers.append(("assigned", {item.partition for item in partitions}))

    async def revoked(partitions: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(0)
        assert set(partitions) <= consumer.assignment
        answers.append(("revoked", {item.partition for item in partitions}))

    def lost(partitions: tuple[TopicPartition, ...]) -> None:
        answers.append(("lost", {item.partition for item in partitions}))

    consumer.subscribe([topic], on_assigned=assigned, on_revoked=revoked, on_lost=lost)
    return answers


def produce_to(bootstrap: str, topic: str, partition: int, values: Sequence[bytes]) -> None:
    """In this order, also where a new partition's leader is not ready for the first batch."""
    kit.produce_to(bootstrap, topic, partition, values, **{"enable.idempotence": True})


async def poll_until(look: Callable[[], bool], *consumers: Consumer) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not look():
            await asyncio.gather(*(consumer.getmany(timeout_ms=20) for consumer in consumers))


@EACH_PROTOCOL
async def test_on_revoked_is_called_before_on_assigned(bootstrap: str, make: Made, strategy: str) -> None:
    topic = create_topic(bootstrap, 2)
    async with make(partition_assignment_strategy=(strategy,)) as first:
        answer = listening(first, topic)
        await poll_until(lambda: len(first.assignment) == 2, first)
        assert answer == [("assigned", {0, 1})]
        async with make(partition_assignment_strategy=(strategy,)) as second:
            second.subscribe([topic])
            await poll_until(lambda: len(first.assignment) == len(second.assignment) == 1, first, second)
            kept = {item.partition for item in first.assignment}
            if strategy == "range":
                assert answer[1:] == [("revoked", {0, 1}), ("assigned", kept)]
            else:
                assert ("revoked", {0, 1} - kept) in answer
                assert all(partitions <= {0, 1} - kept for what, partitions in answer[1:] if what == "revoked")
            answer.clear()
        await poll_until(lambda: len(first.assignment) == 2, first)
        answer.clear()
    assert answer == [("revoked", {0, 1})]


async def test_commit_in_on_revoked_commits_the_returned_records(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    async with make(enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], on_revoked=lambda _: consumer.commit())
        for _ in range(4):
            await asyncio.wait_for(consumer.getone(), PATIENCE_S)
    async with make() as heir:
        heir.subscribe([topic])
        assert (await asyncio.wait_for(heir.getone(), PATIENCE_S)).offset == 4


async def test_a_listener_seeks_before_anything_is_read(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    async with make() as consumer:

        async def seek(partitions: tuple[TopicPartition, ...]) -> None:
            for item in partitions:
                assert await consumer.position(item) == 0
                consumer.seek(item, 6)

        consumer.subscribe([topic], on_assigned=seek)
        assert (await asyncio.wait_for(consumer.getone(), PATIENCE_S)).offset == 6


async def test_on_lost_is_called_by_the_next_poll_and_a_commit_fails(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    async with make(max_poll_interval_ms=300, session_timeout_ms=6_000) as consumer:
        answer = listening(consumer, topic)
        await poll_until(lambda: bool(consumer.assignment), consumer)
        async with asyncio.timeout(PATIENCE_S):
            while consumer.state != "DOWN":
                await asyncio.sleep(0.01)
        assert answer == [("assigned", {0})]  # nothing while the user works
        with pytest.raises(CommitFailed):
            await consumer.commit({TopicPartition(topic, 0): 1})
        await poll_until(lambda: len(answer) == 3, consumer)
        assert answer[1:] == [("lost", {0}), ("assigned", {0})]


async def test_without_on_lost_on_revoked_is_called(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    answers: list[str] = []
    async with make(max_poll_interval_ms=300, session_timeout_ms=6_000) as consumer:
        consumer.subscribe([topic], on_revoked=lambda _: answers.append("revoked"))
        await poll_until(lambda: bool(consumer.assignment), consumer)
        async with asyncio.timeout(PATIENCE_S):
            while consumer.state != "DOWN":
                await asyncio.sleep(0.01)
        await poll_until(lambda: answers == ["revoked"], consumer)


async def test_an_exception_of_a_callback_is_raised_by_poll_and_the_rebalance_completes(
    bootstrap: str, make: Made
) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)

    def fails(_: tuple[TopicPartition, ...]) -> None:
        raise ZeroDivisionError("mine")

    async with make() as consumer:
        consumer.subscribe([topic], on_assigned=fails)
        with pytest.raises(ZeroDivisionError, match="mine"):
            await poll_until(lambda: False, consumer)
        await poll_until(lambda: bool(consumer.assignment), consumer)
        assert (await asyncio.wait_for(consumer.getone(), PATIENCE_S)).offset == 0


async def test_a_callback_may_neither_poll_nor_close(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    refused: list[str] = []
    async with make() as consumer:

        async def tries(_: tuple[TopicPartition, ...]) -> None:
            for call in (consumer.getmany, consumer.close):
                with pytest.raises(IllegalUse) as raised:
                    await call()
                refused.append(str(raised.value))

        consumer.subscribe([topic], on_assigned=tries)
        await poll_until(lambda: len(refused) == 2, consumer)
        assert consumer.assignment


@EACH_PROTOCOL
async def test_buffered_records_of_revoked_partitions_are_read_by_the_next_owner(
    bootstrap: str, make: Made, strategy: str
) -> None:
    """One partition each in the end; what `async for` had taken and not handed out is read by whoever owns it."""
    topic = create_topic(bootstrap, 2)
    for partition in (0, 1):
        produce_to(bootstrap, topic, partition, TEN)
    seen: list[tuple[int, int]] = []

    async def reads(consumer: Consumer, others: asyncio.Event) -> None:
        async for record in consumer:
            seen.append((record.partition, record.offset))
            if len(seen) == 3:
                others.set()
            if len(set(seen)) == 20:
                raise EOFError
            await asyncio.sleep(0.005)

    async def reader(start: asyncio.Event, others: asyncio.Event) -> None:
        await start.wait()
        async with make(partition_assignment_strategy=(strategy,), auto_commit_interval_ms=0) as consumer:
            consumer.subscribe([topic])
            await reads(consumer, others)

    async def both() -> None:
        now, then = asyncio.Event(), asyncio.Event()
        now.set()
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            tasks.create_task(reader(now, then))
            tasks.create_task(reader(then, then))

    with pytest.raises(ExceptionGroup) as raised:
        await both()
    assert raised.group_contains(EOFError)
    assert sorted(set(seen)) == [(partition, offset) for partition in (0, 1) for offset in range(10)]
    assert len(seen) == len(set(seen))
