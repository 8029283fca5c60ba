"""The control port: JSON over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from rota.testing.commands import Commands
from rota.testing.control_server import BODY_BYTES_MAX, ControlServer
from rota.testing.host import Host


async def exchange(url: str, request: bytes) -> tuple[str, Any]:
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    writer.close()
    await writer.wait_closed()
    return head.split("\r\n")[0], body


def post(body: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"POST / HTTP/1.1\r\nHost: 127.0.0.1:80\r\ncontent-length: {size}\r\n\r\n{body}".encode()


async def test_a_command_and_its_result() -> None:
    host = Host()
    await host.start()
    server = ControlServer(Commands(host))
    url = await server.start()
    assert url.startswith("http://127.0.0.1:")
    try:
        assert await exchange(url, post('{"command": "create_topic", "name": "t", "partitions": 2}')) == (
            "HTTP/1.1 200 OK",
            {"result": None},
        )
        assert host.get().broker.topics.partition("t", 1) is not None
    finally:
        await server.stop()
        await host.stop()


@pytest.mark.parametrize(
    ("request_bytes", "error"),
    [
        (post('{"command": "fly"}'), "unknown command 'fly'"),
        (post('{"command": "advance"}'), "missing a required argument: 'ms'"),
        (post('{"command": "advance", "ms": -1}'), "advance: ms is -1"),
        (post('{"command": "advance", "ms": 1e30}'), "advance: ms is 1e+30"),
        (post('{"command": "advance", "ms": 99999999999999}'), "advance: ms is 99999999999999"),
        (post('{"command": "advance", "ms": true}'), "advance: ms is True"),
        (post("[]"), "no JSON object"),
        (post("{"), "no JSON object"),
        (post("", BODY_BYTES_MAX + 1), "POST"),
        (b"GET / HTTP/1.1\r\n\r\n", "POST"),
    ],
)
async def test_a_refused_command_is_answered_with_the_reason(request_bytes: bytes, error: str) -> None:
    host = Host()
    server = ControlServer(Commands(host))
    url = await server.start()
    try:
        status, body = await exchange(url, request_bytes)
    finally:
        await server.stop()
        await host.stop()
    assert status == "HTTP/1.1 400 Bad Request"
    assert error in body["error"]


@pytest.mark.parametrize(
    "headers",
    [
        "Host: evil.example:80",
        "Host: 127.0.0.1.evil.example",
        "Host: localhost:80\r\nOrigin: http://evil.example",
        "Host: localhost:80\r\norigin: null",
        "X-Other: 1",
    ],
)
async def test_kt7_a_page_of_a_browser_commands_nothing(headers: str) -> None:
    host = Host()
    await host.start()
    server = ControlServer(Commands(host))
    body = '{"command": "create_topic", "name": "t"}'
    request = f"POST / HTTP/1.1\r\n{headers}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    try:
        status, answer = await exchange(await server.start(), request)
        assert status == "HTTP/1.1 403 Forbidden"
        assert "browser" in answer["error"]
        assert "t" not in host.get().broker.topics
    finally:
        await server.stop()
        await host.stop()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST:1", "[::1]:80"])
async def test_kt7_programs_on_this_machine_may_command(name: str) -> None:
    host = Host()
    server = ControlServer(Commands(host))
    body = '{"command": "fly"}'
    request = f"POST / HTTP/1.1\r\nHost: {name}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    try:
        status, _ = await exchange(await server.start(), request)
        assert status == "HTTP/1.1 400 Bad Request"
    finally:
        await server.stop()
