"""Processor time of a joined group and of a rebalance's member in the broker, without sockets.

`python -m benchmarks.group_cost` takes about ten seconds. A broker on a disk runs in this process, with the log lines
of `rota serve` written to nowhere; frames are given to its connections. What is timed is the processor time of this
thread, the best of several rounds; the thread that writes the log is not counted.
"""

from __future__ import annotations

import asyncio
import gc
import os
import struct
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import uvloop

from benchmarks.cost import PROPERTIES, SocketlessBroker, Transport
from benchmarks.groups import (
    ASSIGNMENT,
    JOIN_VERSION,
    SYNC_VERSION,
    find_coordinator,
    first_join,
    generation_position,
    join_request,
)
from benchmarks.joining import ERROR, ERROR_END, GENERATION, GENERATION_END, LENGTH, MEMBER_ID_REQUIRED, third_text
from benchmarks.rows import unique
from benchmarks.wire import frame
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network.connection import Connection
from rota.coordinator.network.connections import Connections
from rota.coordinator.observe.logs import writing_by_thread
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUPS, MEMBERS, ROUNDS = 500, 1_000, 7
SHARE = LENGTH.pack(len(ASSIGNMENT)) + ASSIGNMENT


class Peer:
    """A connection without a socket."""

    def __init__(self, connections: Connections) -> None:
        self.transport, self.connection = Transport(), Connection(connections)
        self.connection.connection_made(cast(asyncio.Transport, self.transport))

    def take(self) -> bytes:
        """Return the one reply that was written."""
        reply = b"".join(self.transport.written)
        self.transport.written.clear()
        assert len(reply) == LENGTH.size + LENGTH.unpack_from(reply)[0], "one whole reply is expected"
        return reply


@dataclass(slots=True)
class Measured:
    """The processor time of the exchanges."""

    spent_s: float = 0.0

    async def exchange(self, peers: Sequence[Peer], frames: Sequence[bytes]) -> list[bytes]:
        """Send each peer's frame and let the broker work until every peer has a reply; return the replies."""
        began_s = time.thread_time()
        for peer, data in zip(peers, frames, strict=True):
            peer.connection.data_received(data)
        for peer in peers:
            while not peer.transport.written:
                await asyncio.sleep(0)
        self.spent_s += time.thread_time() - began_s
        return [peer.take() for peer in peers]

    def take_us(self, count: int) -> float:
        """Return the processor time since the last call, divided by `count`, in microseconds."""
        spent_s, self.spent_s = self.spent_s, 0.0
        return spent_s / count * 1e6


def error_of(reply: bytes) -> int:
    (error,) = ERROR.unpack_from(reply)
    return int(error)


async def joined_us(measured: Measured, peers: Sequence[Peer], count: int) -> float:
    """Microseconds for a group that gets its one member: an id, a generation and an assignment."""
    stem, each = unique("joined"), count // len(peers)
    measured.take_us(1)
    for at in range(each):
        groups = [first_join(f"{stem}-{at}-{number}") for number in range(len(peers))]
        replies = await measured.exchange(peers, [group.join for group in groups])
        assert set(map(error_of, replies)) == {MEMBER_ID_REQUIRED}
        ids = [third_text(reply, GENERATION_END) for reply in replies]
        joins = [group.join_with(member_id) for group, member_id in zip(groups, ids, strict=True)]
        replies = await measured.exchange(peers, joins)
        assert not any(map(error_of, replies))
        generation = replies[0][ERROR_END:GENERATION_END]
        syncs = [group.sync_with(generation, member_id, SHARE) for group, member_id in zip(groups, ids, strict=True)]
        assert not any(map(error_of, await measured.exchange(peers, syncs)))
    return measured.take_us(each * len(peers))


class Group:
    """A group of which each peer has a member; the first one leads."""

    def __init__(self, measured: Measured, peers: Sequence[Peer]) -> None:
        self._measured, self._peers, self._name = measured, peers, unique("rebalanced")
        self._joins: list[bytes] = []
        self._syncs: list[bytearray] = []

    async def settle(self) -> None:
        """Each member gets its id, then all join and sync."""
        name, measured, peers = self._name, self._measured, self._peers
        replies = await measured.exchange(peers, [frame(join_request(name, ""), JOIN_VERSION)] * len(peers))
        ids = [third_text(reply, GENERATION_END)[2:].decode() for reply in replies]
        self._joins = [frame(join_request(name, member_id), JOIN_VERSION) for member_id in ids]
        shares = tuple(SyncGroupRequestAssignment(member_id=each, assignment=ASSIGNMENT) for each in ids)
        self._syncs = [bytearray(self._sync(each, shares if each == ids[0] else ())) for each in ids]
        await self.rebalance_us()

    def _sync(self, member_id: str, shares: tuple[SyncGroupRequestAssignment, ...]) -> bytes:
        request = SyncGroupRequest(group_id=self._name, generation_id=0, member_id=member_id, assignments=shares)
        return frame(request, SYNC_VERSION)

    async def rebalance_us(self) -> float:
        """Microseconds of a member: the leader calls for a new generation, and all join and sync."""
        self._measured.take_us(1)
        replies = await self._measured.exchange(self._peers, self._joins)
        assert not any(map(error_of, replies))
        (generation,) = GENERATION.unpack_from(replies[0])
        for data in self._syncs:
            struct.pack_into(">i", data, generation_position(self._name), generation)
        replies = await self._measured.exchange(self._peers, list(map(bytes, self._syncs)))
        assert not any(map(error_of, replies))
        return self._measured.take_us(len(self._peers))


async def measure(folder: str, members: int = MEMBERS, groups: int = GROUPS) -> None:
    """Print a line for each."""
    broker = SocketlessBroker(BrokerConfig({**PROPERTIES, "log.dirs": folder}))
    host, port = await broker.start()
    await asyncio.get_running_loop().run_in_executor(None, find_coordinator, f"{host}:{port}", "any")
    peers = [Peer(broker.shared) for _ in range(members)]
    await asyncio.sleep(0.2)  # the first generation waits a little for clients that have just connected
    measured = Measured()
    group = Group(measured, peers)
    await group.settle()
    members_us = [await group.rebalance_us() for _ in range(ROUNDS)]
    print(f"{f'a member of a rebalance of {members:,}':42} {min(members_us):7.2f} us")
    groups_us = [await joined_us(measured, peers[:8], groups) for _ in range(ROUNDS)]
    print(f"{'a group joined, 8 at once':42} {min(groups_us):7.2f} us")
    for peer in peers:
        peer.connection.connection_lost(None)
    await broker.stop()


def main() -> None:
    gc.set_threshold(100_000, 50, 100)  # as `rota serve` sets it
    with (
        tempfile.TemporaryDirectory(prefix="rota-cost-") as folder,
        open(os.devnull, "w") as nowhere,
        writing_by_thread("json", "info", nowhere),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(measure(folder))


if __name__ == "__main__":
    main()
