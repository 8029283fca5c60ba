"""A whole broker among peers that do not read what they asked for (N5): bounded memory, and readers that are served."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import pytest
from structlog.testing import capture_logs
from tests.chaos.line import Line
from tests.chaos.requests import create_topic, produce

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.scheduling.clock import Clock
from rota.protocol.compiler import codec
from rota.protocol.header import request_header
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.records.record import Record, write_batch

T = TypeVar("T")
BATCH_BYTES = 1_000_000
BATCHES = 8
REPLY_BYTES = 8_000_000  # far more than the sockets of the loopback take
BUDGET_BYTES = 24_000_000
STALLED_READERS = 12
VERSION = 11
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "2",
    "queued.max.request.bytes": str(BUDGET_BYTES),
    "rota.stalled.reader.timeout.ms": "5000",
}


def fetch(offset: int, *, min_bytes: int = 1, max_wait_ms: int = 0) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=REPLY_BYTES)
    request = FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=(FetchTopic(topic="t", partitions=(partition,)),)
    )
    frame = request_header(FetchRequest.KEY, VERSION, 1, "reader") + codec(FetchRequest, VERSION).encode(request)
    return len(frame).to_bytes(4, "big") + frame


class Reader:
    """A consumer that reads as much as the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stream, self.writer = reader, writer
        self.read_bytes = 0

    async def read(self, size: int) -> None:
        self.read_bytes += len(await self.stream.readexactly(size))

    async def read_reply(self) -> int:
        """The size of a whole reply. Raises IncompleteReadError or ConnectionError when it was cut off."""
        size = int.from_bytes(await self.stream.readexactly(4), "big")
        await self.stream.readexactly(size)
        return size

    async def is_closed(self) -> bool:
        """Reads to the end; whether that was before the end of the reply."""
        try:
            await self.read_reply()
        except (asyncio.IncompleteReadError, ConnectionError):
            return True
        return False


class World:
    """A broker with a topic of eight megabytes, and a clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.broker = Broker(BrokerConfig(SETTINGS), memory=True, clock=Clock(monotonic_s=lambda: self.now_s))
        self.readers: list[Reader] = []

    async def open(self) -> None:
        self.host, self.port = await self.broker.start()
        self.line = await Line.open(f"{self.host}:{self.port}")
        await self.line.send_request(FindCoordinatorRequest(key="g"), 2)
        await create_topic(self.line)

    async def fill(self, batches: int = BATCHES) -> None:
        for _ in range(batches):
            await self.line.send_request(produce(0, write_batch([Record(0, 0, None, bytes(BATCH_BYTES), ())])), 9)

    async def close(self) -> None:
        for reader in self.readers:
            reader.writer.transport.abort()
        await self.line.close()
        await self.broker.stop()

    async def reader(self, request: bytes) -> Reader:
        reader = Reader(*await asyncio.open_connection(self.host, self.port, limit=65_536))
        self.readers.append(reader)
        reader.writer.write(request)
        return reader

    @property
    def unread_bytes(self) -> int:
        """What the transports keep for peers that do not read, asked of them."""
        connections = self.broker.listener.connections._open
        return sum(c._transport.get_write_buffer_size() for c in connections if c._transport is not None)

    @property
    def held_bytes(self) -> int:
        return self.broker.listener.connections.request_memory.held_bytes

    @property
    def peer_ports(self) -> set[int]:
        """The ports of the peers that are connected."""
        return {connection.peer[1] for connection in self.broker.listener.connections._open}

    async def heartbeat(self) -> None:
        """A heartbeat is answered."""
        await self.line.send_request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)

    async def turns(self, count: int = 100) -> None:
        """Let the broker work; what is held stays below the limit all the time."""
        for _ in range(count):
            await asyncio.sleep(0)
            assert self.unread_bytes <= self.held_bytes + 65_536 * (STALLED_READERS + 2)
            assert self.held_bytes <= BUDGET_BYTES

    async def look(self) -> None:
        """A second passes, and the broker looks for stalled peers."""
        self.now_s += 1.001
        self.broker.timers.fire()
        await self.turns(20)

    async def looks_until(self, condition: Awaitable[T]) -> T:
        """Seconds pass until that is done."""
        task = asyncio.ensure_future(condition)
        while not task.done():
            await self.look()
        return task.result()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    await made.open()
    yield made
    await made.close()


async def test_stalled_readers_hold_at_most_the_limit_and_delay_no_other_reader(world: World) -> None:
    await world.fill()
    with capture_logs() as logs:
        stalled = [await world.reader(fetch(0)) for _ in range(STALLED_READERS)]
        await world.turns(2_000)
        assert world.unread_bytes > REPLY_BYTES / 2
        assert world.broker.listener.connections.request_memory.has_waiting_replies
        await world.heartbeat()
        quick = await world.reader(fetch(0))
        assert await world.looks_until(quick.read_reply()) > BATCH_BYTES
        closed = await world.looks_until(asyncio.gather(*(reader.is_closed() for reader in stalled)))
    reasons = [line["reason"] for line in logs if line["event"] == "connection closed"]
    assert reasons
    assert all("has read nothing for" in reason for reason in reasons)
    assert closed.count(True) >= len(reasons)  # refusals of one host for one reason are not all written


async def test_a_consumer_that_reads_slowly_is_not_closed_among_those_that_do_not(world: World) -> None:
    await world.fill()
    slow = await world.reader(fetch(0))
    await world.turns(100)  # the first to be answered
    stalled = [await world.reader(fetch(0)) for _ in range(STALLED_READERS)]
    await world.turns(2_000)
    for _ in range(14):  # each reads nothing for longer than the timeout, but for this one
        await slow.read(500_000)
        await world.look()
    await slow.read(BATCH_BYTES)
    connections = world.broker.listener.connections
    assert len(connections) < 2 + STALLED_READERS
    for reader in stalled:
        reader.writer.transport.abort()


async def test_a_consumer_that_reads_a_few_kilobytes_a_second_is_never_closed(world: World) -> None:
    """Law N5. It reads 100 kB in ten timeouts, far less than the send buffer of the broker's socket."""
    await world.fill()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, (world.host, world.port))
        await loop.sock_sendall(slow, fetch(0))
        await world.turns(100)  # the first to be answered
        for _ in range(STALLED_READERS):
            await world.reader(fetch(0))
        await world.turns(2_000)
        for _ in range(50):
            assert world.broker.listener.connections.request_memory.has_waiting_replies
            left = 2_000
            while left:
                received = await loop.sock_recv(slow, left)
                left -= len(received)
            await world.look()
            assert slow.getsockname()[1] in world.peer_ports
            if len(world.broker.listener.connections) < 2 + STALLED_READERS:
                await world.reader(fetch(0))  # somebody waits for memory all the time


async def test_replies_that_become_known_at_once_are_bounded_too(world: World) -> None:
    """Parked Fetches did not wait for room: whoever does not read them is closed when they are too much."""
    with capture_logs() as logs:
        for _ in range(STALLED_READERS):
            await world.reader(fetch(0, min_bytes=5 * BATCH_BYTES, max_wait_ms=60_000))
        await world.turns(200)
        for _ in range(BATCHES):
            await world.fill(1)
            await world.turns(50)
        await world.turns(200)
        await world.heartbeat()
    assert [line for line in logs if "memory for replies is used up" in str(line.get("reason"))]


async def test_memory_is_given_back(world: World) -> None:
    await world.fill()
    readers = [await world.reader(fetch(0)) for _ in range(3)]
    await world.turns(500)
    assert world.held_bytes > 0
    for reader in readers:
        assert await reader.read_reply() > BATCH_BYTES
    await world.turns(50)
    assert world.held_bytes == 0


async def test_peers_that_stall_within_a_large_frame_do_not_block_other_readers(world: World) -> None:
    await world.fill()
    for _ in range(2):
        await world.reader(REPLY_BYTES.to_bytes(4, "big") + bytes(REPLY_BYTES - BATCH_BYTES))
        await world.turns(500)
    assert world.held_bytes > BUDGET_BYTES / 2
    consumer = await world.reader(fetch(0))
    assert await asyncio.wait_for(consumer.read_reply(), 20) > BATCH_BYTES
