"""Raw frames: build one, send it, read one. No client library stands between the work and the broker."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import Any, TypeVar, cast

from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header, request_header

T = TypeVar("T")
CLIENT = "bench"
CONNECT_S = 10.0


def frame(message: Any, version: int, correlation_id: int = 1) -> bytes:
    """One request, with its length."""
    body = request_header(message.KEY, version, correlation_id, CLIENT) + codec(type(message), version).encode(message)
    return struct.pack(">i", len(body)) + body


class Wire:
    """One blocking connection that asks one question at a time.

    With `reuses_memory` the records of an answer are good until the next one: to get and to copy a megabyte of fresh
    memory would take longer than the broker does.
    """

    def __init__(self, address: str, tls: ssl.SSLContext | None = None, *, reuses_memory: bool = False) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), CONNECT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self.socket.settimeout(60)
        self._reuses_memory, self._buffer = reuses_memory, bytearray()

    def send(self, message: Any, version: int) -> None:
        self.socket.sendall(frame(message, version))

    def receive(self, response: type[T], key: int, version: int) -> T:
        raw = self.read()
        _, at = read_response_header(raw, key, version)
        return codec(response, version).decode(raw, at)[0]

    def send_request(self, message: Any, version: int, response: type[T]) -> T:
        self.send(message, version)
        return self.receive(response, message.KEY, version)

    def read(self) -> bytes:
        """One frame, without its length."""
        return self._exactly(struct.unpack_from(">i", self._exactly(4))[0])

    def _exactly(self, size: int) -> bytes:
        """Exactly that many bytes; of memory that is reused, more may follow them."""
        if not self._reuses_memory or size > len(self._buffer):
            self._buffer = bytearray(size)
        view, got = memoryview(self._buffer), 0
        while got < size:
            more = self.socket.recv_into(view[got:size])
            if not more:
                raise ConnectionError("the broker closed the connection")
            got += more
        return cast(bytes, self._buffer) if self._reuses_memory else bytes(self._buffer)

    def close(self) -> None:
        self.socket.close()
