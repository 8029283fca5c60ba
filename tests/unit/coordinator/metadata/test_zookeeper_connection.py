"""What the connection does with the answers of kazoo's thread, without a server."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, NoNodeError, SessionExpiredError
from kazoo.protocol.serialization import GetData, stat_struct
from kazoo.protocol.states import EventType, KeeperState, WatchedEvent, ZnodeStat

from rota.coordinator.metadata.zookeeper import ZooKeeperStore
from rota.coordinator.metadata.zookeeper_connection import CONNECT_S_MAX, REQUESTS_IN_FLIGHT_MAX, Connection, _Handler
from rota.coordinator.metadata.zookeeper_requests import MultiRead

STAT = ZnodeStat._make(stat_struct.unpack(stat_struct.pack(1, 2, 3, 4, 5, 6, 7, 0, 3, 0, 8)))


async def answered(read: list[list[Any]] | None) -> list[tuple[Any, Exception | None]]:
    """What the caller of a read of /a, which exists, and /absent gets on a connection that is not open any more."""
    connection = Connection(
        "127.0.0.1:1", session_timeout_ms=1_000, digest=None, on_state=lambda *_: None, on_event=lambda *_: None
    )
    results: list[tuple[Any, Exception | None]] = []
    request = MultiRead(["/a", "/absent"], None if read is None else read.append)
    connection._answered(request, lambda *result: results.append(result), [(b"1", STAT), NoNodeError()], None)
    await asyncio.sleep(0)
    watched = {path for path, watchers in connection._client._data_watchers.items() if connection.watcher in watchers}
    assert watched == (set() if read is None else {"/a"})
    return results


async def test_nodes_whose_watches_could_not_be_set_have_to_be_read_again() -> None:
    """Law S11. The caller knows of its watches before the answer, so that none that fires is lost."""
    read: list[list[Any]] = []
    ((value, error),) = await answered(read)
    assert value is None
    assert isinstance(error, ConnectionClosedError)
    assert [data for data, _ in read[0][:1]] == [b"1"]


async def test_a_read_without_watches_is_done_with_its_answer() -> None:
    ((value, error),) = await answered(None)
    assert error is None
    assert value[0] == (b"1", STAT)


@pytest.mark.parametrize("has_expired", [False, True])
async def test_lost_connections_do_not_fill_the_socket_that_wakes_kazoo(*, has_expired: bool) -> None:
    """Law S13. kazoo forgets the requests that it has not sent, but not their bytes: the loop would block."""
    connection = Connection(
        "127.0.0.1:1", session_timeout_ms=1_000, digest=None, on_state=lambda *_: None, on_event=lambda *_: None
    )
    client, errors = connection._client, list[Exception | None]()
    client._connection._read_sock, client._connection._write_sock = pair = socket.socketpair()
    pair[1].setblocking(False)  # kazoo's blocks
    for session in range(5):
        client._session_callback(KeeperState.CONNECTED)
        for _ in range(REQUESTS_IN_FLIGHT_MAX if has_expired else 5 * REQUESTS_IN_FLIGHT_MAX):
            sessions_ended = session if has_expired else 0
            connection.send(GetData("/a", None), lambda _, error: errors.append(error), sessions_ended=sessions_ended)
        assert len(pair[0].recv(1 << 16, socket.MSG_PEEK)) == len(client._queue) == REQUESTS_IN_FLIGHT_MAX
        client._session_callback(KeeperState.EXPIRED_SESSION if has_expired else KeeperState.CONNECTING)
        await asyncio.sleep(0)  # the requests that have waited follow those that were lost
    assert {type(error) for error in errors} == {SessionExpiredError if has_expired else ConnectionLoss}
    for each in pair:
        each.close()


async def test_a_server_that_accepts_and_does_not_answer_is_left_within_the_session() -> None:
    """Law S17. A ZooKeeper that starts may do that; kazoo would wait until the session has ended."""
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.put_nowait(writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    store = ZooKeeperStore(f"{host}:{port}", session_timeout_ms=6_000)
    opening = asyncio.ensure_future(store.open())
    first = await accepted.get()
    second = asyncio.ensure_future(accepted.get())
    await asyncio.wait({second, opening}, return_when=asyncio.FIRST_COMPLETED)
    assert second.done()
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    for writer in (first, await second):
        writer.close()
    server.close()
    await store.close()


async def test_a_server_that_was_silent_is_the_last_one_that_is_tried() -> None:
    """Law S18."""
    connection = Connection(
        "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
        session_timeout_ms=1_000,
        digest=None,
        on_state=lambda *_: None,
        on_event=lambda *_: None,
    )
    connection._silent_server = "127.0.0.1", 2
    rounds = [connection._client._connection._expand_client_hosts() for _ in range(20)]
    assert {tried[-1] for tried in rounds} == {("127.0.0.1", "127.0.0.1", 2)}
    assert len({tried[0] for tried in rounds}) == 2


async def test_an_event_is_a_word_of_the_server() -> None:
    """Law S18."""
    connection = Connection(
        "127.0.0.1:1", session_timeout_ms=1_000, digest=None, on_state=lambda *_: None, on_event=lambda *_: None
    )
    connection._silence._limit._since_s = -1.0
    connection.watcher(WatchedEvent(EventType.CHANGED, KeeperState.CONNECTED, "/a"))
    await asyncio.sleep(0)
    assert connection._silence._limit._since_s > 0


def test_an_address_without_a_machine_holds_up_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law S18. An attempt would take a quarter of a session."""
    timeouts: list[float] = []

    def refuse(_: Any, timeout: float) -> socket.socket:
        timeouts.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", refuse)
    for connect_s_max in (0.5, 4.5):
        with pytest.raises(TimeoutError):
            _Handler(None, connect_s_max).create_connection(("10.0.0.1", 1), "a", 18.0)
    assert timeouts == [0.5, CONNECT_S_MAX]
