"""From an address to a connection that may be used: resolve, connect, ask ApiVersions (KIP-511)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from rota.client.errors import KafkaError, TimedOut, Unreachable
from rota.client.net.connection import Connection
from rota.client.net.versions import ranges
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.registry import APIS

SOFTWARE_NAME: Final = "rota"
_KEY: Final = ApiVersionsRequest.KEY


async def connect(
    host: str,
    port: int,
    peer: str,
    client_id: str,
    *,
    setup_seconds: float,
    request_seconds: float,
    ended: Callable[[Connection], None],
) -> Connection:
    """A connection that knows the broker's versions. Raises Unreachable, TimedOut."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(setup_seconds):
            _, connection = await loop.create_connection(lambda: Connection(peer, client_id, ended), host, port)
    except TimeoutError:
        raise TimedOut(
            f"no connection to {peer} within {setup_seconds * 1000:.0f} ms (socket_connection_setup_timeout_ms)"
        ) from None
    except (OSError, UnicodeError) as cause:
        raise Unreachable(f"no connection to {peer}: {_reason(cause)}") from cause
    try:
        connection.versions = await _versions(connection, min(setup_seconds, request_seconds))
    except BaseException as why:
        connection.end(why if isinstance(why, KafkaError) else Unreachable(f"the dialling of {peer} was given up"))
        raise
    return connection


async def _versions(connection: Connection, seconds: float) -> dict[int, range]:
    """Our newest version first; a broker that is older says in v0 what it serves."""
    asked = APIS[_KEY].versions[-1]
    while True:
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=software_version())
        spoken = connection.spoken(ApiVersionsRequest, asked)
        frame = await connection.send(spoken, request, seconds)
        refused = int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
        answer: ApiVersionsResponse = connection.read(
            connection.spoken(ApiVersionsRequest, 0) if refused else spoken, frame
        )
        if refused and asked:
            served = ranges(answer.api_keys).get(_KEY, range(1))
            asked = min(asked - 1, served[-1] if served else 0)
            continue
        if answer.error_code:
            code = ErrorCode.of(answer.error_code)
            raise Unreachable(f"broker {connection.peer} refused ApiVersions: {code.name} ({code}): {code.text}")
        return ranges(answer.api_keys)


def software_version() -> str:
    """The version of this library, as brokers may log and count it."""
    try:
        return version("rota")
    except PackageNotFoundError:
        return "unknown"


def _reason(cause: Exception) -> str:
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused; nothing listens there"
    if isinstance(cause, socket.gaierror):
        return f"the host name is not known ({cause.strerror})"
    return str(cause) or type(cause).__name__
