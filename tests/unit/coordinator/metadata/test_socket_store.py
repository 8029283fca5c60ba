"""The client of a served store, against a server that misbehaves; the rest is in tests/contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from rota.coordinator.metadata.socket_store import SocketStore
from rota.coordinator.metadata.store import OutcomeUnknown, StoreFailed
from rota.coordinator.metadata.store_protocol import HEAD, frame, message, payload_bytes

Answer = Callable[[list[object]], bytes]


class Misbehaving:
    """Opens each session; answers other requests with what `answer` gives, and cuts the connection at b""."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "socket")
        self.answer: Answer = lambda request: frame([request[0], 1, "ok", []])
        self.server: asyncio.Server | None = None

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = message(await reader.readexactly(payload_bytes(await reader.readexactly(HEAD.size))))
                data = frame(["session", 5, "token"]) if request[0] == "open" else self.answer(request)
                if not data:
                    break
                writer.write(data)
        except asyncio.IncompleteReadError:
            pass
        writer.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Misbehaving]:
    server = Misbehaving(tmp_path)
    listening = await asyncio.start_unix_server(server.accept, server.address)
    yield server
    listening.close()


async def test_no_server_fails_the_opening(tmp_path: Path) -> None:
    store = SocketStore(str(tmp_path / "nothing"), session_timeout_ms=50)
    with pytest.raises(StoreFailed, match="for 50 ms"):
        await store.open()


async def test_a_failure_of_the_store_is_passed_on(server: Misbehaving) -> None:
    store = SocketStore(server.address, session_timeout_ms=10_000)
    await store.open()
    server.answer = lambda request: frame([request[0], 1, "failed", "the disk is full"])
    with pytest.raises(StoreFailed, match="the disk is full"):
        await store.create("/a")
    server.answer = lambda request: frame([request[0], 9, "refused", "NoSuchError", "/a", ""])
    with pytest.raises(StoreFailed):
        await store.create("/a")
    assert store.last_change == 9
    await store.close()


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", frame([999, 1, "ok", []]), frame({"a": 1})], ids=str)  # type: ignore[arg-type]
async def test_a_connection_that_ends_or_is_malformed_is_followed_by_another(server: Misbehaving, data: bytes) -> None:
    """Law S13."""
    store = SocketStore(server.address, session_timeout_ms=10_000)
    await store.open()
    server.answer = lambda request: data
    with pytest.raises(OutcomeUnknown):
        await store.create("/a")
    server.answer = lambda request: frame([request[0], 1, "ok", ["/a"]])
    assert await store.create("/a") == "/a"
    await store.close()
    await store.close()


def test_a_request_just_after_the_connection_was_lost_has_an_unknown_outcome(tmp_path: Path) -> None:
    """Law S13. uvloop has closed the transport, and the task that reads from it has not run yet."""
    outcomes = uvloop.run(_requests_while_connections_are_cut(tmp_path))
    assert {type(outcome) for outcome in outcomes} == {OutcomeUnknown}


async def _requests_while_connections_are_cut(folder: Path) -> list[BaseException | str]:
    """The outcomes of requests in each turn of the event loop, one of which falls between the two."""
    server = Misbehaving(folder)
    server.answer = lambda request: b""
    store = SocketStore(server.address, session_timeout_ms=10_000)
    async with await asyncio.start_unix_server(server.accept, server.address):
        await store.open()
        requests = []
        for _ in range(100):
            requests.append(asyncio.ensure_future(store.create("/a")))
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        await store.close()
    return outcomes
