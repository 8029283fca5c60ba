"""What the connection does with the answers of kazoo's thread, without a server."""

from __future__ import annotations

import asyncio
from typing import Any

from kazoo.exceptions import ConnectionClosedError, NoNodeError
from kazoo.protocol.serialization import stat_struct
from kazoo.protocol.states import ZnodeStat

from rota.coordinator.metadata.zookeeper_connection import Connection
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
