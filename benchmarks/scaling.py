"""What a request costs as a broker grows, beside what the machine itself takes for it.

    python -m benchmarks.scaling           print the tables and draw docs/scaling.svg (needs rota[report]); two minutes
    python -m benchmarks.scaling --short   two sizes of each, no picture

A broker on a disk runs on an event loop in this process, with sockets; the requests come from another process. What is
timed is the processor time of the loop's thread, the least of several rounds, so that other work on the machine
disturbs little. `limit` is the same traffic against a server on the same loop that answers without looking, or the
copy of as many bytes in memory, or their write into the page cache. Each sweep covers three orders of magnitude.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import multiprocessing
import os
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import structlog
import uvloop

from benchmarks import rows
from benchmarks.cost import PROPERTIES, REPLY_HEADER_BYTES, SocketlessBroker, Transport
from benchmarks.groups import find_coordinator, rebalance, settled
from benchmarks.pump import LoadConnection, pump
from benchmarks.rows import COMMIT_VERSION, FETCH_VERSION, HEARTBEAT_VERSION, PRODUCE_VERSION
from benchmarks.wire import frame
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network.connection import Connection
from rota.coordinator.network.connections import Connections
from rota.protocol.compiler import codec
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from rota.protocol.records.record import write_pairs

T = TypeVar("T")
DECADES: Final = (1, 10, 100, 1_000)
GROUPS: Final = (100, 1_000, 10_000, 100_000)
BYTES: Final = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS: Final = 3
PUMP_S: Final = 0.7
COMMITS: Final = 2_000  # of a round, or all groups once
AT_ONCE: Final = 16  # commits that arrive together
ECHO_BYTES: Final = 16
MEMORY_GROUPS_MIN: Final = 10_000  # fewer find room in memory that the process has already
PICTURE: Final = Path(__file__).parents[1] / "docs" / "scaling.svg"
PAGE_BYTES_MAX: Final = 200_000_000  # of a round of Produce


@dataclass(frozen=True, slots=True)
class Point:
    """One figure of a sweep; `limit` is 0 where there is none."""

    sweep: str
    unit: str
    size: int
    cost: float
    limit: float = 0.0


class Echo(asyncio.Protocol):
    """Answers each frame of `size` bytes with a reply that is ready."""

    def __init__(self, size: int) -> None:
        self._size, self._left = size, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        count, self._left = divmod(self._left + len(data), self._size)
        self._transport.write(bytes(ECHO_BYTES) * count)


@dataclass(slots=True)
class Machine:
    """The broker, its address, and the process that sends requests."""

    broker: Broker
    connections: Connections
    address: str
    sender: ProcessPoolExecutor

    async def elsewhere(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run in the other process."""
        return await asyncio.get_running_loop().run_in_executor(self.sender, partial(work, *arguments))

    async def loop_s(self, work: Awaitable[T]) -> tuple[T, float]:
        """(the result, processor seconds of this thread until it is there)."""
        began = time.thread_time()
        result = await work
        return result, time.thread_time() - began

    def connection(self) -> tuple[Transport, Connection]:
        transport, connection = Transport(), Connection(self.connections)
        connection.connection_made(cast("asyncio.Transport", transport))
        return transport, connection


# ---- the other process


def pumped(address: str, lanes: Sequence[LoadConnection]) -> int:
    """Pump one request at a time on each connection; return how many were answered."""
    return pump(address, lanes, 1, PUMP_S).requests


def heartbeats(address: str, members: int, connections: int) -> list[LoadConnection]:
    """The heartbeats of one group, spread over the connections."""
    group = rows.unique("scaling")
    lanes: list[tuple[list[bytes], list[bytes]]] = [([], []) for _ in range(connections)]
    joined = settled(find_coordinator(address, group), group, members)
    for number in range(max(members, connections)):
        member = joined[number % members]
        frames, replies = lanes[number % connections]
        heartbeat = HeartbeatRequest(group_id=group, generation_id=member.generation, member_id=member.member_id)
        frames.append(frame(heartbeat, HEARTBEAT_VERSION, len(frames)))
        replies.append(struct.pack(">iibihb", 12, len(frames) - 1, 0, 0, 0, 0))
    for member in joined:
        member.wire.close()
    return [LoadConnection(frames, replies) for frames, replies in lanes]


_MEMBERS: list[Any] = []


def gathered(address: str, count: int) -> None:
    """Join that many members, and keep them for `rebalanced`."""
    group = rows.unique("scaling")
    _MEMBERS[:] = settled(find_coordinator(address, group), group, count)


def rebalanced() -> None:
    rebalance(_MEMBERS)


def dismissed() -> None:
    for member in _MEMBERS:
        member.wire.close()
    _MEMBERS.clear()


# ---- the sweeps


async def over_connections(machine: Machine, sizes: Sequence[int]) -> list[Point]:
    """A heartbeat, one in flight on each of so many connections."""
    loop, points = asyncio.get_running_loop(), []
    for size in sizes:
        lanes = await machine.elsewhere(heartbeats, machine.address, 1, size)
        cost = await pumped_us(machine, machine.address, lanes)
        server = await loop.create_server(partial(Echo, len(lanes[0].frames[0])), "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        silent = [LoadConnection(lane.frames, [bytes(ECHO_BYTES)] * len(lane.frames)) for lane in lanes]
        limit = await pumped_us(machine, f"{host}:{port}", silent)
        server.close()
        points.append(Point("connections", "us of a heartbeat", size, cost, limit))
    return points


async def pumped_us(machine: Machine, address: str, lanes: Sequence[LoadConnection]) -> float:
    figures = []
    for _ in range(ROUNDS):
        count, spent_s = await machine.loop_s(machine.elsewhere(pumped, address, lanes))
        figures.append(spent_s / count * 1e6)
    return min(figures)


async def over_members(machine: Machine, sizes: Sequence[int]) -> list[Point]:
    """A rebalance of a classic group; what a member of it costs."""
    points = []
    for size in sizes:
        await machine.elsewhere(gathered, machine.address, size)
        figures = [(await machine.loop_s(machine.elsewhere(rebalanced)))[1] / size * 1e6 for _ in range(ROUNDS)]
        await machine.elsewhere(dismissed)
        points.append(Point("members", "us of a member in a rebalance", size, min(figures)))
    return points


async def over_groups(machine: Machine, sizes: Sequence[int]) -> list[Point]:
    """OffsetCommit of one partition, by so many groups in turn, and the memory of a group that has committed."""
    topic, points = rows.unique("groups"), []
    await machine.elsewhere(ready, machine.address, topic, 1)
    transport, connection = machine.connection()
    for size in sizes:
        names = [f"group-{size}-{number}" for number in range(size)]
        frames = [frame(rows.commit_request(name, topic, 1), COMMIT_VERSION, 0) for name in names]
        expected = rows.committed_reply(topic, 1, 0)
        gc.collect()
        before = resident_bytes()
        await commit_s(machine, transport, connection, frames, expected)
        memory = (resident_bytes() - before) / size
        some = frames[:: max(1, size // COMMITS)]
        figures = [await commit_s(machine, transport, connection, some, expected) for _ in range(ROUNDS)]
        points.append(Point("groups", "us of a commit", size, min(figures) / len(some) * 1e6))
        if size >= MEMORY_GROUPS_MIN:
            points.append(Point("memory", "KB of a group that commits", size, memory / 1000))
    connection.connection_lost(None)
    return points


async def commit_s(
    machine: Machine, transport: Transport, connection: Connection, frames: Sequence[bytes], expected: bytes
) -> float:
    spent_s = 0.0
    for first in range(0, len(frames), AT_ONCE):
        some = frames[first : first + AT_ONCE]
        joined = b"".join(some)
        began = time.thread_time()
        connection.data_received(joined)
        machine.broker.tick_queue._turn()
        spent_s += time.thread_time() - began
        assert b"".join(transport.written) == expected * len(some), "a wrong reply"
        transport.written.clear()
        await asyncio.sleep(0)
    return spent_s


async def over_partitions(machine: Machine, sizes: Sequence[int]) -> list[Point]:
    """OffsetCommit of so many partitions by 50 groups; what a partition of it costs."""
    points = []
    for size in sizes:
        topic = rows.unique("partitions")
        await machine.elsewhere(ready, machine.address, topic, size)
        transport, connection = machine.connection()
        frames = [
            frame(rows.commit_request(f"{topic}-{n}", topic, size), COMMIT_VERSION, 0) for n in range(rows.GROUPS)
        ]
        expected = rows.committed_reply(topic, size, 0)
        rounds = [await commit_s(machine, transport, connection, frames, expected) for _ in range(ROUNDS * 2)]
        points.append(
            Point("partitions", "us of a partition in a commit", size, min(rounds) / len(frames) / size * 1e6)
        )
        connection.connection_lost(None)
    return points


def ready(address: str, topic: str, partitions: int) -> None:
    """Create the topic, and wait until every shard of the group coordinator takes commits."""
    rows.create(address, topic, partitions)
    for number in range(rows.GROUPS):
        rows.commit_until_accepted(address, f"{topic}-{number}", topic, partitions)


async def over_bytes(machine: Machine, sizes: Sequence[int], folder: Path) -> list[Point]:
    """Produce of one batch with one record of so many bytes, and Fetch of it from the page cache."""
    points = []
    for size in sizes:
        topic = rows.unique("bytes")
        await machine.elsewhere(rows.create, machine.address, topic, 1)
        records = write_pairs([(None, os.urandom(size))], 0)
        count = max(20, min(500, PAGE_BYTES_MAX // ROUNDS // size // 2))
        sent = await request_us(machine, produced(topic, records), count, is_produce=True)
        points.append(Point("produce", "us of a Produce", size, sent, page_cache_us(folder, records, count)))
        read = await request_us(machine, fetched(topic, len(records)), count, is_produce=False)
        points.append(Point("fetch", "us of a Fetch", size, read, copy_us(records)))
    return points


def produced(topic: str, records: bytes) -> bytes:
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    return frame(request, PRODUCE_VERSION)


def fetched(topic: str, size: int) -> bytes:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=(FetchTopic(topic=topic, partitions=(part,)),)
    )
    return frame(request, FETCH_VERSION)


async def request_us(machine: Machine, raw: bytes, count: int, *, is_produce: bool) -> float:
    transport, connection = machine.connection()
    figures = []
    for _ in range(ROUNDS):
        spent_s, replies = 0.0, []
        for _ in range(count):
            began = time.thread_time()
            connection.data_received(raw)
            machine.broker.tick_queue._turn()
            spent_s += time.thread_time() - began
            replies.append(sum(map(len, transport.written)))
            last = b"".join(transport.written) if is_produce else b""
            transport.written.clear()
            if is_produce:
                answer = codec(ProduceResponse, PRODUCE_VERSION).decode(last, REPLY_HEADER_BYTES)[0]
                assert not answer.responses[0].partition_responses[0].error_code
        assert min(replies) > 0, "a request without an answer"
        figures.append(spent_s / count * 1e6)
        await asyncio.sleep(0)
    connection.connection_lost(None)
    return min(figures)


def copy_us(data: bytes) -> float:
    """The copy of as many bytes in memory, into memory in use."""
    target, count = bytearray(len(data)), max(20, 20_000_000 // len(data))
    return least_us(lambda: target.__setitem__(slice(None), data), count)


def page_cache_us(folder: Path, data: bytes, count: int) -> float:
    """The write of as many bytes at the end of a file."""
    with open(folder / "limit", "wb", buffering=0) as file:
        return least_us(lambda: file.write(data), count)


def least_us(work: Callable[[], object], count: int) -> float:
    figures = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        for _ in range(count):
            work()
        figures.append((time.thread_time() - began) / count * 1e6)
    return min(figures)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ---- the tables and the picture


async def measure(folder: Path, sizes: int) -> list[Point]:
    """All sweeps, each of its first `sizes` sizes."""
    broker = SocketlessBroker(BrokerConfig({**PROPERTIES, "log.dirs": str(folder / "data")}))
    host, port = await broker.start()
    with sending() as sender:
        machine = Machine(broker, broker.shared, f"{host}:{port}", sender)
        await machine.elsewhere(find_coordinator, machine.address, "first")
        points = await over_connections(machine, DECADES[:sizes])
        points += await over_members(machine, DECADES[:sizes])
        points += await over_partitions(machine, DECADES[:sizes])
        points += await over_bytes(machine, BYTES[:sizes], folder)
        points += await over_groups(machine, GROUPS[:sizes])
    await broker.stop()
    return points


@contextmanager
def sending() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as sender:
        yield sender


def print_tables(points: Sequence[Point]) -> None:
    """One table for each sweep, as in docs/SCALING.md."""
    for sweep in dict.fromkeys(point.sweep for point in points):
        mine = [point for point in points if point.sweep == sweep]
        has_limit = any(point.limit for point in mine)
        print(f"\n| {sweep} | {mine[0].unit} |" + (" limit |" if has_limit else ""))
        print("|---|---|" + ("---|" if has_limit else ""))
        for point in mine:
            print(f"| {point.size:,} | {point.cost:,.2f} |" + (f" {point.limit:,.2f} |" if has_limit else ""))


def picture(points: Sequence[Point]) -> str:
    """The tables as SVG, drawn by Vega-Lite."""
    import vl_convert

    sweeps = dict.fromkeys((point.sweep, point.unit) for point in points)
    charts = [_chart(sweep, unit, [point for point in points if point.sweep == sweep]) for sweep, unit in sweeps]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "columns": 3,
        "concat": charts,
    }
    return str(vl_convert.vegalite_to_svg(spec))


def _chart(sweep: str, unit: str, points: Sequence[Point]) -> dict[str, Any]:
    values = [{"size": point.size, "value": point.cost, "of": "Rota"} for point in points]
    values += [{"size": point.size, "value": point.limit, "of": "limit"} for point in points if point.limit]
    x = {"produce": "bytes of a record", "fetch": "bytes of a record", "memory": "groups"}.get(sweep, sweep)
    return {
        "title": unit,
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {
                "field": "size",
                "type": "quantitative",
                "scale": {"type": "log"},
                "axis": {"format": "~s"},
                "title": x,
            },
            "y": {"field": "value", "type": "quantitative", "scale": {"type": "log"}, "title": unit.split()[0]},
            "color": {"field": "of", "type": "nominal", "title": None},
        },
    }


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--short", action="store_true", help="two sizes of each, no picture")
    is_short = parser.parse_args().short
    options: Any = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=options)
    gc.set_threshold(100_000, 50, 100)  # as `rota serve` sets it
    print("load at the start:", *(f"{load:.1f}" for load in os.getloadavg()))
    with (
        tempfile.TemporaryDirectory(prefix="rota-scaling-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        points = runner.run(measure(Path(folder), 2 if is_short else len(DECADES)))
    print_tables(points)
    print("\nload at the end:", *(f"{load:.1f}" for load in os.getloadavg()))
    if not is_short:
        PICTURE.write_text(picture(points))


if __name__ == "__main__":
    main()
