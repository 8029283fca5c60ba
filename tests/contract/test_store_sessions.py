"""What every metadata store gives to several sessions: laws S4, S5, S10 and S11."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.contract.store_worlds import SOON_S, Callbacks, StoreWorld

from rota.coordinator.metadata.store import (
    BadVersion,
    Create,
    EventType,
    NodeExists,
    NoNode,
    OutcomeUnknown,
    SessionState,
    Set,
    Store,
    StoreFailed,
    WatchEvent,
)

CREATED, CHANGED, DELETED, CHILD = EventType.CREATED, EventType.CHANGED, EventType.DELETED, EventType.CHILD


async def test_sessions_share_the_tree_and_watch_each_others_changes(store_world: StoreWorld) -> None:
    first, second, callbacks = await store_world.open(), await store_world.open(), Callbacks()
    assert first.session_id != second.session_id
    assert await second.exists("/a", callbacks.watch) is None
    await first.create("/a", b"1")
    await callbacks.event(WatchEvent("/a", CREATED))
    assert (await second.get("/a", callbacks.watch))[0] == b"1"
    await second.children("/", callbacks.watch)
    await first.set("/a", b"2", 0)
    with pytest.raises(BadVersion):
        await second.set("/a", b"3", 0)
    await first.commit([Create("/b"), Set("/a", b"4")])
    await callbacks.event(WatchEvent("/a", CREATED), WatchEvent("/a", CHANGED), WatchEvent("/", CHILD))


async def test_a_session_that_is_closed_takes_its_ephemeral_nodes_along(store_world: StoreWorld) -> None:
    """Law S4."""
    first, second, callbacks = await store_world.open(), await store_world.open(), Callbacks()
    await first.create("/e", ephemeral=True)
    await first.create("/kept")
    await second.create("/mine", ephemeral=True)
    stat = await second.exists("/e", callbacks.watch)
    assert stat is not None
    assert stat.owner == first.session_id
    await first.close()
    await callbacks.event(WatchEvent("/e", DELETED))
    assert await second.children("/") == ["kept", "mine"]


async def test_a_change_of_another_session_fires_the_watch_before_it_is_read(store_world: StoreWorld) -> None:
    """Law S5: whoever reads a later state has heard that the earlier one is gone."""
    writer, reader = await store_world.open(), await store_world.open()
    await writer.create("/a", b"0")
    fired = True

    def watch(_: WatchEvent) -> None:
        nonlocal fired
        fired = True

    async def read() -> None:
        nonlocal fired
        last = b""
        while last != b"200":
            data, _ = await reader.get("/a")
            if data != last:
                assert fired, f"{data!r} was read before the watch on {last!r} fired"
            # from here on nothing but this read looks at the node
            fired = False
            last, _ = await reader.get("/a", watch)
            await asyncio.sleep(0)

    async def write() -> None:
        for number in range(1, 201):
            await writer.set("/a", b"%d" % number)
            await asyncio.sleep(0)

    await asyncio.gather(write(), read())


async def test_no_change_of_many_nodes_is_missed_while_they_are_read(store_world: StoreWorld) -> None:
    """Law S5: a reader that reads again what its watches report has every node's last state."""
    writer, reader, changed = await store_world.open(), await store_world.open(), asyncio.Event()
    paths, rounds = [f"/{number}" for number in range(200)], 10
    await writer.commit([Create(path) for path in paths])
    known, stale = dict.fromkeys(paths, b""), set(paths)

    def watch(event: WatchEvent) -> None:
        stale.add(event.path)
        changed.set()

    async def write() -> None:
        for number in range(1, rounds + 1):
            await asyncio.gather(*(writer.set(path, b"%d" % number) for path in paths))

    async def read() -> None:
        while set(known.values()) != {b"%d" % rounds}:
            if not stale:
                changed.clear()
                await changed.wait()
            reading = sorted(stale)
            stale.clear()
            nodes = await reader.get_many(reading, watch)
            known.update((path, data) for path, (data, _) in zip(reading, nodes, strict=True))

    async with asyncio.timeout(SOON_S):
        await asyncio.gather(write(), read())


async def test_watches_on_many_nodes_survive_a_short_disconnection(store_world: StoreWorld) -> None:
    """Law S11, also when the connection is lost while the nodes are read."""
    first, second, callbacks = await store_world.open(), await store_world.open(), Callbacks()
    await second.commit([Create("/a"), Create("/b")])
    await store_world.lose_answers(first)
    reading = asyncio.ensure_future(first.get_many(["/a", "/b"], callbacks.watch))
    await asyncio.sleep(0)  # it begins
    await store_world.reconnect(first)
    assert [data for data, _ in await reading] == [b"", b""]
    await store_world.suspend(first)
    await second.set("/b", b"1")
    await store_world.resume(first)
    await callbacks.event(WatchEvent("/b", CHANGED))
    assert await first.get_many(["/a", "/b"]) == [await second.get("/a"), await second.get("/b")]


async def test_a_session_survives_a_short_disconnection(store_world: StoreWorld) -> None:
    """Laws S4, S11: nodes and watches are still there, and the changes that it missed fire them."""
    first, second, callbacks = await store_world.open(), await store_world.open(), Callbacks()
    session = first.session_id
    first.on_session(callbacks.listener)
    await first.create("/e", ephemeral=True)
    for path in ("/changed", "/deleted", "/parent", "/same"):
        await first.create(path)
        await first.get(path, callbacks.watch)
        await first.children(path, callbacks.watch)
    await first.exists("/created", callbacks.watch)
    await store_world.suspend(first)
    assert callbacks.states == [SessionState.SUSPENDED]
    await second.create("/created")
    await second.set("/changed", b"1")
    await second.delete("/deleted")
    await second.create("/parent/child")
    assert callbacks.events == []
    await store_world.resume(first)
    assert callbacks.states == [SessionState.SUSPENDED, SessionState.CONNECTED]
    assert (await first.get("/changed"))[0] == b"1"
    assert sorted(callbacks.events, key=str) == [
        WatchEvent("/changed", CHANGED),
        WatchEvent("/created", CREATED),
        WatchEvent("/deleted", DELETED),
        WatchEvent("/parent", CHILD),
    ]
    await second.set("/same", b"1")
    await second.create("/same/child")
    await first.children("/same")
    assert callbacks.events[4:] == [WatchEvent("/same", CHANGED), WatchEvent("/same", CHILD)]
    stat = await second.exists("/e")
    assert stat is not None
    assert stat.owner == session == first.session_id


async def test_a_call_waits_for_the_connection(store_world: StoreWorld) -> None:
    """Law S10."""
    first, second = await store_world.open(), await store_world.open()
    await first.create("/a", b"1")
    await store_world.suspend(first)
    calls = [asyncio.ensure_future(first.get("/a")), asyncio.ensure_future(first.children("/"))]
    change = asyncio.ensure_future(first.create("/late", ephemeral=True))
    await asyncio.sleep(0)  # they begin
    await second.set("/a", b"2")
    assert not any(call.done() for call in [*calls, change])
    await store_world.resume(first)
    assert (await calls[0])[0] == b"2"  # type: ignore[index]
    await asyncio.gather(*calls)
    assert await change == "/late"
    stat = await second.exists("/late")
    assert stat is not None
    assert stat.owner == first.session_id


async def test_an_expired_session_is_followed_by_a_new_one(store_world: StoreWorld) -> None:
    """Laws S4, S10: the old one's nodes and watches are gone, and its calls never reach the new one."""
    first, second, callbacks = await store_world.open(), await store_world.open(), Callbacks()
    session = first.session_id
    first.on_session(callbacks.listener)
    await first.create("/e", ephemeral=True)
    await first.get("/e", callbacks.watch)
    await first.exists("/absent", callbacks.watch)
    await store_world.expire(first)
    await callbacks.state(SessionState.CONNECTED)
    assert callbacks.states[-2:] == [SessionState.EXPIRED, SessionState.CONNECTED]
    assert first.session_id != session
    assert await first.exists("/e") is None
    await first.create("/e", ephemeral=True)
    stat = await second.exists("/e")
    assert stat is not None
    assert stat.owner == first.session_id
    await second.create("/absent")
    assert await first.exists("/absent") is not None
    assert WatchEvent("/absent", CREATED) not in callbacks.events


async def test_a_session_that_ends_while_it_is_cut_off_learns_of_it_when_it_is_back(store_world: StoreWorld) -> None:
    """Laws S4, S10: a frozen broker wakes up, and its calls of before do nothing."""
    first, second, callbacks = await store_world.open(), await store_world.open(), Callbacks()
    session = first.session_id
    first.on_session(callbacks.listener)
    await first.create("/e", ephemeral=True)
    await second.exists("/e", callbacks.watch)
    await store_world.suspend(first)
    calls = [asyncio.ensure_future(first.create("/late")), asyncio.ensure_future(first.exists("/e"))]
    await asyncio.sleep(0)  # the calls begin
    await store_world.expire(first)
    await callbacks.event(WatchEvent("/e", DELETED))
    assert callbacks.states == [SessionState.SUSPENDED]
    assert first.session_id == session
    await store_world.resume(first)
    await callbacks.state(SessionState.CONNECTED)
    assert callbacks.states == [SessionState.SUSPENDED, SessionState.EXPIRED, SessionState.CONNECTED]
    assert first.session_id != session
    for call in calls:
        with pytest.raises(StoreFailed):
            await call
    assert await second.exists("/late") is None
    assert await first.exists("/e") is None


async def test_a_client_that_starts_again_at_once_finds_its_former_node(store_world: StoreWorld) -> None:
    """Law S4: the node of a session that nobody closed stays for a while; its owner and creation tell whose it is."""
    crashed, again = await store_world.open(), await store_world.open()
    await crashed.create("/e", b"the same broker", ephemeral=True)
    await store_world.suspend(crashed)
    with pytest.raises(NodeExists):
        await again.create("/e", b"the same broker", ephemeral=True)
    data, stat = await again.get("/e")
    assert data == b"the same broker"
    assert stat.owner == crashed.session_id != again.session_id
    await again.delete("/e", stat.version)
    await again.create("/e", b"the same broker", ephemeral=True)
    fresh = await again.exists("/e")
    assert fresh is not None
    assert (fresh.owner, fresh.version) == (again.session_id, stat.version)
    assert fresh.created > stat.created
    await store_world.expire(crashed)
    assert await again.exists("/e") == fresh


async def test_a_change_with_a_lost_response_has_an_unknown_outcome(store_world: StoreWorld) -> None:
    """Law S10: it may have been applied, as here; whoever sent it reads."""
    first, second, callbacks = await store_world.open(), await store_world.open(), Callbacks()
    await second.exists("/a", callbacks.watch)
    await store_world.lose_answers(first)
    change = asyncio.ensure_future(first.create("/a", b"1"))
    await callbacks.event(WatchEvent("/a", CREATED))
    await store_world.reconnect(first)
    with pytest.raises(OutcomeUnknown):
        await change
    assert (await first.get("/a"))[0] == b"1"
    assert await first.set("/a", b"2", 0) == 1


async def test_whoever_is_refused_reads_the_reason(store_world: StoreWorld) -> None:
    """Law S14: the change of another session that a refusal is due to is visible to the next read."""
    sessions = [await store_world.open() for _ in range(3)]

    async def create_or_read(session: Store, path: str) -> bytes:
        with contextlib.suppress(NodeExists):
            await session.create(path, b"%d" % session.session_id)
        return (await session.get(path))[0]

    for number in range(10):
        path = f"/{number}"
        read = await asyncio.gather(*(create_or_read(session, path) for session in sessions))
        assert len(set(read)) == 1


async def test_two_sessions_that_compete_have_one_winner(store: Store, store_world: StoreWorld) -> None:
    others = [await store_world.open() for _ in range(4)]
    await store.create("/epoch", b"0")

    async def compete(session: Store) -> bool:
        try:
            await session.commit([Create("/controller", ephemeral=True), Set("/epoch", b"1", 0)])
        except (NodeExists, BadVersion):
            return False
        return True

    won = await asyncio.gather(*map(compete, others))
    assert won.count(True) == 1
    stat = await store.exists("/controller")
    assert stat is not None
    assert stat.owner == others[won.index(True)].session_id
    with pytest.raises(NoNode):
        await store.delete("/nothing")
