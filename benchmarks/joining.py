"""The timed sections of the rows of joining groups: ready-made frames, few system calls, no codecs.

Requests are encoded before the clock starts. What an earlier answer decides, generation and member id, is put into
their bytes; of an answer only its error code and these fields are read. `timed` adds up how much processor time the
generator, which is this process, and the broker take meanwhile: a figure is the broker's when the generator takes
little of it.
"""

from __future__ import annotations

import gc
import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

RECV_BYTES = 1 << 18
RETRIABLE = {14, 15, 16, 27}
MEMBER_ID_REQUIRED = 79
NANOS = 1e9
# of an answer with its length: JoinGroup v5 and SyncGroup v3
LENGTH, ERROR, GENERATION = struct.Struct(">i"), struct.Struct(">12xh"), struct.Struct(">14xi")
ERROR_END, GENERATION_END = 14, 18
NO_TIMEOUT_S = 60.0


@dataclass(slots=True)
class Spent:
    """What the timed sections of one broker took."""

    wall_s: float = 0.0
    generator_s: float = 0.0
    broker_s: float = 0.0

    def __str__(self) -> str:
        """The shares of a core that the generator and the broker took; empty if nothing was timed."""
        if not self.wall_s:
            return ""
        return f"generator {self.generator_s / self.wall_s:.0%}, broker {self.broker_s / self.wall_s:.0%}"


_spent: dict[str, Spent] = {}  # by the broker's address
broker_pids: dict[str, int] = {}  # by address; the processor time of other brokers is not known


def take_spent(address: str) -> Spent:
    """Return what the timed sections took since the last call."""
    return _spent.pop(address, None) or Spent()


@contextmanager
def timed(address: str) -> Iterator[None]:
    """Count a section. Python's garbage collector does not run in it."""
    pid, spent = broker_pids.get(address), _spent.setdefault(address, Spent())
    gc.collect()
    gc.disable()
    broker_s = _cpu_s(pid)
    generator_s, wall_s = time.process_time(), time.perf_counter()
    try:
        yield
    finally:
        spent.wall_s += time.perf_counter() - wall_s
        spent.generator_s += time.process_time() - generator_s
        spent.broker_s += _cpu_s(pid) - broker_s
        gc.enable()


def _cpu_s(pid: int | None) -> float:
    """Processor time of the threads of a process, in nanoseconds; /proc/PID/stat has hundredths of a second."""
    if pid is None:
        return 0.0
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / NANOS


@dataclass(slots=True)
class Rejoining:
    """A member of a settled group: its JoinGroup, and its SyncGroup of the generation that begins."""

    socket: socket.socket
    join: bytes
    sync: bytearray
    generation_at: int  # in `sync`
    received: bytes = b""
    generation: int = -1

    def take(self, data: bytes) -> bool:
        """Take in received bytes. False while the answer is not whole. Raises AssertionError if it is a refusal."""
        if self.received:
            data = self.received + data
        if len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
            self.received = data
            return False
        self.received = b""
        (error,) = ERROR.unpack_from(data)
        assert not error, f"a member that rejoins is refused: error {error}"
        if self.generation < 0:
            (self.generation,) = GENERATION.unpack_from(data)
            struct.pack_into(">i", self.sync, self.generation_at, self.generation)
        return True


def rejoin(leader: Rejoining, followers: Sequence[Rejoining], address: str = "") -> float:
    """The leader calls for a new generation; seconds until all are in, from the first JoinGroup of the others on."""
    poller, by_number = select.epoll(), {member.socket.fileno(): member for member in (leader, *followers)}
    for number, member in by_number.items():
        member.socket.setblocking(False)
        poller.register(number, select.EPOLLIN)
    leader.socket.send(leader.join)
    time.sleep(0.02)  # the broker has it before the others are timed
    with timed(address):
        began = time.perf_counter()
        for member in followers:
            member.socket.send(member.join)
        left, joined = len(by_number), set[int]()
        while left:
            for number, _ in poller.poll(NO_TIMEOUT_S):
                member = by_number[number]
                if not member.take(member.socket.recv(RECV_BYTES)):
                    continue
                if number in joined:
                    left -= 1
                else:
                    joined.add(number)
                    _send_all(member.socket, member.sync)
        took = time.perf_counter() - began
    poller.close()
    for member in by_number.values():
        member.socket.settimeout(NO_TIMEOUT_S)
    return took


def _send_all(to: socket.socket, data: bytearray) -> None:
    """Send: the leader's SyncGroup may be larger than what a socket takes at once."""
    sent = to.send(data)
    if sent < len(data):
        to.settimeout(NO_TIMEOUT_S)
        to.sendall(memoryview(data)[sent:])
        to.setblocking(False)


@dataclass(slots=True)
class FirstJoin:
    """The frames of one member that is the first of its group; the parts around the member id and the generation."""

    join: bytes  # without a member id
    join_before: bytes  # without the length, up to the member id
    join_after: bytes
    sync_before: bytes  # without the length, up to the generation
    sync_after: bytes  # between the member id and the assignments

    def join_with(self, member_id: bytes) -> bytes:
        return framed(self.join_before, member_id, self.join_after)

    def sync_with(self, generation: bytes, member_id: bytes, assignment: bytes) -> bytes:
        """Return the SyncGroup of a leader who gives itself all; ids are with their lengths."""
        return framed(self.sync_before, generation, member_id, self.sync_after, member_id, assignment)


def framed(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return LENGTH.pack(len(body)) + body


@dataclass(slots=True)
class LoadConnection:
    """One connection on which one group after the other gets its member."""

    socket: socket.socket
    groups: Iterator[FirstJoin]
    assignment: bytes  # with its length
    group: FirstJoin | None = None
    sent: bytes = b""
    received: bytes = b""
    is_syncing: bool = False

    def next_group(self) -> bool:
        """Send the first JoinGroup of the next group; False when all are done."""
        self.group = next(self.groups, None)
        self.is_syncing = False
        if self.group is None:
            return False
        self.send(self.group.join)
        return True

    def send(self, frame: bytes) -> None:
        self.sent = frame
        self.socket.send(frame)

    def take(self, data: bytes) -> bool:
        """Take in received bytes and send what follows; False when all groups are done."""
        data = self.received + data if self.received else data
        if len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
            self.received = data
            return True
        self.received = b""
        (error,) = ERROR.unpack_from(data)
        if error in RETRIABLE:
            time.sleep(0.001)
            self.send(self.sent)
        elif self.is_syncing:
            assert not error, f"SyncGroup: error {error}"
            return self.next_group()
        else:
            self._joined(data, error)
        return True

    def _joined(self, data: bytes, error: int) -> None:
        assert self.group is not None
        member_id = third_text(data, GENERATION_END)
        if error == MEMBER_ID_REQUIRED:
            self.send(self.group.join_with(member_id))
            return
        assert not error, f"JoinGroup: error {error}"
        self.is_syncing = True
        self.send(self.group.sync_with(data[ERROR_END:GENERATION_END], member_id, self.assignment))


def third_text(data: bytes, at: int) -> bytes:
    """Return the third text from `at` on, with its length: the member id after assignor and leader."""
    for _ in range(2):
        at += 2 + int.from_bytes(data[at : at + 2], "big")
    return data[at : at + 2 + int.from_bytes(data[at : at + 2], "big")]


def join_all(lanes: Iterable[LoadConnection], address: str = "") -> float:
    """Join all groups of all lanes; seconds."""
    poller, by_number = select.epoll(), {lane.socket.fileno(): lane for lane in lanes}
    for number in by_number:
        poller.register(number, select.EPOLLIN)
    with timed(address):
        began = time.perf_counter()
        left = sum(lane.next_group() for lane in by_number.values())
        while left:
            for number, _ in poller.poll(NO_TIMEOUT_S):
                lane = by_number[number]
                left -= not lane.take(lane.socket.recv(RECV_BYTES))
        took = time.perf_counter() - began
    poller.close()
    return took
