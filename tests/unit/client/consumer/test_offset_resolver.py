"""Where reading starts, on scripted brokers."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.unit.client.consumer.bookkeeper import Bookkeeper, consuming
from tests.unit.client.consumer.kit import P0, P1, batch
from tests.unit.client.network.scripted import eventually

from rota.client.consumer.offset_resolver import time_of
from rota.client.errors import BrokerError, NoOffset, TimedOut
from rota.protocol.errors import ErrorCode


def feed(**committed: int) -> Bookkeeper:
    keeper = Bookkeeper(2)
    keeper.write(0, batch(0, 10))
    keeper.committed = {int(name[1:]): offset for name, offset in committed.items()}
    return keeper


async def test_the_position_is_the_committed_offset_else_that_of_the_policy(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rota.client.consumer")
    async with consuming(feed(p0=4), auto_offset_reset="latest") as consumer:
        consumer.assign([P0, P1])
        assert await consumer.position(P0) == 4
        assert await consumer.position(P1) == 0
    assert "Setting offset for partition orders-0 to the committed offset 4  group='tellers'" in caplog.text
    assert "Resetting offset for partition orders-1 to position 0  group='tellers'" in caplog.text


async def test_without_a_group_the_policy_decides() -> None:
    keeper = feed(p0=4)
    async with consuming(keeper, group_id=None, auto_offset_reset="latest") as consumer:
        consumer.assign(P0)
        assert await consumer.position(P0) == 10


async def test_nothing_within_the_duration_means_the_end() -> None:
    async with consuming(feed(), auto_offset_reset="by_duration:PT1M") as consumer:
        consumer.assign(P0)
        assert await consumer.position(P0) == 10


async def test_offsets_that_a_transaction_holds_open_are_waited_for() -> None:
    keeper = feed(p0=4)
    keeper.unstable = [int(ErrorCode.UNSTABLE_OFFSET_COMMIT)] * 3
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        assert await consumer.position(P0) == 4


async def test_a_seek_during_the_lookup_is_kept() -> None:
    keeper = feed(p0=4)
    keeper.silent = {1}
    async with consuming(keeper) as consumer:
        consumer.assign([P0, P1])
        consumer._resolver.begin()
        consumer.seek(P0, 7)
        consumer.seek(P1, 3)
        task = consumer._resolver.task
        assert task is not None
        keeper.silent = set()
        await asyncio.wait([task])
        assert (await consumer.position(P0), await consumer.position(P1)) == (7, 3)


async def test_partitions_assigned_during_the_lookup_are_resolved_too() -> None:
    keeper = feed()
    keeper.silent = {1}
    async with consuming(keeper) as consumer:
        consumer.assign(P1)
        looking = asyncio.create_task(consumer.position(P1))
        await eventually(lambda: consumer._resolver.task)
        consumer._positions.assign([P0, P1])
        assert await consumer.position(P0) == 0
        keeper.silent = set()
        assert await looking == 0


async def test_a_position_that_is_not_found_in_time() -> None:
    keeper = feed()
    keeper.silent = {0}
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        with pytest.raises(TimedOut, match="orders-0"):
            await consumer.position(P0, timeout_ms=20)


async def test_none_is_an_error_once_with_each_poll_and_the_others_are_found() -> None:
    async with consuming(feed(p0=4), auto_offset_reset="none") as consumer:
        consumer.assign([P0, P1])
        consumer.pause(P0)
        for _ in range(2):
            with pytest.raises(NoOffset, match="orders-1") as raised:
                await consumer.getmany(timeout_ms=10_000)
            assert raised.value.partitions == (P1,)
        consumer.seek(P1, 0)
        assert (await consumer.position(P0), await consumer.position(P1)) == (4, 0)


async def test_an_error_of_the_lookup_is_raised_by_the_next_poll() -> None:
    keeper = feed()
    keeper.unstable = [int(ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        with pytest.raises(BrokerError, match="reading committed offsets"):
            await consumer.getmany(timeout_ms=10_000)
        assert await consumer.getmany(timeout_ms=10_000)


async def test_a_partition_without_a_response_hides_no_refusal_of_another() -> None:
    keeper = feed()
    keeper.unstable, keeper.refused, keeper.silent = [int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)] * 100, {0}, {1}
    async with consuming(keeper, default_api_timeout_ms=700, request_timeout_ms=500) as consumer:
        consumer.assign([P0, P1])
        with pytest.raises(BrokerError, match=r"reading committed offsets \(orders-0"):
            await consumer.getmany(timeout_ms=10_000)


async def test_a_partition_without_a_response_delays_no_other_that_has_nothing_so_late() -> None:
    keeper = feed()
    keeper.silent = {1}
    async with consuming(keeper, auto_offset_reset="by_duration:PT1M") as consumer:
        consumer.assign([P0, P1])
        assert await consumer.position(P0, timeout_ms=5_000) == 10


async def test_a_lookup_without_a_response_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    keeper = feed()
    keeper.silent = {0}
    async with consuming(keeper, default_api_timeout_ms=1_000, request_timeout_ms=100) as consumer:
        consumer.assign(P0)
        reading = asyncio.create_task(consumer.getmany(timeout_ms=10_000))
        await eventually(lambda: "positions were not found yet" in caplog.text)
        keeper.silent = set()
        assert await reading


def test_policies_as_times() -> None:
    assert (time_of("earliest"), time_of("latest")) == (-2, -1)
    hour_ago = time.time() * 1000 - 3_600_000
    assert abs(time_of("by_duration:PT1H") - hour_ago) < 60_000
    assert time_of("by_duration:P40000D") == 0
