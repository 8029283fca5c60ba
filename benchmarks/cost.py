"""Processor time of a request in the broker, without sockets: `python -m benchmarks.cost`, about ten seconds.

A broker on a disk runs in this process; ready-made frames are given to its connections, and the end of each loop tick
is run by hand. What is timed is the processor time of this thread, the best of several rounds, so that two releases
can be compared on a machine that others use, too. Every reply is compared byte by byte, outside of that time.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from unittest.mock import patch

import structlog

from benchmarks import group_rows, rows
from benchmarks.pump import LoadConnection, Pumped
from benchmarks.wire import frame
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network.connection import Connection
from rota.coordinator.network.connections import Connections
from rota.protocol.compiler import codec
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

ROUNDS, ROUND_S = 15, 0.12
BATCH_BYTES, BATCHES_PER_ROUND = 64_000, 200  # of the produce row: about 200 MB on the disk
FETCH_BYTES = 1 << 20
REPLY_HEADER_BYTES = 9  # length, correlation id, no tagged fields
PROPERTIES = {"listeners": "PLAINTEXT://127.0.0.1:0", "group.initial.rebalance.delay.ms": "0"}
# name, row, frames that arrive at once on each of its connections
WORK: tuple[tuple[str, Callable[[str], float], int], ...] = (
    ("heartbeat, 32 connections x 1", rows.heartbeats(32, 1), 1),
    ("ConsumerGroupHeartbeat, 32 connections x 1", group_rows.consumer_heartbeats(32, 1), 1),
    ("OffsetCommit of 1 partition, 2 x 16", rows.commits(2, 16, 1), 16),
    ("OffsetCommit of 50 partitions, 2 x 16", rows.commits(2, 16, 50), 16),
    ("OffsetFetch of 1,000 partitions, 4 x 4", group_rows.offset_fetches(4, 4, 1000), 4),
)


@dataclass(slots=True)
class Transport:
    """Keeps what a connection writes."""

    written: list[bytes] = field(default_factory=list)

    def get_extra_info(self, name: str) -> tuple[str, int] | None:
        return None if name == "ssl_object" else ("127.0.0.1", 1)

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, parts: Sequence[bytes]) -> None:
        self.written += parts


class SocketlessBroker(Broker):
    """A broker whose connections can be made by hand: `Connection(broker.shared)`, after its start."""

    shared: Connections

    def _connections(self) -> Connections:
        self.shared = super()._connections()
        return self.shared


class Peer:
    """One connection with its ring of frames, `at_once` of them at a time."""

    def __init__(self, connections: Connections, lane: LoadConnection, at_once: int) -> None:
        self.transport, self.connection = Transport(), Connection(connections)
        self.connection.connection_made(cast(asyncio.Transport, self.transport))
        self._sent = [b"".join(part) for part in _windows(lane.frames, at_once)]
        self._expected = [b"".join(part) for part in _windows(lane.replies, at_once)]
        self._at, self._at_once = 0, at_once

    def send(self) -> None:
        self.connection.data_received(self._sent[self._at])

    def check(self) -> None:
        """Compare the replies and go on to the next frames."""
        assert b"".join(self.transport.written) == self._expected[self._at], "a wrong reply"
        self.transport.written.clear()
        self._at = (self._at + self._at_once) % len(self._sent)


def _windows(frames: Sequence[bytes], size: int) -> list[Sequence[bytes]]:
    twice = [*frames, *frames]
    return [twice[at : at + size] for at in range(len(frames))]


async def round_us(broker: Broker, peers: Sequence[Peer], at_once: int) -> float:
    """Microseconds of processor time for one request."""
    spent_s, ticks = 0.0, 0
    while spent_s < ROUND_S:
        ticks += 1
        began_s = time.thread_time()
        for peer in peers:
            peer.send()
        broker.tick_queue._turn()
        spent_s += time.thread_time() - began_s
        for peer in peers:
            peer.check()
        await asyncio.sleep(0)
    return spent_s / (ticks * len(peers) * at_once) * 1e6


async def produce_us(broker: Broker, connections: Connections, topic: str) -> float:
    """Microseconds of processor time for a Produce of one batch of 100-byte records, acks=all."""
    transport, connection = Transport(), Connection(connections)
    connection.connection_made(cast(asyncio.Transport, transport))
    data = PartitionProduceData(index=0, records=rows.batch(100, BATCH_BYTES)[0])
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    raw = frame(request, rows.PRODUCE_VERSION)
    figures: list[float] = []
    for _ in range(ROUNDS):
        began_s = time.thread_time()
        for _ in range(BATCHES_PER_ROUND):
            connection.data_received(raw)
            broker.tick_queue._turn()
        figures.append((time.thread_time() - began_s) / BATCHES_PER_ROUND * 1e6)
        for reply in transport.written:
            answer = codec(ProduceResponse, rows.PRODUCE_VERSION).decode(reply, REPLY_HEADER_BYTES)[0]
            assert not answer.responses[0].partition_responses[0].error_code
        assert len(transport.written) == BATCHES_PER_ROUND
        transport.written.clear()
        await asyncio.sleep(0)
    connection.connection_lost(None)
    return min(figures)


async def fetch_us(broker: Broker, connections: Connections, topic: str) -> float:
    """Microseconds of processor time for a Fetch of FETCH_BYTES that the page cache has."""
    transport, connection = Transport(), Connection(connections)
    connection.connection_made(cast(asyncio.Transport, transport))
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=(FetchTopic(topic=topic, partitions=(part,)),)
    )
    raw = frame(request, rows.FETCH_VERSION)
    figures: list[float] = []
    for _ in range(ROUNDS):
        spent_s = 0.0
        for _ in range(BATCHES_PER_ROUND):
            began_s = time.thread_time()
            connection.data_received(raw)
            broker.tick_queue._turn()
            spent_s += time.thread_time() - began_s
            reply = b"".join(transport.written)
            transport.written.clear()
            assert len(reply) > FETCH_BYTES, "records are missing"
        figures.append(spent_s / BATCHES_PER_ROUND * 1e6)
        answer = codec(FetchResponse, rows.FETCH_VERSION).decode(reply, REPLY_HEADER_BYTES)[0]
        assert not answer.responses[0].partitions[0].error_code
        await asyncio.sleep(0)
    connection.connection_lost(None)
    return min(figures)


def prepared(address: str, row: Callable[[str], float]) -> Sequence[LoadConnection]:
    """The frames of a row of the table: it makes its groups and topics, and pumps nothing."""
    lanes: list[Sequence[LoadConnection]] = []

    def keep(address: str, given: Sequence[LoadConnection], inflight: int, seconds: float) -> Pumped:
        lanes.append(given)
        return Pumped(0, 1.0, 0.0, 0.0)

    with patch.object(rows, "pump", keep), patch.object(group_rows, "pump", keep):
        row(address)
    return lanes[0]


async def measure(folder: str) -> None:
    """Print a line for each kind of request."""
    broker = SocketlessBroker(BrokerConfig({**PROPERTIES, "log.dirs": folder}))
    host, port = await broker.start()
    for name, row, at_once in WORK:
        lanes = await asyncio.get_running_loop().run_in_executor(None, prepared, f"{host}:{port}", row)
        peers = [Peer(broker.shared, lane, at_once) for lane in lanes]
        gc.collect()
        rounds = [await round_us(broker, peers, at_once) for _ in range(ROUNDS)]
        print(f"{name:42} {min(rounds):7.2f} us")
        for peer in peers:
            peer.connection.connection_lost(None)
    topic = rows.unique("produced")
    await asyncio.get_running_loop().run_in_executor(None, rows.create, f"{host}:{port}", topic, 1)
    print(f"{'Produce of a batch of 64 KB':42} {await produce_us(broker, broker.shared, topic):7.2f} us")
    print(f"{'Fetch of 1 MB':42} {await fetch_us(broker, broker.shared, topic):7.2f} us")
    await broker.stop()


def main() -> None:
    options: Any = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=options)
    gc.set_threshold(100_000, 50, 100)  # as `rota serve` sets it
    with tempfile.TemporaryDirectory(prefix="rota-cost-") as folder:
        asyncio.run(measure(folder))


if __name__ == "__main__":
    main()
