"""Transactions on three brokers: the coordinator, or the leader of a partition, dies in the middle of one."""

from __future__ import annotations

import pytest
from tests.cluster.brokers import Brokers, until

from rota.client import Producer, ProducerConfig
from rota.coordinator.broker import Broker
from rota.coordinator.metadata.topic import TRANSACTION_STATE
from rota.coordinator.runtime.routing import shard_of

PROPERTIES = {"transaction.state.log.num.partitions": "4", "default.replication.factor": "3"}


def coordinator(brokers: Brokers) -> int:
    return brokers.leader(TRANSACTION_STATE, shard_of("tx", 4))


def is_stable(brokers: Brokers) -> bool:
    """All transactions of the topic have their markers: the last stable offset is the end."""

    def leads(broker: Broker, index: int) -> bool:
        partition = broker.partitions.get("t", index)
        return (
            partition is not None
            and partition.is_leader
            and partition.high_watermark > 0
            and partition.last_stable_offset == partition.high_watermark == partition.log.log_end_offset
        )

    return all(any(leads(broker, index) for broker in brokers.by_id.values()) for index in range(2))


async def produce(producer: Producer, value: bytes) -> None:
    for partition in range(2):
        await (await producer.send("t", value, partition=partition))


@pytest.mark.parametrize("victim", ["coordinator", "leader"])
async def test_a_transaction_survives_the_death_of_a_broker(victim: str) -> None:
    async with Brokers(3, PROPERTIES) as brokers:
        await brokers.by_id[1].topics.create("t", 2, 3)
        await until(lambda: brokers.leader("t", 0) > 0)
        config = ProducerConfig(bootstrap_servers=brokers.bootstrap(), transactional_id="tx")
        async with Producer(config) as producer:
            async with producer.transaction():
                await produce(producer, b"one")
            async with producer.transaction():
                await produce(producer, b"two")
                dead = coordinator(brokers) if victim == "coordinator" else brokers.leader("t", 0)
                await brokers.crash(dead)
                await until(lambda: coordinator(brokers) not in (-1, dead), "a new coordinator")
            await until(lambda: is_stable(brokers), "the markers")
            async with producer.transaction():
                await produce(producer, b"three")
            await until(lambda: is_stable(brokers), "the markers")


async def test_a_decision_is_completed_by_the_next_coordinator() -> None:
    """The coordinator dies before its markers are written: its standby has the decision and writes them."""
    async with Brokers(3, PROPERTIES) as brokers:
        await brokers.by_id[1].topics.create("t", 2, 3)
        await until(lambda: brokers.leader("t", 0) > 0)
        config = ProducerConfig(bootstrap_servers=brokers.bootstrap(), transactional_id="tx")
        async with Producer(config) as producer:
            await producer.begin_transaction()
            await produce(producer, b"x")
            dead = coordinator(brokers)
            brokers.by_id[dead].markers.submit = lambda job: None  # type: ignore[method-assign]
            await producer.commit_transaction()
            assert not is_stable(brokers)
            await brokers.crash(dead)
            await until(lambda: is_stable(brokers), "the markers of the new coordinator")
