"""What only ZooKeeper does: chroots, access control, servers that stop, pause and answer nonsense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.store_worlds import Heard, ZooKeeperWorld
from tools.zookeeper import ZooKeeperServer

from rota.coordinator.metadata.store import EventType, SessionState, Store, StoreFailed, WatchEvent
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


async def test_what_a_user_creates_others_may_read_and_not_change(world: ZooKeeperWorld) -> None:
    owner = await world.open(digest="rota:secret", set_acl=True)
    same_user = await world.open(digest="rota:secret")
    stranger = await world.open(digest="rota:guessed")
    await owner.create("/a", b"1")
    assert await same_user.set("/a", b"2") == 1
    assert (await stranger.get("/a"))[0] == b"2"
    for call in (stranger.set("/a", b"3"), stranger.create("/a/b"), stranger.delete("/a")):
        with pytest.raises(StoreFailed, match="ACL of /a"):
            await call
    assert (await owner.get("/a"))[0] == b"2"
    await world.reconnect(owner)  # the user is known on the next connection, too
    assert await owner.set("/a", b"4") == 2


async def test_many_reads_and_watches_are_under_way_at_once(world: ZooKeeperWorld) -> None:
    store, other, heard = await world.open(), await world.open(), Heard()
    paths = [f"/{number}" for number in range(1_000)]
    await asyncio.gather(*(store.create(path, path.encode()) for path in paths))
    answers = await asyncio.gather(*(store.get(path, heard.watch) for path in paths))
    assert [data.decode() for data, _ in answers] == paths
    await world.suspend(store)
    await asyncio.gather(*(other.delete(path) for path in paths))
    await world.resume(store)
    assert await store.children("/") == []
    assert sorted(heard.events, key=str) == sorted([WatchEvent(path, EventType.DELETED) for path in paths], key=str)


async def test_a_malformed_answer_ends_the_session_and_another_follows(world: ZooKeeperWorld) -> None:
    """kazoo's thread ends by it; without a restart the broker would be cut off for ever."""
    store, heard = await world.open(), Heard()
    store.on_session(heard.listener)
    await store.create("/e", ephemeral=True)
    world.lines[store].inject(b"\0\0\0\x10" + b"\x7f" * 16)
    await heard.state(EXPIRED)
    await heard.state(CONNECTED)
    await store.create("/again", ephemeral=True)


async def test_calls_fail_when_the_connection_is_lost_for_longer_than_a_session(world: ZooKeeperWorld) -> None:
    """Law S10: whoever waits for the store learns that it is not there."""
    store = await world.open(session_timeout_ms=400)
    world.lines[store].cut()
    with pytest.raises(StoreFailed, match="for 400 ms"):
        await store.get("/")
    with pytest.raises(StoreFailed):
        await store.create("/a")


async def test_closing_does_not_wait_for_a_zookeeper_that_is_gone(world: ZooKeeperWorld) -> None:
    store = await world.open()
    await world.suspend(store)
    call = asyncio.ensure_future(store.get("/"))
    await asyncio.sleep(0)  # it begins
    await store.close()
    with pytest.raises(StoreFailed, match="closed"):
        await call


class Stopped:
    """A server of one test's own, and a session with it."""

    def __init__(self, server: ZooKeeperServer, store: ZooKeeperStore) -> None:
        self.server, self.store, self.heard = server, store, Heard()
        store.on_session(self.heard.listener)


@pytest.fixture
async def stopped(zookeeper: ZooKeeperServer, tmp_path: Path) -> AsyncIterator[Stopped]:
    """`zookeeper` is there for its skip."""
    with ZooKeeperServer(tmp_path) as server:
        store = ZooKeeperStore(f"{server.address}/rota", session_timeout_ms=3_000)
        await store.open()
        yield Stopped(server, store)
        await store.close()


async def test_sessions_outlive_a_server_that_is_killed_and_paused(stopped: Stopped) -> None:
    server, store, heard = stopped.server, stopped.store, stopped.heard
    session = store.session_id
    await store.create("/e", ephemeral=True)
    server.kill()
    await heard.state(SUSPENDED)
    call: asyncio.Future[object] = asyncio.ensure_future(store.create("/a", b"1"))
    await asyncio.to_thread(server.start)
    await call
    assert heard.states == [SUSPENDED, CONNECTED]
    assert await store.children("/") == ["a", "e"]
    assert store.session_id == session
    server.pause()
    call = asyncio.ensure_future(store.exists("/e"))
    await heard.state(SUSPENDED)  # a ping was not answered
    server.resume()
    await heard.state(CONNECTED)
    await asyncio.wait({call})
    assert await store.exists("/a") is not None


def test_a_store_is_a_store() -> None:
    store: Store = ZooKeeperStore("localhost:2181")
    assert store.last_change == 0
