"""`rota check HOST:PORT`: does a broker answer there? For health checks of containers and supervisors.

It asks ApiVersions, which every broker of Kafka's protocol answers; exit code 0 when it does, 1 when not.
"""

from __future__ import annotations

import socket
import struct

from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header, request_header
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.wire import DecodeError

CLIENT_ID = "rota-check"
ANSWER_BYTES_MAX = 1 << 20
KEY, VERSION = ApiVersionsRequest.KEY, 0


class NotHealthy(Exception):
    """Nobody answers there, or not as a broker does."""


def check(address: str, timeout_s: float = 3.0) -> int:
    """How many APIs the broker at `address` speaks. Raises NotHealthy."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise NotHealthy(f"{address!r} is no address: expected HOST:PORT")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
            connection.sendall(_question())
            answer = _read(connection)
        _, at = read_response_header(answer, KEY, VERSION)
        response, _ = codec(ApiVersionsResponse, VERSION).decode(answer, at)
    except (OSError, OverflowError) as why:
        raise NotHealthy(f"no broker answers at {address}: {why}") from why
    except DecodeError as why:
        raise NotHealthy(f"what listens at {address} is no Kafka broker: {why}") from why
    return len(response.api_keys)


def _question() -> bytes:
    body = request_header(KEY, VERSION, 1, CLIENT_ID) + codec(ApiVersionsRequest, VERSION).encode(ApiVersionsRequest())
    return struct.pack(">i", len(body)) + body


def _read(connection: socket.socket) -> bytes:
    """One frame without its length. Raises NotHealthy, OSError."""
    size = int.from_bytes(_exactly(connection, 4), "big")
    if size > ANSWER_BYTES_MAX:
        raise DecodeError(f"an answer of {size} bytes")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the connection was closed")
        data += more
    return data
