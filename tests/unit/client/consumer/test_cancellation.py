"""Whatever is cancelled when: each public awaitable and each internal task, before its first step and at each await.

Afterwards the same call works, every record is delivered once and in order, and `close` leaves no task behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.consumer.bookkeeper import GROUP, Group
from tests.unit.client.consumer.kit import P0, QUICK, TOPIC, batch
from tests.unit.client.network.scripted import eventually
from tests.unit.suspensions import (
    BEFORE_THE_FIRST_STEP,
    TEN_S,
    cancel,
    each_suspension,
    started_in,
    task_cancelled_at,
    tasks_of_ours,
)

import rota.client
from rota.client.config import ClientConfig, ConsumerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.consumer.reader import PartitionReader
from rota.client.errors import IllegalUse
from rota.client.offsets.list_offsets import EARLIEST

RECORDS = 60
Call = Callable[[Consumer], Coroutine[Any, Any, Any]]


@asynccontextmanager
async def serving() -> AsyncIterator[Group]:
    group = Group()
    group.write(0, *(batch(base, 10) for base in range(0, RECORDS, 10)))
    for broker in group.brokers:
        await broker.listen()
    try:
        yield group
    finally:
        for broker in group.brokers:
            await broker.stop()


def made(group: Group, **settings: Any) -> Consumer:
    given = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 20, "enable_auto_commit": False}
    config = {"bootstrap_servers": group.brokers[0].address, "group_id": GROUP, "max_poll_records": 7}
    return Consumer(ConsumerConfig(**config | given | QUICK | settings))


async def rest_of(consumer: Consumer, first: int) -> list[int]:
    """All records from there on."""
    async with asyncio.timeout(TEN_S):
        return [(await consumer.getone()).offset for _ in range(first, RECORDS)]


async def _commit_soon(consumer: Consumer) -> None:
    await consumer.commit_soon({P0: 3})


CALLS: dict[str, Call] = {
    "commit": lambda consumer: consumer.commit({P0: 3}),
    "commit_soon": _commit_soon,
    "committed": lambda consumer: consumer.committed(),
    "position": lambda consumer: consumer.position(P0),
    "seek_to_time": lambda consumer: consumer.seek_to_time(0),
    "offsets_for_times": lambda consumer: consumer.offsets_for_times({P0: 0}),
    "beginning_offsets": lambda consumer: consumer.beginning_offsets(P0),
    "end_offsets": lambda consumer: consumer.end_offsets(P0),
    "partitions_for": lambda consumer: consumer.partitions_for(TOPIC),
    "topics": lambda consumer: consumer.topics(),
}


POLLS = ["getone", "getmany", "__anext__"]
CLOSES = ["close", "unsubscribe"]


def awaited(cls: type) -> set[str]:
    """The public methods that are awaited, iterated with `async for`, or return a task."""
    public = {name: item for name, item in vars(cls).items() if not name.startswith("_") or name == "__anext__"}
    return {
        name
        for name, item in public.items()
        if inspect.iscoroutinefunction(item)
        or inspect.isasyncgenfunction(item)
        or re.search("Task|Future|Awaitable|AsyncIterator", str(getattr(item, "__annotations__", {}).get("return")))
    }


def test_every_public_call_of_the_consumer_is_cancelled_here() -> None:
    assert awaited(Consumer) == {*CALLS, *POLLS, *CLOSES, "start"}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_that_was_cancelled_works_when_it_is_made_again(name: str) -> None:
    async with serving() as group, made(group) as consumer:
        consumer.assign(P0)
        async for _ in each_suspension(lambda: CALLS[name](consumer)):
            pass
        await asyncio.wait_for(CALLS[name](consumer), TEN_S)
        consumer.seek(P0, 0)
        assert await rest_of(consumer, 0) == list(range(RECORDS))
        await asyncio.wait_for(consumer.commit(), TEN_S)
        assert group.committed == {0: RECORDS}


@pytest.mark.parametrize("subscribes", [False, True])
@pytest.mark.parametrize("name", POLLS)
async def test_a_poll_that_is_cancelled_loses_and_doubles_no_record(name: str, subscribes: bool) -> None:
    async with serving() as group, made(group) as consumer:
        consumer.subscribe([TOPIC]) if subscribes else consumer.assign(P0)
        seen: list[int] = []

        async def poll() -> list[int]:
            if name == "getmany":
                batches = await consumer.getmany(1, timeout_ms=10_000)
                return [record.offset for records in batches.values() for record in records]
            return [(await (consumer.getone() if name == "getone" else anext(consumer))).offset]

        async for offsets in each_suspension(poll):
            seen += offsets or []
        assert seen + await rest_of(consumer, len(seen)) == list(range(RECORDS))


async def test_a_consumer_whose_start_was_cancelled_can_be_closed() -> None:
    async with serving() as group:
        before = tasks_of_ours()
        consumers: list[Consumer] = []

        def start() -> Coroutine[Any, Any, None]:
            consumers.append(made(group))
            return consumers[-1].start()

        async for _ in each_suspension(start):
            await asyncio.wait_for(consumers[-1].close(), TEN_S)
            await eventually(lambda: tasks_of_ours() == before)


@pytest.mark.parametrize("name", CLOSES)
async def test_a_cancelled_close_leaves_no_task_and_no_connection(name: str) -> None:
    async with serving() as group:
        before = tasks_of_ours()
        for suspension in count(BEFORE_THE_FIRST_STEP):
            consumer = made(group, enable_auto_commit=True)
            await consumer.start()
            consumer.subscribe([TOPIC])
            await asyncio.wait_for(consumer.getone(), TEN_S)
            reached, _ = await cancel(getattr(consumer, name)(), suspension)
            await asyncio.wait_for(consumer.close(), TEN_S)
            assert consumer.state == "CLOSED"
            await eventually(lambda: tasks_of_ours() == before)
            if not reached:
                break


async def test_an_unsubscribe_that_was_cancelled_ends_the_reading() -> None:
    """The membership has ended: without it nothing is read, and the consumer subscribes as a new one does."""
    async with serving() as group:
        for suspension in count(0):
            async with made(group) as consumer:
                consumer.subscribe([TOPIC])
                await asyncio.wait_for(consumer.getone(), TEN_S)
                reached, _ = await cancel(consumer.unsubscribe(), suspension)
                assert (consumer.subscription, consumer.assignment) == (frozenset(), frozenset())
                with pytest.raises(IllegalUse, match="nothing to read"):
                    await consumer.getmany()
                consumer.subscribe([TOPIC])
                assert await rest_of(consumer, 0) == list(range(RECORDS))
            if not reached:
                break
        assert suspension > 1


async def test_an_unsubscribe_with_a_failing_callback_stops_the_fetching() -> None:
    def refuses(_: object) -> None:
        raise ZeroDivisionError

    async with serving() as group, made(group) as consumer:
        consumer.subscribe([TOPIC], on_revoked=refuses)
        await asyncio.wait_for(consumer.getone(), TEN_S)
        with pytest.raises(ZeroDivisionError):
            await consumer.unsubscribe()
        assert (consumer.subscription, consumer.assignment) == (frozenset(), frozenset())
        consumer.assign(P0)
        consumer.seek(P0, 0)
        assert await rest_of(consumer, 0) == list(range(RECORDS))


async def test_subscribe_and_assign_are_refused_during_an_unsubscribe() -> None:
    """It would be forgotten when the unsubscribe ends."""
    refused: list[str] = []

    def chooses(_: object) -> None:
        for choose in (lambda: consumer.subscribe([TOPIC]), lambda: consumer.assign(P0)):
            try:
                choose()
            except IllegalUse as why:
                refused.append(str(why))

    async with serving() as group, made(group) as consumer:
        consumer.subscribe([TOPIC], on_revoked=chooses)
        await asyncio.wait_for(consumer.getone(), TEN_S)
        await consumer.unsubscribe()
        assert len(refused) == 2
        assert all(why.startswith("unsubscribe() has not ended") for why in refused)


TASKS = [
    "Fetcher._fetch",
    "OffsetResolver._find",
    "CommitQueue._do",
    "Membership._send_request",
    "Membership._find",
    "Membership._refresh",
    "MetadataUpdater.run",
    "BrokerConnection._connect",
]


CANCELLED_BY_OTHER_TESTS = {
    "Membership._run",  # test_a_callback_that_is_cancelled_before_its_first_step_is_run
    "Cluster._closed",  # test_a_cancelled_close_leaves_no_task_and_no_connection
    "Brokers._close_one",  # starts BrokerConnection.close, as that test does
    "Cluster.background",  # starts MetadataUpdater.run
    "_all",  # the requests of a lookup: tests/unit/client/offsets/test_list_offsets.py
}
HELPERS = {"run_shielded", "Membership._spawn"}  # start what their callers give them


def test_every_internal_task_is_cancelled_here() -> None:
    client = Path(rota.client.__file__).parent
    started = started_in(*(client / part for part in ("consumer", "group", "network", "offsets")))
    assert started - HELPERS == {*TASKS, *CANCELLED_BY_OTHER_TESTS} - {"MetadataUpdater.run"}


@pytest.mark.parametrize("qualname", TASKS)
async def test_an_internal_task_that_is_cancelled_delays_and_loses_nothing(qualname: str) -> None:
    for nth in range(2):
        for suspension in count(BEFORE_THE_FIRST_STEP):
            if not await _reads_all_with_a_task_cancelled(qualname, nth, suspension):
                break
        assert nth or suspension > 0, f"there is no task {qualname}"


@pytest.mark.parametrize("nth", range(2))
async def test_a_callback_that_is_cancelled_before_its_first_step_is_run(nth: int) -> None:
    assert await _reads_all_with_a_task_cancelled("Membership._run", nth, BEFORE_THE_FIRST_STEP)


async def _reads_all_with_a_task_cancelled(qualname: str, nth: int, suspension: int) -> bool:
    """Whether the nth task of that name came to the suspension, where it was cancelled."""
    async with serving() as group:
        before = tasks_of_ours()
        with task_cancelled_at(qualname, nth, suspension) as reached:
            async with made(group, enable_auto_commit=True, auto_commit_interval_ms=0) as consumer:
                # the members of a pattern read metadata before they join
                consumer.subscribe(re.compile(TOPIC) if qualname == "Membership._refresh" else [TOPIC])
                assert await rest_of(consumer, 0) == list(range(RECORDS))
                with contextlib.suppress(asyncio.CancelledError):
                    await consumer.commit_soon({P0: 2})
                consumer.seek_to_beginning()
                assert await rest_of(consumer, 0) == list(range(RECORDS))
                await asyncio.wait_for(consumer.commit(), TEN_S)
        await eventually(lambda: tasks_of_ours() == before)
        assert group.committed == {0: RECORDS}
    return bool(reached)


READER_CALLS: dict[str, Callable[[PartitionReader], Coroutine[Any, Any, Any]]] = {
    "partitions": lambda reader: reader.partitions(TOPIC),
    "leader": lambda reader: reader.leader(P0),
    "offset_at": lambda reader: reader.offset_at(P0, EARLIEST),
    "fetch": lambda reader: reader.fetch(P0, 5),
    "fetch_raw": lambda reader: reader.fetch_raw(P0, 5),
    "read": lambda reader: _read(reader),
}


def test_every_public_call_of_the_reader_is_cancelled_here() -> None:
    assert awaited(PartitionReader) == set(READER_CALLS)


@pytest.mark.parametrize("name", READER_CALLS)
async def test_a_partition_reader_answers_the_same_after_a_cancelled_call(name: str) -> None:
    async with serving() as group:
        before = tasks_of_ours()
        config = ClientConfig(bootstrap_servers=group.brokers[0].address)
        async with PartitionReader(config) as reader:
            results = [result async for result in each_suspension(lambda: READER_CALLS[name](reader))]
            again = await asyncio.wait_for(READER_CALLS[name](reader), TEN_S)
            assert again is not None
            assert all(result in (None, again) for result in results)
        await eventually(lambda: tasks_of_ours() == before)


async def _read(reader: PartitionReader) -> list[int]:
    return [record.offset async for record in reader.read(P0, 0, stop=RECORDS)]
