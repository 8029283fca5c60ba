"""The HTTP server on a live broker: limits, refusals, and a stop that leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl

import pytest
from tests.unit.certificates import Certificates, certificates
from tests.unit.coordinator.web.conftest import PROPERTIES, Http, World, closed
from tests.unit.silent_tls import SilentTls

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network import tls_server
from rota.coordinator.web import guard, server
from rota.coordinator.web.guard import SECURITY_HEADERS
from rota.coordinator.web.server import HEADER_BYTES_MAX

__all__ = ["certificates"]


async def test_every_response_has_the_security_headers(world: World) -> None:
    answers = [await world.http.get(path) for path in ("/healthz", "/nothing")]
    for answer in (*answers, await world.http.get("/", host="x.y")):
        for name, value in SECURITY_HEADERS:
            assert answer.headers[name.decode()] == value.decode()


async def test_unknown_paths_are_not_found(world: World) -> None:
    assert (await world.http.get("/nothing")).status == 404
    assert (await world.http.get("/../../etc/passwd")).status == 404


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x00\x00\x10garbage that is no HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 64 * HEADER_BYTES_MAX + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
)
async def test_an_invalid_request_gets_an_error_and_closes_the_connection(world: World, request_bytes: bytes) -> None:
    answer = b""
    with contextlib.suppress(ConnectionResetError):  # it closes while the rest is being sent
        answer = await world.http.raw(request_bytes)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.1 431"))
    assert (await world.http.get("/healthz")).status == 200


async def test_connections_above_the_limit_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 2)
    held = [await asyncio.open_connection(world.http.host, world.http.port) for _ in range(2)]
    assert (await world.http.raw(b"")).startswith(b"HTTP/1.1 503")
    for _, writer in held:
        await closed(writer)
    async with asyncio.timeout(10):
        while (await world.http.raw(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")).startswith(b"HTTP/1.1 503"):
            pass


async def test_a_peer_that_never_finishes_its_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_CHECK_SECONDS", 0.05)
    async with Broker(BrokerConfig(PROPERTIES), memory=True) as broker:
        http = Http(broker.console_url)
        reader, writer = await asyncio.open_connection(http.host, http.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: local")
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        await closed(writer)


async def never_read(http: Http, path: str) -> None:
    """Ask for more than the sockets hold, and read nothing. Raises ConnectionError when the server closes."""
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect((http.host, http.port))
        peer.setblocking(False)
        while True:
            request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"
            await asyncio.get_running_loop().sock_sendall(peer, request.encode())


@pytest.mark.parametrize("path", ["/api/openapi.json", "/metrics"])
async def test_the_connection_of_a_peer_that_does_not_read_is_closed(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(server, "IDLE_CHECK_SECONDS", 0.05)
    monkeypatch.setattr(guard, "SEND_SECONDS_MAX", 0.1)
    async with Broker(BrokerConfig(PROPERTIES), memory=True) as broker:
        http = Http(broker.console_url)
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(never_read(http, path), 20)
        assert (await http.get("/healthz")).status == 200


async def test_a_peer_that_reads_slowly_is_served(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_CHECK_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection(world.http.host, world.http.port, limit=4096)
    count = 60
    writer.write(b"GET /api/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * count)
    found = b""
    while found.count(b"HTTP/1.1 200") < count:
        part = await reader.read(4096)
        assert part
        found += part
    await closed(writer)


async def test_a_peer_that_is_silent_between_two_requests_may_go_on(world: World) -> None:
    reader, writer = await asyncio.open_connection(world.http.host, world.http.port)
    for _ in range(2):
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
    await closed(writer)


async def test_a_broker_that_stops_closes_its_http_connections() -> None:
    broker = Broker(BrokerConfig(PROPERTIES), memory=True)
    await broker.start()
    http = Http(broker.console_url)
    reader, writer = await asyncio.open_connection(http.host, http.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await reader.readuntil(b"}")
    await broker.stop()
    assert await reader.read() == b""
    await closed(writer)
    with pytest.raises(ConnectionRefusedError):
        await http.get("/healthz")


def secure(certificates: Certificates) -> Broker:
    tls = {"rota.http.tls": "true", "ssl.keystore.location": str(certificates.server.keystore)}
    return Broker(BrokerConfig({**PROPERTIES, **tls}), memory=True)


async def test_handshakes_that_do_not_go_on_are_bounded_in_number(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HANDSHAKES_MAX", 2)
    monkeypatch.setattr(server, "HANDSHAKE_MS_MAX", 3_600_000)
    async with secure(certificates) as broker:
        http = Http(broker.console_url)
        held = [await asyncio.open_connection(http.host, http.port) for _ in range(3)]
        async with asyncio.timeout(20):
            assert await held[0][0].read() == b""
        context = ssl.create_default_context(cafile=str(certificates.ca))
        reader, writer = await asyncio.open_connection(http.host, http.port, ssl=context)
        writer.write(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        for _, each in (*held, (reader, writer)):
            await closed(each)


async def test_handshakes_that_do_not_go_on_are_bounded_in_time(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_MS_MAX", 1)
    monkeypatch.setattr(server, "LOOK_MS", 10)
    async with secure(certificates) as broker:
        http = Http(broker.console_url)
        reader, writer = await asyncio.open_connection(http.host, http.port)
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        await closed(writer)


async def test_refused_connections_that_ignore_their_end_over_tls_are_bounded(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(tls_server, "SHUTDOWN_SECONDS_MAX", 3600.0)
    async with secure(certificates) as broker, contextlib.AsyncExitStack() as stack:
        http = Http(broker.console_url)
        first, second = [await stack.enter_async_context(SilentTls(http.port, certificates.ca)) for _ in range(2)]
        assert (await second.read(12)) == b"HTTP/1.1 503"
        third = await stack.enter_async_context(SilentTls(http.port, certificates.ca))
        await third.lost()
        first.send(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")
        assert (await first.read(12)) == b"HTTP/1.1 200"
