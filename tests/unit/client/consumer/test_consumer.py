"""The consumer on scripted brokers: when it commits by itself, what it costs to be cancelled, what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.client.consumer.bookkeeper import Bookkeeper, consuming
from tests.unit.client.consumer.kit import P0, P1, batch
from tests.unit.client.network.scripted import eventually

from rota.client.config import ConsumerConfig
from rota.client.consumer.auto_commit import NEVER
from rota.client.consumer.consumer import Consumer
from rota.client.errors import BrokerError, ConfigError, IllegalUse
from rota.protocol.errors import ErrorCode

TEN_S = 10


def feed() -> Bookkeeper:
    keeper = Bookkeeper(2)
    keeper.write(0, batch(0, 10))
    return keeper


def answered(consumer: Consumer) -> bool:
    """No automatic commit is under way."""
    return consumer._committer.queue.auto.next_ms != NEVER


async def first(consumer: Consumer) -> int:
    return (await asyncio.wait_for(consumer.getone(), TEN_S)).offset


async def test_c1_each_getone_commits_the_record_of_the_previous_call() -> None:
    keeper = feed()
    async with consuming(keeper, auto_commit_interval_ms=0) as consumer:
        consumer.assign(P0)
        for offset in range(10):
            assert await first(consumer) == offset
            assert all(offsets[0] <= offset for offsets in keeper.commits), "the record in hand is not"
            if offset:
                await eventually(lambda offset=offset: keeper.committed.get(0) == offset)  # type: ignore[misc]
            await eventually(lambda: answered(consumer))
    assert keeper.committed == {0: 10}


async def test_each_getmany_commits_the_records_of_the_previous_call() -> None:
    keeper = feed()
    async with consuming(keeper, auto_commit_interval_ms=0) as consumer:
        consumer.assign(P0)
        assert len((await consumer.getmany(4, timeout_ms=10_000))[P0]) == 4
        assert not any(offsets[0] for offsets in keeper.commits)
        await eventually(lambda: answered(consumer))
        await consumer.getmany(4, timeout_ms=10_000)
        await eventually(lambda: keeper.committed.get(0) == 4)


async def test_a_commit_that_is_not_answered_holds_up_no_poll_and_is_the_only_one() -> None:
    keeper = feed()
    keeper.open.clear()
    async with consuming(keeper, auto_commit_interval_ms=0) as consumer:
        consumer.assign(P0)
        for offset in range(10):
            assert await first(consumer) == offset
            await asyncio.sleep(0.001)
        assert len(keeper.commits) <= 1
        keeper.open.set()
    assert keeper.committed == {0: 10}


async def test_without_automatic_commits_nothing_is_committed() -> None:
    keeper = feed()
    async with consuming(keeper, auto_commit_interval_ms=0, enable_auto_commit=False) as consumer:
        consumer.assign(P0)
        assert await first(consumer) == 0
        assert await first(consumer) == 1
    assert keeper.commits == []


@pytest.mark.parametrize("error", [ZeroDivisionError, asyncio.CancelledError])
async def test_leaving_by_an_exception_commits_the_records_before_the_last_call(error: type[BaseException]) -> None:
    keeper = feed()

    async def fails() -> None:
        async with consuming(keeper) as consumer:
            consumer.assign(P0)
            await consumer.getmany(4, timeout_ms=10_000)
            await consumer.getmany(4, timeout_ms=10_000)
            raise error

    with pytest.raises(error):
        await fails()
    assert keeper.committed == {0: 4}


async def test_an_exception_of_the_call_itself_commits_everything_handed_out() -> None:
    keeper, seen = feed(), []

    async def waits() -> None:
        async with consuming(keeper) as consumer:
            consumer.assign(P0)
            while True:
                seen.append(await first(consumer))

    task = asyncio.create_task(waits())
    await eventually(lambda: len(seen) == 10)
    task.cancel()
    await asyncio.wait([task])
    assert keeper.committed == {0: 10}


async def test_an_assignment_that_is_replaced_is_committed_without_the_record_in_hand() -> None:
    keeper = feed()
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        for offset in range(3):
            assert await first(consumer) == offset
        consumer.assign(P1)
        await eventually(lambda: keeper.committed == {0: 2})
        assert consumer.assignment == {P1}


async def test_a_waiting_call_retries_a_failed_commit_and_not_a_successful_one() -> None:
    keeper = feed()
    keeper.refusals = [int(ErrorCode.REBALANCE_IN_PROGRESS)]
    async with consuming(keeper, auto_commit_interval_ms=0) as consumer:
        consumer.assign(P0)
        assert len((await consumer.getmany(timeout_ms=10_000))[P0]) == 10
        keeper.commits.clear()
        waiting = asyncio.create_task(consumer.getmany(timeout_ms=10_000))
        await eventually(lambda: keeper.committed == {0: 10})
        keeper.write(1, batch(0, 1))
        landed = len(keeper.commits)
        consumer._notice()
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(keeper.commits) == landed
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_commits_of_a_callback_are_complete_when_the_consumer_is_closed() -> None:
    keeper = feed()
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign(P0)
        for offset in range(1, 6):
            consumer.commit_soon({P0: offset})
    assert keeper.committed == {0: 5}


async def test_once_the_end_has_begun_nothing_more_is_handed_out() -> None:
    keeper, seen = feed(), []
    keeper.open.clear()
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        assert await first(consumer) == 0
        closing = asyncio.create_task(consumer.close())
        await eventually(lambda: keeper.commits)
        seen += [item.offset async for item in consumer]
        assert await consumer.getmany() == {}
        assert await consumer.getmany() == {}
        keeper.open.set()
        await closing
    assert seen == []
    assert keeper.committed == {0: 1}


async def test_seeks_count_for_commits() -> None:
    keeper = feed()
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        await first(consumer)
        consumer.seek(P0, 7)
    assert keeper.committed == {0: 7}


async def test_the_end_commits_once_more_when_the_broker_is_not_ready() -> None:
    keeper = feed()
    keeper.refusals = [int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), int(ErrorCode.NOT_COORDINATOR)]
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        await first(consumer)
    assert keeper.committed == {0: 1}


async def test_the_end_is_not_held_up_by_a_broker_that_is_silent() -> None:
    keeper = feed()
    keeper.open.clear()
    async with asyncio.timeout(TEN_S), consuming(keeper) as consumer:
        consumer.assign(P0)
        await first(consumer)
        await consumer.close(timeout_ms=50)
        assert consumer.state == "CLOSED"
        keeper.open.set()


async def test_one_partition_that_is_not_found_holds_up_no_other() -> None:
    keeper = feed()
    keeper.silent = {1}
    async with consuming(keeper) as consumer:
        consumer.assign([P0, P1])
        assert [await first(consumer) for _ in range(10)] == list(range(10))
        keeper.write(1, batch(0, 1))
        keeper.silent = set()
        assert (await asyncio.wait_for(consumer.getone(), TEN_S)).partition == 1


async def test_async_for_ends_when_the_consumer_is_closed_meanwhile() -> None:
    keeper = feed()
    seen = []
    async with consuming(keeper) as consumer:
        consumer.assign(P0)

        async def read() -> None:
            async for record in consumer:
                seen.append(record.offset)

        reading = asyncio.create_task(read())
        await eventually(lambda: len(seen) == 10)
        await consumer.close()
        await asyncio.wait_for(reading, TEN_S)
        assert [item async for item in consumer] == []
    with pytest.raises(IllegalUse, match="closed"):
        await consumer.getone()


async def test_a_waiting_getone_raises_when_the_consumer_is_closed() -> None:
    keeper = Bookkeeper()
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        waiting = asyncio.create_task(consumer.getone())
        await eventually(keeper.requests)
        await consumer.close()
        with pytest.raises(IllegalUse, match="was closed"):
            await waiting


async def test_a_fatal_commit_failure_is_raised_to_its_caller() -> None:
    keeper = feed()
    keeper.refusals = [int(ErrorCode.GROUP_AUTHORIZATION_FAILED)] * 2
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign(P0)
        await first(consumer)
        with pytest.raises(BrokerError, match="orders-0"):
            await consumer.commit()
        with pytest.raises(BrokerError, match="orders-0"):
            await consumer.commit_soon()
        await consumer.commit_soon()
    assert keeper.committed == {0: 1}


def consumer(**settings: Any) -> Consumer:
    return Consumer(ConsumerConfig(bootstrap_servers="nowhere.invalid:1", **settings))


async def test_subscribe_is_allowed_before_start() -> None:
    made = consumer(group_id="tellers")
    made.subscribe(["orders"])
    assert made.state == "NEW"
    assert repr(made) == "<Consumer client_id='rota' group='tellers' NEW []>"
    with pytest.raises(IllegalUse, match="unsubscribe"):
        made.assign(P0)
    await made.close()
    with pytest.raises(IllegalUse, match="closed"):
        made.subscribe(["orders"])


def test_a_consumer_is_made_outside_of_a_loop() -> None:
    assert consumer().assignment == frozenset()


def test_properties_make_a_consumer() -> None:
    made = Consumer.from_properties({"bootstrap.servers": "nowhere.invalid:1", "group.id": "tellers"})
    assert made.group.group_id == "tellers"
    with pytest.raises(ConfigError, match="did you mean"):
        Consumer.from_properties({"bootstrap.servers": "nowhere.invalid:1", "group.ids": "tellers"})


async def test_c14_records_that_were_taken_of_a_deleted_topic_are_not_delivered_nor_committed_for_the_next_one() -> (
    None
):
    """Their offsets counted for the new topic, whose first records the next owner of the partition passed over."""
    keeper = Bookkeeper(1)
    keeper.write(0, batch(0, 10))
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign(P0)
        delivered = [await first(consumer) for _ in range(3)]
        keeper.topic_id = bytes(range(1, 17))
        keeper.batches[0] = [batch(0, 20)]
        await consumer._cluster.refresh()
        assert consumer.delivered_offsets() == {}
        delivered += [await first(consumer) for _ in range(2)]
        assert (delivered, consumer.delivered_offsets()[P0].offset) == ([0, 1, 2, 0, 1], 2)


@pytest.mark.parametrize("how", ["taken records are put back", "seek"])
async def test_c14_a_position_that_is_paused_does_not_belong_to_the_next_topic_of_its_name(how: str) -> None:
    """It had no topic until its first fetch, and was one in the new topic."""
    keeper = Bookkeeper(1)
    keeper.write(0, batch(0, 10))
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign(P0)
        assert [await first(consumer) for _ in range(3)] == [0, 1, 2]
        consumer.pause(P0)
        if how == "seek":
            consumer.seek(P0, 5)
        keeper.topic_id = bytes(range(1, 17))
        keeper.batches[0] = [batch(0, 20)]
        await consumer._cluster.refresh()
        consumer.resume(P0)
        assert await first(consumer) == 0
