"""`rota check HOST:PORT`: does a broker answer there? For health checks of containers and supervisors.

It sends ApiVersions, which every Kafka broker answers. The exit code is 0 when it does, else 1.
"""

from __future__ import annotations

import socket
import struct

from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header, request_header
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.wire import DecodeError

CLIENT_ID = "rota-check"
RESPONSE_BYTES_MAX = 1 << 20
KEY, VERSION = ApiVersionsRequest.KEY, 0


class NotHealthy(Exception):
    """Nothing listens at the address, or no Kafka broker."""


def check(address: str, timeout_s: float = 3.0) -> int:
    """Return the number of APIs that the broker at `address` supports. Raises NotHealthy."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise NotHealthy(f"{address!r} is no address: expected HOST:PORT")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
            connection.sendall(_request())
            answer = _read(connection)
        _, at = read_response_header(answer, KEY, VERSION)
        response, _ = codec(ApiVersionsResponse, VERSION).decode(answer, at)
    except (OSError, OverflowError) as why:
        raise NotHealthy(f"no broker answers at {address}: {why}") from why
    except DecodeError as why:
        raise NotHealthy(f"what listens at {address} is no Kafka broker: {why}") from why
    return len(response.api_keys)


def _request() -> bytes:
    body = request_header(KEY, VERSION, 1, CLIENT_ID) + codec(ApiVersionsRequest, VERSION).encode(ApiVersionsRequest())
    return struct.pack(">i", len(body)) + body


def _read(connection: socket.socket) -> bytes:
    """Return one frame without its length. Raises DecodeError, OSError."""
    size = int.from_bytes(_receive_exactly(connection, 4), "big")
    if size > RESPONSE_BYTES_MAX:
        raise DecodeError(f"an answer of {size} bytes")
    return _receive_exactly(connection, size)


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the connection was closed")
        data += more
    return data
