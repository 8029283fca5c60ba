"""Positions as the user sees them, seeks and pauses, on scripted brokers."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.consumer.bookkeeper import Bookkeeper, consuming
from tests.unit.client.consumer.kit import P0, P1, batch

from rota.client.consumer.consumer import Consumer
from rota.client.errors import IllegalUse
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.messages.fetch import PartitionData


def feed() -> Bookkeeper:
    keeper = Bookkeeper(2)
    keeper.write(0, batch(0, 10))
    return keeper


async def first(consumer: Consumer) -> int:
    return (await asyncio.wait_for(consumer.getone(), 10)).offset


async def test_the_position_is_behind_the_record_in_hand_while_others_wait() -> None:
    async with consuming(feed()) as consumer:
        consumer.assign([P0, P1])
        assert consumer.lag(P0) is None
        for offset in range(3):
            assert await first(consumer) == offset
            assert await consumer.position(P0) == offset + 1
            assert consumer.lag(P0) == 9 - offset
        with pytest.raises(IllegalUse, match="not assigned"):
            await consumer.position(TopicPartition("orders", 9))


async def test_a_seek_skips_buffered_records() -> None:
    async with consuming(feed()) as consumer:
        consumer.assign(P0)
        assert await first(consumer) == 0
        consumer.seek(P0, OffsetAndMetadata(6, leader_epoch=0))
        assert [await first(consumer), await first(consumer)] == [6, 7]
        consumer.seek_to_beginning()
        assert await first(consumer) == 0
        consumer.seek_to_end(P0)
        assert await consumer.position(P0) == 10


async def test_buffered_records_of_a_paused_partition_are_returned_after_resume() -> None:
    keeper = feed()
    keeper.write(1, batch(0, 1))
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        assert await first(consumer) == 0
        consumer.pause()
        assert consumer.paused == {P0}
        assert await consumer.getmany(timeout_ms=20) == {}
        assert await consumer.position(P0) == 1
        consumer.resume(P0)
        assert await first(consumer) == 1


async def test_seek_to_time_after_the_last_record_seeks_to_the_end() -> None:
    async with consuming(feed()) as consumer:
        consumer.assign([P0, P1])
        assert await consumer.seek_to_time(5) == {P0: None, P1: None}
        assert await consumer.position(P0) == 10
        with pytest.raises(IllegalUse, match="milliseconds"):
            await consumer.seek_to_time(-5)


@pytest.mark.parametrize("call", ["pause", "resume", "seek_to_beginning", "seek_to_end"])
async def test_a_call_with_an_unassigned_partition_changes_nothing(call: str) -> None:
    async with consuming(feed()) as consumer:
        consumer.assign(P0)
        consumer.seek(P0, 4)
        with pytest.raises(IllegalUse, match="orders-1"):
            getattr(consumer, call)([P0, P1])
        assert consumer.paused == frozenset()
        assert await consumer.position(P0) == 4


async def test_ends_of_partitions_that_are_not_assigned() -> None:
    async with consuming(feed()) as consumer:
        assert await consumer.end_offsets([P0, P1]) == {P0: 10, P1: 0}
        assert await consumer.beginning_offsets(P0) == {P0: 0}
        assert [item.partition for item in await consumer.partitions_for("orders")] == [0, 1]
        assert list(await consumer.topics()) == ["orders"]


def transactions_open(high_watermark: int, last_stable_offset: int) -> PartitionData:
    return PartitionData(
        partition_index=0,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=0,
        records=batch(0, 2),
    )


@pytest.mark.parametrize(("isolation_level", "lag"), [("read_committed", 4), ("read_uncommitted", 8)])
async def test_the_lag_ends_where_the_consumer_can_read_to(isolation_level: str, lag: int) -> None:
    keeper = Bookkeeper(1)
    keeper.instead[0] = [transactions_open(10, 6)]
    async with consuming(keeper, isolation_level=isolation_level) as consumer:
        consumer.assign(P0)
        assert await first(consumer) == 0
        assert await first(consumer) == 1
        assert consumer.lag(P0) == lag


async def test_lag_is_not_negative_below_the_position() -> None:
    keeper = Bookkeeper(1)
    keeper.instead[0] = [transactions_open(1, 1)]
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        assert [await first(consumer) for _ in range(2)] == [0, 1]
        assert consumer.lag(P0) == 0


async def test_a_lower_high_watermark_of_a_new_leader_keeps_the_position() -> None:
    """The new leader of a partition may know of a lower high watermark than the old one for a while."""
    keeper = Bookkeeper(1)
    keeper.write(0, batch(0, 5))
    behind = PartitionData(partition_index=0, high_watermark=2, last_stable_offset=2, log_start_offset=0)
    async with consuming(keeper, auto_offset_reset="none", group_id=None) as consumer:
        consumer.assign(P0)
        consumer.seek(P0, 0)
        assert [await first(consumer) for _ in range(5)] == list(range(5))
        keeper.instead[0] = [behind]
        assert await consumer.getmany(timeout_ms=100) == {}
        assert await consumer.position(P0) == 5
        assert consumer.lag(P0) == 0
        keeper.write(0, batch(5, 5))
        assert [await first(consumer) for _ in range(5)] == list(range(5, 10))
