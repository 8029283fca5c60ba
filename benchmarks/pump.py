"""Keeps so many ready-made frames outstanding on each connection, and checks every byte that comes back.

Frames go round in a ring and so do the replies that must come: a reply is compared, not decoded, which is why one
process of Python drives several hundred thousand requests a second (`python -m benchmarks.pump` shows it).
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.joining import timed
from benchmarks.wire import CONNECT_S

RECV_BYTES = 1 << 18


class WrongReply(AssertionError):
    """The broker answered something else than success."""


@dataclass(slots=True)
class LoadConnection:
    """One connection: its frames, and the reply (with its length) that each must get."""

    frames: Sequence[bytes]
    replies: Sequence[bytes]


@dataclass(slots=True)
class Pumped:
    """What was done; times in milliseconds."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds


class _Conn:
    __slots__ = ("expected", "frames", "inflight", "position", "received", "reply_bytes", "sent_at", "socket")

    def __init__(self, address: str, lane: LoadConnection, inflight: int) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), CONNECT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # the ring twice in a row, so that any window of it is one slice
        self.frames = list(lane.frames) * 2 if len(lane.frames) >= inflight else list(lane.frames) * (2 * inflight)
        replies = list(lane.replies) * (len(self.frames) // len(lane.replies))
        (self.reply_bytes,) = {len(reply) for reply in replies}
        self.expected = b"".join(replies)
        self.inflight, self.position, self.received = inflight, 0, b""
        self.sent_at: list[float] = []

    def send(self, count: int, now: float) -> None:
        count_of_frames = len(self.frames) // 2
        start = self.position % count_of_frames
        self.socket.sendall(b"".join(self.frames[start : start + count]))
        self.position += count
        self.sent_at += [now] * count

    def take(self, latencies: list[float]) -> int:
        """Read what is there; how many replies came."""
        data = self.received + self.socket.recv(RECV_BYTES)
        count = len(data) // self.reply_bytes
        whole = count * self.reply_bytes
        first = (self.position - len(self.sent_at)) % (len(self.frames) // 2) * self.reply_bytes
        if not data or data[:whole] != self.expected[first : first + whole]:
            raise WrongReply(f"expected {self.expected[first : first + whole].hex()}, got {data[:whole].hex()}")
        self.received = data[whole:]
        now = time.perf_counter()
        latencies += [now - sent for sent in self.sent_at[:count]]
        del self.sent_at[:count]
        return count


def pump(address: str, lanes: Sequence[LoadConnection], inflight: int, seconds: float) -> Pumped:
    """Drive all lanes for that long. Raises WrongReply."""
    conns = {conn.socket.fileno(): conn for conn in (_Conn(address, lane, inflight) for lane in lanes)}
    poller = select.epoll()
    for number in conns:
        poller.register(number, select.EPOLLIN)
    latencies: list[float] = []
    with timed(address):
        began = now = time.perf_counter()
        for conn in conns.values():
            conn.send(inflight, now)
        open_conns = len(conns)
        while open_conns:
            for number, _ in poller.poll(10):
                conn = conns[number]
                received = conn.take(latencies)
                now = time.perf_counter()
                if now - began < seconds:
                    if received:
                        conn.send(received, now)
                elif not conn.sent_at:
                    poller.unregister(number)
                    open_conns -= 1
        took = time.perf_counter() - began
    for conn in conns.values():
        conn.socket.close()
    latencies.sort()
    return Pumped(len(latencies), took, _share_ms(latencies, 0.5), _share_ms(latencies, 0.99))


def _share_ms(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


def _ceiling() -> None:
    """How fast the pump itself is, against a peer that answers without looking."""
    import os

    reply = bytes(16)
    server = socket.create_server(("127.0.0.1", 0))
    frame = bytes(80)
    child = os.fork()
    if child == 0:
        peers = [server.accept()[0] for _ in range(4)]
        poller = select.epoll()
        by_number = {peer.fileno(): peer for peer in peers}
        for number in by_number:
            poller.register(number, select.EPOLLIN)
        while by_number:
            for number, _ in poller.poll():
                data = by_number[number].recv(RECV_BYTES)
                if not data:
                    poller.unregister(number)
                    del by_number[number]
                else:
                    by_number[number].sendall(reply * (len(data) // len(frame)))
        os._exit(0)
    done = pump(f"127.0.0.1:{server.getsockname()[1]}", [LoadConnection([frame] * 16, [reply] * 16)] * 4, 16, 3)
    os.waitpid(child, 0)
    print(f"the pump drives {done.per_s:,.0f} requests/s (4 connections x 16 in flight)")


if __name__ == "__main__":
    _ceiling()
