from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from rota.coordinator.cluster import Cluster
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.membership.contract import Alive, Suspected
from rota.coordinator.metadata.changes import Change, PartitionsChanged
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.metadata.registration import Registration, last_epoch, last_registrations, register
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import ANY_VERSION
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.metadata.tree_session import TreeSession
from rota.coordinator.scheduling.clock import Clock
from rota.coordinator.scheduling.timers import Timers

HERE = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]


@asynccontextmanager
async def opened(store: EmbeddedStore) -> AsyncIterator[Cluster]:
    clock = Clock()
    timers = Timers(clock.now_ms)
    member = Cluster(
        BrokerConfig({"node.id": "1"}),
        store,
        cluster_id=None,
        timers=timers,
        now_ms=clock.now_ms,
        wall_ms=clock.wall_ms,
    )
    await member.open(was_clean=True)
    try:
        yield member
    finally:
        await member.close()
        timers.stop()


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with opened(EmbeddedStore()) as member:
        yield member


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def test_a_broker_leads_nothing_before_it_has_joined(cluster: Cluster) -> None:
    topics = cluster.topics
    assert topics.broker_epoch == NOT_REGISTERED
    await cluster.join(HERE, 0)
    assert topics.broker_epoch > 0
    assert topics.brokers[1].epoch == topics.broker_epoch, "the image has the registration that counts"


async def test_each_life_of_a_broker_leaves_its_registration(cluster: Cluster) -> None:
    """RG2."""
    await cluster.join(HERE, 0)
    await cluster.leave()
    (known,) = await last_registrations(cluster.topics.store, (1,))
    assert known.endpoints == tuple(HERE)


async def test_a_broker_whose_registration_was_deleted_leads_nothing_and_registers_again(cluster: Cluster) -> None:
    topics = cluster.topics
    await cluster.join(HERE, 0)
    await until(lambda: 1 in topics.brokers)
    await topics.create("t", 2)
    first = topics.broker_epoch
    led: list[bool] = []

    def changed(change: Change) -> None:
        if isinstance(change, PartitionsChanged):
            assert change.indexes == (0, 1)
            led.append(topics.is_leader(change.topic.partitions[0]))

    assert all(topics.is_leader(state) for topic in topics for state in topic.partitions)
    topics.on_change(changed)
    await topics.store.delete("/brokers/ids/1")
    await until(lambda: topics.broker_epoch > first)
    assert led == [False]
    assert not any(topics.is_leader(state) for topic in topics for state in topic.partitions)


async def test_an_unreachable_broker_is_suspected_until_it_responds(cluster: Cluster) -> None:
    """LB1."""
    await cluster.join(HERE, 0)
    cluster.unreachable(2)
    assert 2 not in cluster.lost_brokers, "nobody leads under an id that is not registered"
    await register(cluster.topics.store, 2, Registration(HERE), wall_ms=0)
    await until(lambda: 2 in cluster.topics.brokers)
    cluster.unreachable(2)
    assert 2 in cluster.lost_brokers
    epoch = cluster.topics.brokers[2].epoch
    cluster._liveness_changed(Alive(2, epoch))
    assert 2 not in cluster.lost_brokers
    cluster._liveness_changed(Suspected(2, epoch))
    assert 2 in cluster.lost_brokers
    await cluster.topics.store.delete("/brokers/ids/2")
    await until(lambda: 2 not in cluster.topics.brokers)
    assert set(cluster.lost_brokers.departed()) == {2}


async def test_leaving_ends_the_registration_for_good(cluster: Cluster) -> None:
    await cluster.join(HERE, 0)
    await until(lambda: 1 in cluster.topics.brokers)
    await cluster.leave()
    await until(lambda: not cluster.topics.brokers)
    assert await cluster.topics.store.exists("/brokers/ids/1") is None
    assert cluster.topics.broker_epoch == NOT_REGISTERED


async def test_the_failure_detector_uses_the_listener_between_brokers() -> None:
    clock = Clock()
    timers = Timers(clock.now_ms)
    config = BrokerConfig(
        {
            "node.id": "1",
            "listeners": "OUTSIDE://127.0.0.1:0,INSIDE://127.0.0.2:0",
            "advertised.listeners": "OUTSIDE://example.org:9092,INSIDE://inside.example.org:9093",
            "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
        }
    )
    member = Cluster(
        config,
        EmbeddedStore(),
        cluster_id=None,
        timers=timers,
        now_ms=clock.now_ms,
        wall_ms=clock.wall_ms,
    )
    await member.open(was_clean=True)
    await member.join(config.advertises, 0)
    host, _, port = member.topics.brokers[1].swim.rpartition(":")
    assert host == "inside.example.org"
    assert member._swim is not None
    assert member._swim.address == ("127.0.0.2", int(port))
    await member.close()
    timers.stop()


async def test_a_broker_that_lost_power_gives_up_its_claims_before_it_registers(cluster: Cluster) -> None:
    """CM5."""
    topics = cluster.topics
    await cluster.join(HERE, 0)
    await register(topics.store, 2, Registration(HERE), wall_ms=0)
    await until(lambda: set(topics.brokers) == {1, 2})
    created = await topics.create("t", 1, 2)
    assert isinstance(created, Topic)
    again = Cluster(
        BrokerConfig({"node.id": "2"}),
        topics.store,
        cluster_id=topics.cluster_id,
        timers=Timers(lambda: 0),
        now_ms=lambda: 0,
        wall_ms=lambda: 0,
    )
    await again.open(was_clean=False, has_possible_data_loss=True)
    state = again.topics.partition("t", 0)
    assert state is not None
    assert state.isr == (1,)


@pytest.mark.parametrize("is_written", [True, False])
async def test_cm5_what_a_folder_knows_of_its_registration_is_remembered(*, is_written: bool) -> None:
    """A folder that cannot be written is no older one at the next start."""
    noted, shared = list[int](), SharedTree()

    def note(epoch: int) -> None:
        if not is_written:
            raise StorageFailed("read-only file system")
        noted.append(epoch)

    for _ in range(2):
        clock = Clock()
        timers, knows = Timers(clock.now_ms), noted[-1] if noted else -1
        member = Cluster(
            BrokerConfig({"node.id": "1"}),
            TreeSession(shared),
            cluster_id=None,
            timers=timers,
            now_ms=clock.now_ms,
            wall_ms=clock.wall_ms,
        )
        await member.open(was_clean=True, registered_epoch=knows, note_registered=note)
        assert not await member._is_folder_outdated()
        await member.join(HERE, 0)
        assert await last_epoch(member.topics.store, 1) == (member.topics.broker_epoch if is_written else -1)
        await member.close()
        timers.stop()
    assert noted == sorted(set(noted))


async def test_cm5_a_disk_that_hangs_does_not_hold_up_a_broker_that_has_registered(cluster: Cluster) -> None:
    written = threading.Event()

    def hang() -> None:
        written.wait()

    cluster._note_registered = lambda _: hang()
    joining = asyncio.get_running_loop().create_task(cluster.join(HERE, 0))
    try:
        await until(lambda: cluster._controller.is_controller)
        assert await last_epoch(cluster.topics.store, 1) == -1
    finally:
        written.set()
        await joining
    assert await last_epoch(cluster.topics.store, 1) == cluster.topics.broker_epoch


class SlowSession(TreeSession):
    """The answer to a creation comes after the watches that it fires, as ZooKeeper's."""

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        created = await super().create(path, data, ephemeral=ephemeral, sequential=sequential)
        for _ in range(100):
            await asyncio.sleep(0)
        return created


async def test_a_broker_that_registers_again_competes_for_the_controller() -> None:
    """CT3, CT4. Its image has the registration before it knows that this is its own."""
    clock, tree = Clock(), SharedTree()
    timers, store = Timers(clock.now_ms), SlowSession(tree)
    member = Cluster(
        BrokerConfig({"node.id": "1"}),
        store,
        cluster_id=None,
        timers=timers,
        now_ms=clock.now_ms,
        wall_ms=clock.wall_ms,
    )
    await member.open(was_clean=True)
    await member.join(HERE, 0)
    before = member.topics.broker_epoch
    await store.expire()
    await until(lambda: member.topics.broker_epoch > before)
    await until(lambda: member._controller.is_controller)
    await member.close()
    timers.stop()
    await tree.close()


class SlowStore(EmbeddedStore):
    """Sets no node while `is_open` is not set; `waiting` is set when a change waits for that."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open, self.waiting = asyncio.Event(), asyncio.Event()
        self.is_open.set()

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        self.waiting.set()
        await self.is_open.wait()
        return await super().set(path, data, version)


async def test_a_broker_that_is_fenced_while_it_leaves_its_registration_registers_again() -> None:
    """Laws CM1, RG2."""
    store = SlowStore()
    async with opened(store) as member:
        await member.join(HERE, 0)
        topics, first = member.topics, member.topics.broker_epoch
        store.is_open.clear()
        store.waiting.clear()
        await store.delete("/brokers/ids/1")
        await store.waiting.wait()
        second = topics.broker_epoch
        await store.delete("/brokers/ids/1")
        await until(lambda: topics.broker_epoch == NOT_REGISTERED)
        store.is_open.set()
        await until(lambda: topics.broker_epoch > second > first)
