"""A log fails on one broker and comes back without its tail; in memory it comes back empty."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.cluster.brokers import Brokers, until

from rota.client import Producer, ProducerConfig
from rota.coordinator.replica.partition import Partition


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    async with Brokers(3) as three:
        await three.by_id[1].topics.create("t", 1, 3)
        await until(lambda: all(broker.partitions.get("t", 0) for broker in three.by_id.values()), "replicas")
        yield three


def replica(brokers: Brokers, broker_id: int) -> Partition:
    partition = brokers.by_id[broker_id].partitions.get("t", 0)
    assert partition is not None
    return partition


async def produce(brokers: Brokers, count: int) -> None:
    """Returns when all records are acknowledged."""
    async with asyncio.timeout(20), Producer(ProducerConfig(bootstrap_servers=brokers.bootstrap())) as producer:
        for number in range(count):
            await producer.send("t", b"%d" % number, partition=0)


@pytest.mark.parametrize("role", ["leader", "follower"])
async def test_a_log_that_lost_acknowledged_records_takes_them_from_the_isr(brokers: Brokers, role: str) -> None:
    await produce(brokers, 20)
    leader = brokers.leader("t", 0)
    failed = leader if role == "leader" else next(item for item in brokers.ids if item != leader)
    partition = replica(brokers, failed)

    def has_all_records() -> bool:
        if partition.offline is not None:
            return False
        state, end = brokers.by_id[failed].topics.partition("t", 0), partition.log.log_end_offset
        assert state is not None
        assert end == 20 or failed not in (state.leader, *state.isr), f"it counts with {end} of 20 records"
        return end == 20

    partition.fail("the disk is broken")
    await until(has_all_records, "a copy of the leader's log")
    assert min(replica(brokers, item).log.log_end_offset for item in brokers.ids) == 20
    await produce(brokers, 5)
    await until(lambda: all(replica(brokers, item).log.log_end_offset == 25 for item in brokers.ids), "equal logs")
