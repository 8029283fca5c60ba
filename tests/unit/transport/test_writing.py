from __future__ import annotations

import asyncio
import socket

import pytest

from rota.transport import writing


@pytest.mark.parametrize("joins", [True, False])
async def test_n12_a_transport_notices_a_peer_that_does_not_read(joins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "JOINS", joins or writing.JOINS)
    ours, peer = socket.socketpair()
    loop, paused = asyncio.get_running_loop(), asyncio.Event()

    class Writer(asyncio.Protocol):
        def pause_writing(self) -> None:
            paused.set()

    transport, _ = await loop.create_connection(Writer, sock=ours)
    writing.write_parts(transport, [b"a", memoryview(b"b"), bytes(10_000_000)])
    assert paused.is_set()
    peer.setblocking(False)
    assert await loop.sock_recv(peer, 2) == b"ab"
    transport.abort()
    peer.close()
