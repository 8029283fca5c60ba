"""What only ZooKeeper does: chroots, access control, servers that stop, pause and answer nonsense."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.contract.store_worlds import SOON_S, Callbacks, ZooKeeperWorld, end_session
from tools.zookeeper import ZooKeeperServer

from rota.coordinator.metadata.store import EventType, OutcomeUnknown, SessionState, Store, StoreFailed, WatchEvent
from rota.coordinator.metadata.zookeeper import ZooKeeperStore

CONNECTED, SUSPENDED, EXPIRED = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.EXPIRED


@pytest.fixture
async def world(zookeeper: ZooKeeperServer) -> AsyncIterator[ZooKeeperWorld]:
    world = ZooKeeperWorld(zookeeper)
    yield world
    await world.close()


async def test_brokers_that_start_together_create_their_chroot(world: ZooKeeperWorld) -> None:
    stores = await asyncio.gather(*(world.open() for _ in range(5)))
    await stores[0].create("/a")
    assert await stores[4].children("/") == ["a"]


async def test_nodes_of_a_user_are_readable_but_not_writable_by_others(world: ZooKeeperWorld) -> None:
    owner = await world.open(digest="rota:planted-secret", set_acl=True)
    same_user = await world.open(digest="rota:planted-secret")
    unauthenticated = await world.open(digest="rota:guessed")
    await owner.create("/a", b"1")
    assert await same_user.set("/a", b"2") == 1
    assert (await unauthenticated.get("/a"))[0] == b"2"
    for call in (unauthenticated.set("/a", b"3"), unauthenticated.create("/a/b"), unauthenticated.delete("/a")):
        with pytest.raises(StoreFailed, match="ACL of /a"):
            await call
    assert (await owner.get("/a"))[0] == b"2"
    await world.reconnect(owner)  # the user is known on the next connection, too
    assert await owner.set("/a", b"4") == 2


async def test_many_reads_and_watches_are_under_way_at_once(world: ZooKeeperWorld) -> None:
    store, other, callbacks = await world.open(), await world.open(), Callbacks()
    paths = [f"/{number}" for number in range(1_000)]
    await asyncio.gather(*(store.create(path, path.encode()) for path in paths))
    answers = await asyncio.gather(*(store.get(path, callbacks.watch) for path in paths))
    assert [data.decode() for data, _ in answers] == paths
    await world.suspend(store)
    await asyncio.gather(*(other.delete(path) for path in paths))
    await world.resume(store)
    assert await store.children("/") == []
    assert sorted(callbacks.events, key=str) == sorted([WatchEvent(path, EventType.DELETED) for path in paths], key=str)


async def test_a_malformed_answer_ends_the_session_and_another_follows(world: ZooKeeperWorld) -> None:
    """kazoo's thread ends by it; without a restart the broker would be cut off for ever."""
    store, callbacks = await world.open(), Callbacks()
    store.on_session(callbacks.listener)
    await store.create("/e", ephemeral=True)
    world.lines[store].inject(b"\0\0\0\x10" + b"\x7f" * 16)
    await callbacks.state(EXPIRED)
    await callbacks.state(CONNECTED)
    await store.create("/again", ephemeral=True)


async def test_a_busy_loop_sends_nothing_in_a_session_of_which_it_has_not_heard(
    zookeeper: ZooKeeperServer, world: ZooKeeperWorld
) -> None:
    """Law S10: kazoo's thread has a new session before the loop knows that the old one has expired."""
    store, callbacks = ZooKeeperStore(zookeeper.address + world.root), Callbacks()
    await store.open()
    store.on_session(callbacks.listener)
    assert store._connection is not None
    client = store._connection._client
    session = store.session_id
    end_session(zookeeper.address, client.client_id)  # the loop stands still, here and in the next lines
    deadline = time.monotonic() + SOON_S
    while client.client_id is None or client.client_id[0] == session:
        assert time.monotonic() < deadline
    assert store.session_id == session
    with pytest.raises(StoreFailed, match="the session has expired"):
        await store.create("/late")
    await callbacks.state(CONNECTED)
    assert await store.exists("/late") is None
    assert store.session_id != session
    await store.close()


async def test_calls_fail_when_the_connection_is_lost_for_longer_than_a_session(world: ZooKeeperWorld) -> None:
    """Law S10: whoever waits for the store learns that it is not there."""
    store = await world.open(session_timeout_ms=400)
    world.lines[store].cut()
    with pytest.raises(StoreFailed, match="for 400 ms"):
        await store.get("/")
    with pytest.raises(StoreFailed):
        await store.create("/a")


async def test_closing_does_not_wait_for_an_unreachable_zookeeper(world: ZooKeeperWorld) -> None:
    store = await world.open()
    await world.suspend(store)
    call = asyncio.ensure_future(store.get("/"))
    await asyncio.sleep(0)  # it begins
    await store.close()
    with pytest.raises(StoreFailed, match="closed"):
        await call


@pytest.fixture
def own_server(zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server that the test may stop. `zookeeper` is there for its skip."""
    with ZooKeeperServer(tmp_path) as server:
        yield server


async def test_a_session_outlives_a_server_that_is_killed(own_server: ZooKeeperServer) -> None:
    store, callbacks = ZooKeeperStore(f"{own_server.address}/rota", session_timeout_ms=40_000), Callbacks()
    await store.open()
    store.on_session(callbacks.listener)
    session = store.session_id
    await store.create("/e", ephemeral=True)
    own_server.kill()
    await callbacks.state(SUSPENDED)
    call = asyncio.ensure_future(store.create("/a", b"1"))
    await asyncio.to_thread(own_server.start)
    await call
    assert callbacks.states == [SUSPENDED, CONNECTED]
    assert await store.children("/") == ["a", "e"]
    assert store.session_id == session
    await store.close()


async def test_a_server_that_pauses_is_noticed_and_found_again(own_server: ZooKeeperServer) -> None:
    store, callbacks = ZooKeeperStore(f"{own_server.address}/rota", session_timeout_ms=2_000), Callbacks()
    await store.open()
    store.on_session(callbacks.listener)
    await store.create("/a")
    own_server.pause()
    calls = asyncio.gather(store.exists("/a"), store.set("/a", b""), return_exceptions=True)
    await callbacks.state(SUSPENDED)  # a ping was not answered
    own_server.resume()
    await callbacks.state(CONNECTED)
    _, changed = await calls
    assert isinstance(changed, OutcomeUnknown)
    assert await store.exists("/a") is not None
    await store.close()


def test_a_store_is_a_store() -> None:
    store: Store = ZooKeeperStore("localhost:2181")
    assert store.last_change == 0
