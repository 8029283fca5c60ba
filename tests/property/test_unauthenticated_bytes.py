"""Bytes of peers that have not authenticated, on listeners with TLS and SASL and on the console: each connection is
closed in bounded time, the process takes bounded memory, and a proper client is served after that."""

from __future__ import annotations

import asyncio
import gc
import random
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.soak import SOAK
from tests.unit.certificates import Certificates, certificates

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.web import api, server

__all__ = ["certificates"]
INPUTS = 5_000 if SOAK else 150
AT_ONCE, HTTP_AT_ONCE = 15, 75
GROWTH_BYTES_MAX = 48 << 20  # of the whole process, whatever the number of inputs
CLOSED_S_MAX = 20.0  # the limit of the listener is 1 s
PAGE_BYTES = 4096


def client_hello() -> bytes:
    """The first bytes of a proper client."""
    context = ssl.create_default_context()
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def hostile_bytes(rng: random.Random) -> Iterator[bytes]:
    hello = client_hello()
    handshake = struct.pack(">BBBH", 22, 3, 1, 1 << 14)
    yield b""
    yield handshake + b"\1\xff\xff\xff" + bytes((1 << 14) - 4) + (handshake + bytes(1 << 14)) * 40  # an endless message
    yield hello + struct.pack(">BBBHB", 20, 3, 3, 1, 1) * 40_000  # records that OpenSSL skips
    yield b"\x7f\xff\xff\xff" + bytes(1 << 20)  # a frame of 2 GiB
    yield struct.pack(">i", 1 << 19) + bytes(1 << 20)
    yield struct.pack(">ihhih", 14, 36, 2, 1, 0) + b"\0\xff\xff\xff\xff\x0f"  # a token before any handshake
    while True:
        data = bytearray(hello)
        for _ in range(rng.randint(1, 8)):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at:]
                    data += b"\0"
                case 2:
                    data[at:at] = data[at : at + rng.randrange(64)]
                case _:
                    data[at : at + 2] = b"\xff\xff"
        yield bytes(data) if rng.random() < 0.8 else rng.randbytes(rng.randrange(1, 400))


def hostile_http(rng: random.Random) -> Iterator[bytes]:
    """Requests of a console with a login, damaged; those that are whole ask to close the connection."""
    host = b"HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    login = b"POST /session/login " + host + b"x-rota-action: 1\r\ncontent-type: application/json\r\n"
    yield b"GET / HTTP/1.1\r\nhost: " + b"x" * (1 << 20)
    yield b"GET /" + b"%00" * 10_000 + b" " + host + b"\r\n"
    yield login + b"content-length: 60000\r\n\r\n" + b"[" * 60_000  # deeper than a parser may recurse
    yield login + b"content-length: 99999999999\r\n\r\n" + b"x" * (1 << 20)
    yield login + b"content-length: 12\r\n\r\n" + b'{"user":"\\ud8'
    yield b"GET /metrics " + host + b"authorization: Basic " + b"/" * 9_000 + b"\r\n\r\n"
    yield b"GET /api/cluster " + host + b"cookie: " + b"rota=;" * 2_000 + b"\r\n\r\n"
    whole = login + b'content-length: 27\r\n\r\n{"user":"u","password":"p"}'
    while True:
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(4)] = rng.randbytes(rng.randrange(4))
        yield bytes(data)


async def attack(port: int, data: bytes, *, closes: bool, tls: ssl.SSLContext | None = None) -> bytes:
    """Send the bytes and wait until the broker closes, or until it has closed what we have closed; what it sent."""
    answer = b""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        writer.write(data)
        if closes:
            writer.write_eof()
        async with asyncio.timeout(CLOSED_S_MAX):
            while more := await reader.read(1 << 16):
                answer += more
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()
    return answer


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
async def test_unauthenticated_bytes_end_in_bounded_time_and_memory(protocol: str, certificates: Certificates) -> None:
    properties = {
        "listeners": f"{protocol}://127.0.0.1:0",
        "ssl.keystore.location": str(certificates.server.keystore),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "rota.authentication.timeout.ms": "1000",
        "connection.failed.authentication.delay.ms": "0",
    }
    rng = random.Random(protocol)
    inputs = hostile_bytes(rng)
    async with Broker(BrokerConfig(properties), memory=True) as broker:
        port = broker.listener._servers[0].sockets[0].getsockname()[1]
        with capture_logs():
            await attack(port, client_hello(), closes=True)
            before = resident_bytes()
            for _ in range(INPUTS // AT_ONCE):
                batch = [next(inputs) for _ in range(AT_ONCE)]
                await asyncio.gather(*(attack(port, data, closes=rng.random() < 0.97) for data in batch))
                gc.collect()  # asyncio's TLS, unlike uvloop's, leaves cycles, and the tests collect rarely
        assert resident_bytes() - before < GROWTH_BYTES_MAX
        assert len(broker.listener.unauthenticated) == 0
        await serves(port, protocol, certificates)


async def test_unauthenticated_bytes_on_the_console_end_in_bounded_time_and_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "IDLE_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(server, "KEEP_ALIVE_SECONDS", 1)
    monkeypatch.setattr(api, "BODY_SECONDS_MAX", 1.0)
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "rota.http.listener": "127.0.0.1:0",
        "rota.http.login": "true",
        "connection.failed.authentication.delay.ms": "0",
    }
    rng = random.Random("HTTP")
    inputs = hostile_http(rng)
    async with Broker(BrokerConfig(properties), memory=True) as broker:
        assert broker.console_url is not None
        port = int(broker.console_url.rstrip("/").rpartition(":")[2])
        whole = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        with capture_logs():
            await attack(port, whole, closes=True)
            before = resident_bytes()
            for _ in range(INPUTS // HTTP_AT_ONCE):
                batch = [next(inputs) for _ in range(HTTP_AT_ONCE)]
                answers = await asyncio.gather(*(attack(port, data, closes=False) for data in batch))
                assert not [pair for pair in zip(batch, answers, strict=True) if pair[1].startswith(b"HTTP/1.1 500")]
        assert resident_bytes() - before < GROWTH_BYTES_MAX
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(whole)
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_unauthenticated_bytes_on_a_console_with_tls_end_in_bounded_time_and_memory(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    """Before the TLS handshake is done, and damaged HTTP behind one."""
    monkeypatch.setattr(server, "HANDSHAKE_MS_MAX", 1_000)
    monkeypatch.setattr(server, "LOOK_MS", 100)
    monkeypatch.setattr(server, "IDLE_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(server, "KEEP_ALIVE_SECONDS", 1)
    monkeypatch.setattr(api, "BODY_SECONDS_MAX", 1.0)
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "rota.http.listener": "127.0.0.1:0",
        "rota.http.tls": "true",
        "rota.http.login": "true",
        "ssl.keystore.location": str(certificates.server.keystore),
        "connection.failed.authentication.delay.ms": "0",
    }
    rng = random.Random("HTTPS")
    before_tls, behind_tls = hostile_bytes(rng), hostile_http(rng)
    client = ssl.create_default_context(cafile=str(certificates.ca))
    async with Broker(BrokerConfig(properties), memory=True) as broker:
        port = int(broker.console_url.rstrip("/").rpartition(":")[2])
        with capture_logs():
            await attack(port, client_hello(), closes=False)
            before = resident_bytes()
            for _ in range(INPUTS // AT_ONCE // 2):
                raw = [next(before_tls) for _ in range(AT_ONCE)]
                http = [next(behind_tls) for _ in range(AT_ONCE)]
                await asyncio.gather(
                    *(attack(port, data, closes=rng.random() < 0.97) for data in raw),
                    *(attack(port, data, closes=False, tls=client) for data in http),
                )
        assert resident_bytes() - before < GROWTH_BYTES_MAX
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def serves(port: int, protocol: str, certificates: Certificates) -> None:
    """ApiVersions, which every listener answers."""
    context = None if protocol == "SASL_PLAINTEXT" else ssl.create_default_context(cafile=str(certificates.ca))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(struct.pack(">ihhih", 10, 18, 0, 7, -1))
    assert (await reader.readexactly(10))[4:] == struct.pack(">ih", 7, 0)
    writer.close()
