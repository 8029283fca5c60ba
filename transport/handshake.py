"""Opens a connection to an address: resolve, connect, send ApiVersions (KIP-511).

Laws
    Every address of a host name is tried in turn, each for socket_connection_setup_timeout_ms (KIP-302).
    The first ApiVersions request has the newest version of this library. An older broker responds in version 0 with the
    versions that it supports, and the request is repeated in one of them.
    A failed attempt closes its socket.
    A wrong certificate, a listener without TLS where TLS is set, and the reverse are TlsFailed at the first attempt:
    the other addresses of the name are not tried.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import cache
from typing import Final

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.registry import APIS
from rota.transport.authentication import authenticate
from rota.transport.connection import Connection, tls_listener
from rota.transport.diagnosis import is_plaintext_server, is_tls_server
from rota.transport.errors import KafkaError, TimedOut, TlsFailed, Unreachable
from rota.transport.security import PLAINTEXT, Security
from rota.transport.tls import tls_failure
from rota.transport.versions import finalized_features, version_ranges

SOFTWARE_NAME: Final = "rota"
_KEY: Final = ApiVersionsRequest.KEY


_WHY_TLS_HUNG_UP: Final = (
    "as some brokers do that require a certificate of the client (ssl_keystore_location) or other versions of TLS "
    "(ssl_enabled_protocols)"
)
_HUNG_UP: Final = f"it hung up in the TLS handshake, {_WHY_TLS_HUNG_UP}"


async def connect(
    host: str,
    port: int,
    peer: str,
    client_id: str,
    *,
    setup_seconds: float,
    request_seconds: float,
    ended: Callable[[Connection], None],
    security: Security = PLAINTEXT,
) -> Connection:
    """Return an open connection whose `versions` are set. Raises Unreachable, TimedOut, AuthenticationFailed."""

    def protocol() -> Connection:
        return Connection(peer, client_id, ended)

    connection = await _connected(host, port, peer, protocol, setup_seconds, security)
    try:
        try:
            answer = await _api_versions(connection, min(setup_seconds, request_seconds))
            connection.versions, connection.features = version_ranges(answer.api_keys), finalized_features(answer)
        except Unreachable as why:
            raise await _explained(connection, why, security) from why.__cause__
        if security.login is not None:
            await authenticate(connection, security.login, min(setup_seconds, request_seconds))
    except BaseException as why:
        connection.end(why if isinstance(why, KafkaError) else Unreachable(f"dialling {peer} was given up"))
        await connection.closed()
        raise
    return connection


async def _connected(
    host: str, port: int, peer: str, protocol: Callable[[], Connection], setup_seconds: float, security: Security
) -> Connection:
    failures: list[str] = []
    timed_out = False
    for address in await _addresses(host, port, peer):
        where = "" if address == host else f"{address}: "
        try:
            async with asyncio.timeout(setup_seconds):
                return await _opened(host, address, port, protocol, security)
        except TimeoutError:
            timed_out = True
            failures.append(f"{where}not within {setup_seconds * 1000:.0f} ms (socket_connection_setup_timeout_ms)")
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError, ConnectionAbortedError) as cause:
            if security.tls is not None and await is_plaintext_server(address, port):
                raise TlsFailed(_without_tls(peer), broker=peer) from cause
            failures.append(f"{where}{_HUNG_UP}" if security.tls else where + _reason(cause))
        except ssl.SSLError as cause:
            raise tls_failure(peer, host, cause) from cause
        except OSError as cause:
            failures.append(where + _reason(cause))
    kind = TimedOut if timed_out else Unreachable
    raise kind(f"no connection to broker {peer}: {'; '.join(failures)}")


async def _opened(
    host: str, address: str, port: int, protocol: Callable[[], Connection], security: Security
) -> Connection:
    """Connect to one address; with TLS, the certificate must be for `host`. Raises OSError, of which ssl.SSLError."""
    loop = asyncio.get_running_loop()
    name = host if security.tls is not None else None
    _, connection = await loop.create_connection(protocol, address, port, ssl=security.tls, server_hostname=name)
    return connection


async def _explained(connection: Connection, why: Unreachable, security: Security) -> KafkaError:
    """The error for a broker that hung up at ApiVersions; it is `why`, unless more is known."""
    if not connection.was_closed_by_broker:
        return why
    if security.tls is not None:
        return Unreachable(f"{why}, {_WHY_TLS_HUNG_UP}")
    if connection.address is not None and await is_tls_server(*connection.address):
        return tls_listener(connection.peer)
    return why


def _without_tls(peer: str) -> str:
    return (
        f"no TLS connection to broker {peer}: its listener answers in plain text; security_protocol PLAINTEXT or "
        "SASL_PLAINTEXT fits it, or another port"
    )


async def _addresses(host: str, port: int, peer: str) -> list[str]:
    """Return the IP addresses of a host name. Raises Unreachable."""
    if _is_address(host):
        return [host]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as cause:
        raise Unreachable(f"no connection to broker {peer}: the host name {host} is not known ({cause})") from cause
    return list(dict.fromkeys(str(item[4][0]) for item in found))


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return True
    return False


async def _api_versions(connection: Connection, seconds: float) -> ApiVersionsResponse:
    version = APIS[_KEY].versions[-1]
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=software_version())
    while True:
        api_codec = connection.codec_at_version(ApiVersionsRequest, version)
        frame = await connection.send(api_codec, request, seconds)
        refused = int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
        answer: ApiVersionsResponse = connection.read(
            connection.codec_at_version(ApiVersionsRequest, 0) if refused else api_codec, frame
        )
        if refused and version:
            served = version_ranges(answer.api_keys).get(_KEY)
            version = max(0, min(version - 1, served[-1])) if served else 0
            continue
        if answer.error_code:
            code = ErrorCode.of(answer.error_code)
            raise Unreachable(f"broker {connection.peer} refused ApiVersions: {code.name} ({int(code)}): {code.text}")
        return answer


@cache
def software_version() -> str:
    """Return the version of this library, which brokers log and count (KIP-511)."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, needed once

    try:
        return version("rota")
    except PackageNotFoundError:
        return "unknown"


def _reason(cause: OSError) -> str:
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused: nothing listens there"
    return cause.strerror or str(cause) or type(cause).__name__
