from __future__ import annotations

import asyncio

import pytest

from rota.coordinator.metadata.remote_session import RemoteSession
from rota.coordinator.metadata.store import EventType, SessionState, StoreFailed, WatchEvent

CONNECTED, SUSPENDED, EXPIRED = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.EXPIRED


def session(timeout_ms: int = 60_000) -> RemoteSession:
    session = RemoteSession("the server", timeout_ms)
    session.begin()
    return session


async def test_listeners_are_called_for_all_but_the_first_connection() -> None:
    s, states = session(), list[SessionState]()
    s.on_session(states.append)
    s.state_changed(CONNECTED, 7)
    assert (states, s.session_id) == ([], 7)
    s.state_changed(SUSPENDED, 0)
    s.state_changed(CONNECTED, 7)
    s.state_changed(EXPIRED, 0)
    s.state_changed(CONNECTED, 8)
    assert states == [SUSPENDED, CONNECTED, EXPIRED, CONNECTED]
    assert (s.session_id, s.sessions_ended) == (8, 1)
    s.close()
    s.state_changed(SUSPENDED, 0)
    assert len(states) == 4


@pytest.mark.parametrize(
    ("state", "message"), [(CONNECTED, None), (EXPIRED, "the session has expired"), (None, "the store is closed")]
)
async def test_a_call_waits_for_the_connection_or_for_its_end(state: SessionState | None, message: str | None) -> None:
    """Law S10."""
    s = session()
    s.state_changed(CONNECTED, 7)
    s.state_changed(SUSPENDED, 0)
    call = asyncio.ensure_future(s.until_connected())
    await asyncio.sleep(0)
    assert not call.done()
    if state is None:
        s.close()
    else:
        s.state_changed(state, 7)
    if message is None:
        await call
    else:
        with pytest.raises(StoreFailed, match=message):
            await call


async def test_a_call_waits_no_longer_than_a_session_may_last() -> None:
    """Law S13."""
    s = session(timeout_ms=1)
    with pytest.raises(StoreFailed, match="no connection to the server for 1 ms"):
        await s.until_connected()


async def test_a_watch_that_raises_stops_no_other() -> None:
    s, events, reported = session(), list[WatchEvent](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["message"]))

    def broken(event: WatchEvent) -> None:
        raise ValueError("a mistake")

    s.watches.watch_node("/a", broken)
    s.watches.watch_node("/a", events.append)
    s.event(EventType.CHANGED, "/a")
    assert events == [WatchEvent("/a", EventType.CHANGED)]
    assert reported == ["a watch raised"]


async def test_the_watches_of_an_expired_session_are_removed() -> None:
    s, events = session(), list[WatchEvent]()
    s.state_changed(CONNECTED, 7)
    s.watches.watch_node("/a", events.append)
    s.state_changed(EXPIRED, 0)
    s.event(EventType.CHANGED, "/a")
    assert events == []


async def test_the_first_connection_has_its_own_timeout_and_later_ones_the_session_timeout() -> None:
    s = RemoteSession("the server", 60_000, connection_timeout_ms=1)
    s.begin()
    with pytest.raises(StoreFailed, match="for 1 ms"):
        await s.until_connected()
    s.state_changed(CONNECTED, 7)
    s.state_changed(SUSPENDED, 0)
    call = asyncio.ensure_future(s.until_connected())
    await asyncio.wait({call}, timeout=0.05)
    assert not call.done()
    s.state_changed(CONNECTED, 7)
    await call
