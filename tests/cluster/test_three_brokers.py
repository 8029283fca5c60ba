from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.cluster.brokers import Brokers, until

from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, NewTopic, Producer, ProducerConfig
from rota.coordinator.group.machine import Group


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    async with Brokers(3) as three:
        yield three


async def consume(brokers: Brokers, count: int, group_id: str = "g") -> list[bytes]:
    config = ConsumerConfig(bootstrap_servers=brokers.bootstrap(), group_id=group_id, auto_offset_reset="earliest")
    values: list[bytes] = []
    async with asyncio.timeout(20), Consumer(config) as consumer:
        consumer.subscribe(["t"])
        async for record in consumer:
            values.append(record.value or b"")
            if len(values) == count:
                await consumer.commit()
                return values
    return values


async def produce(brokers: Brokers, first: int, count: int, *, partitions: int = 3) -> None:
    config = ProducerConfig(bootstrap_servers=brokers.bootstrap(), acks="all")
    async with asyncio.timeout(20), Producer(config) as producer:
        for n in range(first, first + count):
            await producer.send("t", b"%d" % n, partition=n % partitions)


async def create(brokers: Brokers, partitions: int = 3, replicas: int = 3) -> None:
    async with Admin(AdminConfig(bootstrap_servers=brokers.bootstrap())) as admin:
        await admin.create_topics([NewTopic("t", partitions, replicas)])


async def test_every_broker_returns_all_brokers_and_the_same_controller(brokers: Brokers) -> None:
    controllers = set()
    for broker_id in brokers.ids:
        async with Admin(AdminConfig(bootstrap_servers=brokers.bootstrap(broker_id))) as admin:
            cluster = await admin.describe_cluster()
            assert [node.id for node in cluster.nodes] == [1, 2, 3]
            assert cluster.controller is not None
            controllers.add(cluster.controller.id)
    assert len(controllers) == 1


async def test_records_of_leaders_are_replicated_and_consumed(brokers: Brokers) -> None:
    await create(brokers)
    await produce(brokers, 0, 30)
    copies = [
        partition
        for broker in brokers.by_id.values()
        for index in range(3)
        if (partition := broker.partitions.get("t", index)) is not None
    ]
    assert len(copies) == 9
    await until(lambda: all(copy.high_watermark == 10 for copy in copies), "followers learn the high watermark")
    assert sorted(await consume(brokers, 30)) == sorted(b"%d" % n for n in range(30))


async def test_after_a_stop_the_others_go_on_with_everything(brokers: Brokers) -> None:
    await create(brokers)
    await produce(brokers, 0, 30)
    assert len(await consume(brokers, 30)) == 30
    for broker_id in (1, 2):
        await brokers.stop(broker_id)
        await until(lambda: all(brokers.leader("t", index) in brokers.by_id for index in range(3)), "new leaders")
        await produce(brokers, broker_id * 30, 30)
        expected = {b"%d" % n for n in range(broker_id * 30, broker_id * 30 + 30)}
        assert set(await consume(brokers, 30)) == expected  # from the committed offsets on


def ids(group: Group) -> set[str]:
    return {member.member_id for member in group.members}


@pytest.mark.parametrize("role", ["controller", "follower of the controller"])
async def test_after_a_crash_the_others_go_on_long_before_the_session_expires(brokers: Brokers, role: str) -> None:
    await create(brokers)
    await produce(brokers, 0, 30)
    assert len(await consume(brokers, 30)) == 30
    controller = brokers.by_id[1].topics.controller_id
    victim = next(n for n in brokers.ids if (n == controller) == (role == "controller"))
    await brokers.crash(victim)
    await until(lambda: all(brokers.leader("t", index) in brokers.by_id for index in range(3)), "new leaders")
    await produce(brokers, 30, 30)
    assert set(await consume(brokers, 30)) == {b"%d" % n for n in range(30, 60)}


async def test_members_keep_ids_and_generation_when_their_coordinator_crashes(brokers: Brokers) -> None:
    await create(brokers)
    await produce(brokers, 0, 3)
    config = ConsumerConfig(bootstrap_servers=brokers.bootstrap(), group_id="g", auto_offset_reset="earliest")
    rebalances: list[str] = []
    async with asyncio.timeout(30), Consumer(config) as consumer:
        consumer.subscribe(["t"], on_assigned=lambda partitions: rebalances.append(f"{len(partitions)}"))
        for _ in range(3):
            await anext(consumer)
        await consumer.commit()
        coordinator = brokers.coordinator("g")
        before = brokers.group("g")
        await brokers.crash(coordinator)
        await produce(brokers, 3, 3)
        for _ in range(3):
            await anext(consumer)
        await consumer.commit()
        after = brokers.group("g")
        assert brokers.coordinator("g") != coordinator
        assert (after.generation, ids(after)) == (before.generation, ids(before))
        assert rebalances == ["3"]


async def test_records_in_flight_are_acknowledged_soon_after_a_crash(brokers: Brokers) -> None:
    """Partitions whose leader lives wait for the dead follower only until the controller has removed it."""
    await create(brokers)
    crashed = asyncio.Event()

    async def produce_through_the_crash(partition: int) -> None:
        config = ProducerConfig(bootstrap_servers=brokers.bootstrap(), acks="all", linger_ms=0)
        async with Producer(config) as producer:
            after = 0
            while after < 20:
                await (await producer.send("t", b"x", partition=partition))
                after += crashed.is_set()

    async with asyncio.timeout(15), asyncio.TaskGroup() as tasks:
        for partition in range(3):
            tasks.create_task(produce_through_the_crash(partition))
        await until(lambda: brokers.high_watermarks("t") > 30)
        await brokers.crash(brokers.leader("t", 0))
        crashed.set()
