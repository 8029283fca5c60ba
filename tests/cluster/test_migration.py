"""A broker that was alone becomes the first broker of a cluster, with everything that its folder holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.cluster.brokers import Brokers, until

from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata.identity import WrongCluster
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.topic import GROUP_TIMELINE
from rota.coordinator.metadata.tree_session import TreeSession


async def consume(bootstrap: str, count: int) -> list[bytes]:
    config = ConsumerConfig(bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest")
    values: list[bytes] = []
    async with asyncio.timeout(20), Consumer(config) as consumer:
        consumer.subscribe(["t"])
        async for record in consumer:
            values.append(record.value or b"")
            if len(values) == count:
                await consumer.commit()
                break
    return values


async def produce(bootstrap: str, first: int, count: int) -> None:
    async with asyncio.timeout(20), Producer(ProducerConfig(bootstrap_servers=bootstrap, acks="all")) as producer:
        for n in range(first, first + count):
            await producer.send("t", b"%d" % n)


def times(broker: Broker) -> list[int]:
    return [event.time_ms for event in broker.groups.timelines.of("g")]


async def test_records_and_committed_offsets_of_a_broker_that_was_alone_are_in_the_cluster(tmp_path: Path) -> None:
    brokers = Brokers(3)
    properties = {
        **brokers.properties,
        "log.dirs": str(tmp_path),
        "node.id": "1",
        "offsets.topic.replication.factor": "1",
    }
    async with Broker(BrokerConfig(properties)) as alone:
        host, port = alone.address
        await produce(f"{host}:{port}", 0, 20)
        assert set(await consume(f"{host}:{port}", 20)) == {b"%d" % n for n in range(20)}
        cluster_id = alone.topics.cluster_id
        events = alone.groups.timelines.of("g")
        assert events

    async def open_store() -> TreeSession:
        return TreeSession(brokers.tree)

    first = brokers.by_id[1] = Broker(BrokerConfig(properties), open_store=open_store)
    await first.start()
    try:
        for broker_id in (2, 3):
            await brokers.start(broker_id)
        await brokers.see_each_other()
        await until(lambda: brokers.leader("t", 0) == 1, "the first broker leads what it has brought along")
        assert first.topics.cluster_id == cluster_id
        last = first.config.offsets_topic_num_partitions - 1
        await until(lambda: brokers.leader(GROUP_TIMELINE, last) == 1, "a timeline partition for each of groups")
        await until(
            lambda: times(first)[: len(events)] == [event.time_ms for event in events], "the timeline has moved"
        )
        await produce(brokers.bootstrap(), 20, 20)
        assert set(await consume(brokers.bootstrap(), 20)) == {b"%d" % n for n in range(20, 40)}
        async with Admin(AdminConfig(bootstrap_servers=brokers.bootstrap(3))) as admin:
            assert "t" in await admin.list_topics()
    finally:
        for broker_id in list(brokers.by_id):
            await brokers.stop(broker_id)
        await brokers.tree.close()


async def test_brokers_do_not_start_on_existing_logs_with_an_empty_store(tmp_path: Path) -> None:
    properties = {**Brokers(1).properties, "log.dirs": str(tmp_path), "offsets.topic.replication.factor": "1"}
    trees = [SharedTree(), SharedTree()]

    async def member(tree: SharedTree) -> Broker:
        async def open_store() -> TreeSession:
            return TreeSession(tree)

        broker = Broker(BrokerConfig(properties), open_store=open_store)
        await broker.start()
        return broker

    for tree in (trees[0], trees[0]):
        broker = await member(tree)
        host, port = broker.address
        await produce(f"{host}:{port}", 0, 1)
        await broker.stop()
    with pytest.raises(WrongCluster, match="the metadata store is empty"):
        await member(trees[1])
    broker = await member(trees[0])
    assert broker.partitions.all()[0].log.log_end_offset == 2
    await broker.stop()
    for tree in trees:
        await tree.close()
