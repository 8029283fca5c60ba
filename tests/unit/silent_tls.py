"""A TLS client that does the handshake itself: it never answers the other side's close_notify."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


class SilentTls:
    """One connection. It is open until the context ends, whatever the other side says."""

    def __init__(self, port: int, ca: Path) -> None:
        self._port = port
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=str(ca))
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    async def connect(self) -> None:
        """Open the connection, and send nothing yet."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def __aenter__(self) -> Self:
        if self._writer is None:
            await self.connect()
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                await self._receive()
            else:
                self._flush()
                return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._writer is not None
        self._writer.transport.abort()

    def send(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    async def read(self, size: int) -> bytes:
        """Return up to `size` bytes of what the other side sends. Empty at its close_notify."""
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                await self._receive()

    async def lost(self) -> None:
        """Return when the other side has closed the TCP connection."""
        assert self._reader is not None
        with suppress(ConnectionError):
            await self._reader.read()

    async def _receive(self) -> None:
        assert self._reader is not None
        received = await self._reader.read(1 << 16)
        if not received:
            raise ConnectionResetError("the other side has closed")
        self._incoming.write(received)

    def _flush(self) -> None:
        assert self._writer is not None
        self._writer.write(self._outgoing.read())
