"""The simulated event loop: time advances in jumps; links keep the order of bytes, break and drop data."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest
from tests.simulation.loop import EPOCH_S, Deadlock, SimLoop, simulate

WHERE = ("127.0.0.1", 1)


def test_time_jumps_and_the_wall_clock_with_it() -> None:
    async def main(loop: SimLoop) -> tuple[float, float]:
        await asyncio.sleep(3600)
        return loop.time(), time.time()

    began = time.monotonic()
    assert simulate(1, main) == (3600, EPOCH_S + 3600)
    assert time.monotonic() - began < 60
    assert time.time() > EPOCH_S + 3600


def test_a_loop_without_runnable_tasks_is_a_deadlock() -> None:
    async def main(loop: SimLoop) -> None:
        await loop.create_future()

    with pytest.raises(Deadlock) as caught:
        simulate(7, main)
    assert "seed=7" in caught.value.__notes__[0]


async def echoed(loop: SimLoop, sizes: list[int]) -> tuple[bytes, bytes, list[float]]:
    """What was sent through a server that sends it back, what came, and when."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1000):
            writer.write(piece)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, *WHERE)
    reader, writer = await asyncio.open_connection(*WHERE)
    sent, received, times = b"", b"", list[float]()
    for size in sizes:
        sent += (more := random.randbytes(size))
        writer.write(more)
        received += await reader.readexactly(size)
        times.append(loop.time())
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    server.close()
    await asyncio.sleep(1)
    assert not loop.network.open_links()
    return sent, received, times


@pytest.mark.parametrize("chance", range(5))
def test_bytes_arrive_in_order_and_a_seed_reproduces_its_run(chance: int) -> None:
    sizes = [1, 10, 100_000, 3, 300_000]
    sent, received, times = simulate(chance, lambda loop: echoed(loop, sizes))
    assert received == sent
    assert simulate(chance, lambda loop: echoed(loop, sizes)) == (sent, received, times)
    assert simulate(chance + 1, lambda loop: echoed(loop, sizes))[2] != times


class Notice(asyncio.Protocol):
    def __init__(self) -> None:
        self.lost: list[Exception | None] = []
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


async def pair(loop: SimLoop) -> tuple[Any, Notice, Notice]:
    ends: list[Notice] = []

    def accepted() -> Notice:
        ends.append(Notice())
        return ends[-1]

    await loop.create_server(accepted, *WHERE)
    transport, client = await loop.create_connection(Notice, *WHERE)
    return transport, client, ends[0]


def test_a_cut_closes_both_sides_and_loses_bytes_in_flight() -> None:
    async def main(loop: SimLoop) -> None:
        transport, client, server = await pair(loop)
        transport.write(b"never")
        transport.link.cut()
        await asyncio.sleep(1)
        assert [type(why) for why in client.lost + server.lost] == [ConnectionResetError] * 2
        assert server.received == b""

    simulate(1, main)


def test_a_silent_link_closes_no_connection() -> None:
    async def main(loop: SimLoop) -> None:
        transport, client, server = await pair(loop)
        transport.link.silence()
        transport.write(b"never")
        await asyncio.sleep(100)
        assert (client.lost, server.lost, server.received) == ([], [], b"")
        transport.abort()
        await asyncio.sleep(100)
        assert (client.lost, server.lost) == ([None], [])

    simulate(1, main)


def test_a_peer_that_does_not_read_blocks_the_writer() -> None:
    async def main(loop: SimLoop) -> None:
        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(10)
            while await reader.read(65_536):
                pass
            writer.close()

        await asyncio.start_server(slow, *WHERE)
        _, writer = await asyncio.open_connection(*WHERE)
        writer.write(bytes(1_000_000))
        await writer.drain()
        assert loop.time() > 9
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(1)

    simulate(1, main)


def test_a_connection_without_a_listener_is_refused() -> None:
    async def main(loop: SimLoop) -> None:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", 9)

    simulate(1, main)
