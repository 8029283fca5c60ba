"""The network between the brokers of a cluster and ZooKeeper: TCP and UDP can be cut in one direction.

Each broker listens for the others on 127.0.0.1 and advertises 127.0.1.N with the same port, where this network listens;
there is also the port on which that broker reaches ZooKeeper. Clients reach every broker without this network. What a
broker sends over a cut direction waits (TCP, which would send it again) or is lost (UDP).
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

CLIENT_ID_AT = 4 + 2 + 2 + 4  # after the size, the key, the version and the correlation id
CHUNK_BYTES = 1 << 16
ZOOKEEPER: Final = 0  # in the place of a broker id


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Ports(NamedTuple):
    """Where one broker listens for the others, and where it finds ZooKeeper."""

    tcp: int
    udp: int
    zookeeper: int


def host_of(broker: int) -> str:
    """The address that a broker advertises to the others."""
    return f"127.0.1.{broker}"


def missing() -> str | None:
    """Why there can be no such network here; None when there can."""
    try:
        with socket.socket() as probe:
            probe.bind((host_of(1), 0))
    except OSError as reason:
        return f"no address {host_of(1)} on the loopback: {reason}"
    return None


class FaultNetwork:
    """`with FaultNetwork(ports, port) as network: network.cut(1, 2); network.heal()`. Runs in a thread of its own."""

    def __init__(self, ports: Mapping[int, Ports], zookeeper_port: int) -> None:
        """`ports` by broker id; ZooKeeper listens on 127.0.0.1."""
        self.ports = dict(ports)
        self._zookeeper_port = zookeeper_port
        self._cut: frozenset[tuple[int, int]] = frozenset()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault network")
        self._udp: dict[int, _Datagrams] = {}
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self, source: int, target: int) -> None:
        """What `source` sends does not reach `target` any more; the other way it does. One of them may be ZOOKEEPER."""
        self._cut |= {(source, target)}

    def heal(self) -> None:
        self._cut = frozenset()

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self._cut

    def sender(self, port: int) -> int | None:
        """The broker whose failure detector has this port."""
        return next((broker for broker, ports in self.ports.items() if ports.udp == port), None)

    def forward(self, data: bytes, source: int, target: int) -> None:
        """Send a datagram on, from the address that its sender advertises."""
        if not self.is_cut(source, target):
            self._udp[source].send(data, ("127.0.0.1", self.ports[target].udp))

    async def _open(self) -> None:
        for broker, ports in self.ports.items():
            host = host_of(broker)
            for port, serve in ((ports.tcp, self._serve_broker), (ports.zookeeper, self._serve_zookeeper)):
                accept = partial(self._accept, partial(serve, broker))
                self._servers.append(await asyncio.start_server(accept, host, port))
            _, self._udp[broker] = await self._loop.create_datagram_endpoint(
                lambda broker=broker: _Datagrams(self, broker),  # type: ignore[misc]
                local_addr=(host, ports.udp),
            )

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for datagrams in self._udp.values():
            datagrams.close()
        await asyncio.sleep(0)

    async def _accept(self, serve: Serve, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve_broker(self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readexactly(CLIENT_ID_AT + 2)
        client = await reader.readexactly(int.from_bytes(head[-2:], "big"))
        source = int(client.split(b"-")[1])  # broker-N-fetcher-M
        there = await asyncio.open_connection("127.0.0.1", self.ports[target].tcp)
        await self._connect((source, target), head + client, (reader, writer), there)

    async def _serve_zookeeper(self, source: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self._zookeeper_port)
        await self._connect((source, ZOOKEEPER), b"", (reader, writer), there)

    async def _connect(self, ends: tuple[int, int], data: bytes, here: Streams, there: Streams) -> None:
        """Pass on `data`, and what is sent in both directions until one of them ends."""
        (source, target), (reader, writer), (there_reader, there_writer) = ends, here, there
        ways = (
            self._pump(source, target, data, reader, there_writer),
            self._pump(target, source, b"", there_reader, writer),
        )
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            there_writer.close()

    async def _pump(
        self, source: int, target: int, data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data or (data := await reader.read(CHUNK_BYTES)):
            while self.is_cut(source, target):
                await asyncio.sleep(0.01)
            with suppress(ConnectionError):
                writer.write(data)
                await writer.drain()
            data = b""
        while self.is_cut(source, target):
            await asyncio.sleep(0.01)  # the end of a connection does not get through either


class _Datagrams(asyncio.DatagramProtocol):
    """The UDP address that one broker advertises."""

    def __init__(self, network: FaultNetwork, broker: int) -> None:
        self._network, self._broker = network, broker
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        source = self._network.sender(addr[1])
        if source is not None:
            self._network.forward(data, source, self._broker)

    def send(self, data: bytes, address: tuple[str, int]) -> None:
        self._transport.sendto(data, address)

    def close(self) -> None:
        self._transport.close()
