"""A broker in memory with an HTTP listener, and clients for both of its sides."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.chaos.line import Line
from tests.unit.coordinator.web.schema import check_answer

from rota.client import Consumer, ConsumerConfig
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.presets import PRESETS

PROPERTIES = {
    **PRESETS["dev"],
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "rota.http.listener": "127.0.0.1:0",
    "offsets.topic.num.partitions": "4",
    "rota.drain.timeout.ms": "200",
}


@dataclass
class Answer:
    """A response: the status, the headers by lower-case name, and the body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection, also one that the other side has reset."""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


class Http:
    """HTTP requests to one address, each on a connection of its own."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 0

    async def raw(self, request: bytes) -> bytes:
        """Send bytes; return everything until the server closes."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(request)
            async with asyncio.timeout(20):
                return await reader.read()
        finally:
            await closed(writer)

    async def send_request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """`headers` with underscores for hyphens."""
        data = b"" if body is None else json.dumps(body).encode()
        fields = {"host": f"{self.host}:{self.port}", "connection": "close"}
        if body is not None:
            fields |= {"content-type": "application/json", "content-length": str(len(data)), "x-rota-action": "1"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        answer = await self.raw(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
        top, _, rest = answer.partition(b"\r\n\r\n")
        first, *lines = top.decode().split("\r\n")
        found = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if found.get("transfer-encoding") == "chunked":
            rest = _unchunked(rest)
        return Answer(int(first.split()[1]), found, rest)

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.send_request("GET", path, **headers)

    async def post(self, path: str, body: Any, **headers: str) -> Answer:
        return await self.send_request("POST", path, body, **headers)


def _unchunked(data: bytes) -> bytes:
    whole = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        whole, data = whole + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return whole


@dataclass
class World:
    """A broker, a connection of a Kafka client, and HTTP."""

    broker: Broker
    kafka: Line
    http: Http

    @property
    def address(self) -> str:
        """HOST:PORT of the listener for Kafka's clients."""
        return "{}:{}".format(*self.broker.address)

    async def read(self, path: str, status: int = 200) -> Any:
        """The JSON of a GET, which has this status and is as the API's document says."""
        answer = await self.http.get(path)
        assert answer.status == status, answer.text
        check_answer("get", path, status, answer.json)
        return answer.json

    async def act(self, path: str, body: Any, status: int = 200) -> Any:
        """The same of a POST."""
        answer = await self.http.post(path, body)
        assert answer.status == status, answer.text
        check_answer("post", path, status, answer.json)
        return answer.json


@asynccontextmanager
async def members(world: World, group: str, count: int, topic: str = "t") -> AsyncIterator[list[Consumer]]:
    """Consumers of a group that have partitions."""
    async with AsyncExitStack() as stack:
        found = []
        for number in range(count):
            config = ConsumerConfig(
                bootstrap_servers=world.address,
                group_id=group,
                client_id=f"client-{number}",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            consumer = await stack.enter_async_context(Consumer(config))
            consumer.subscribe([topic])
            found.append(consumer)
        async with asyncio.timeout(20):
            while not all(each.assignment for each in found):
                for each in found:
                    await each.getmany(timeout_ms=20)
        yield found


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with Broker(BrokerConfig(PROPERTIES), memory=True) as broker:
        host, port = broker.address
        line = await Line.open(f"{host}:{port}")
        try:
            yield World(broker, line, Http(broker.console_url))
        finally:
            await line.close()
