"""One connection that speaks frames, and may be left waiting for an answer."""

from __future__ import annotations

import select
import socket
import time
from typing import Any

from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header, request_header
from rota.protocol.registry import APIS

ANSWER_S_MAX = 15.0


class Wire:
    """At most one request is under way at a time, as Kafka mutes a connection until it has answered."""

    def __init__(self, bootstrap: str, client_id: str, own_host: str | None = None) -> None:
        """`own_host` is the address from which the connection comes."""
        host, _, port = bootstrap.rpartition(":")
        self.client_id = client_id
        own_address = None if own_host is None else (own_host, 0)
        self._socket = socket.create_connection((host, int(port)), source_address=own_address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0
        self._pending: tuple[int, int] | None = None
        self._received = b""

    @property
    def waits(self) -> bool:
        """A request is under way."""
        return self._pending is not None

    def send(self, request: Any, version: int) -> None:
        assert self._pending is None, "the last request is not answered yet"
        self._correlation += 1
        self._pending = request.KEY, version
        frame = request_header(request.KEY, version, self._correlation, self.client_id)
        frame += codec(type(request), version).encode(request)
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def answer(self, wait_s: float) -> Any | None:
        """The answer, or None when it has not come after `wait_s` seconds. ConnectionError when the peer hung up."""
        assert self._pending is not None
        deadline = time.monotonic() + wait_s
        while not self._whole():
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], left)[0]:
                return None
            more = self._socket.recv(1 << 20)
            if not more:
                raise ConnectionError(f"the broker closed the connection on {self._pending}")
            self._received += more
        return self._decoded()

    def send_request(self, request: Any, version: int) -> Any:
        """Send and wait for the answer; TimeoutError when none comes."""
        self.send(request, version)
        answer = self.answer(ANSWER_S_MAX)
        if answer is None:
            raise TimeoutError(f"no answer to {request}")
        return answer

    def close(self) -> None:
        self._socket.close()

    def _whole(self) -> bool:
        return len(self._received) >= 4 and len(self._received) >= 4 + int.from_bytes(self._received[:4], "big")

    def _decoded(self) -> Any:
        assert self._pending is not None
        (key, version), self._pending = self._pending, None
        size = int.from_bytes(self._received[:4], "big")
        frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
        correlation, begin = read_response_header(frame, key, version)
        assert correlation == self._correlation
        answer, end = codec(APIS[key].response, version).decode(frame, begin)
        assert end == len(frame), "bytes behind the answer"
        return answer
