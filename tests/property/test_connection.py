"""A connection under any order of what can happen: bytes, answers, a peer that does not read, turns of the loop."""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples

from rota.coordinator.api.node import Call
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network import connection
from rota.coordinator.network.call import Route
from rota.coordinator.network.connection import Connection
from rota.coordinator.network.connections import Connections
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

KINDS = ("now", "later", "mute", "join", "never", "at once", "mute at once")
REPLY_BYTES = 14


class Socket:
    """A transport: what was written, whether it reads."""

    def __init__(self) -> None:
        self.written = b""
        self.unread_bytes = 0  # of what was written while the peer does not read
        self.is_write_paused = False
        self.reads, self.closed = True, False

    def get_extra_info(self, name: str) -> tuple[str, int] | None:
        return None if name == "ssl_object" else ("127.0.0.1", 1)

    def set_write_buffer_limits(self, high: int) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written += data
        if self.is_write_paused:
            self.unread_bytes += len(data)

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def writelines(self, pieces: list[bytes]) -> None:
        self.write(b"".join(pieces))

    def pause_reading(self) -> None:
        assert self.reads
        self.reads = False

    def resume_reading(self) -> None:
        assert not self.reads
        self.reads = True

    def close(self) -> None:
        self.closed = True

    abort = close


class Run:
    """One connection with its broker and its loop."""

    def __init__(self, kinds: list[str], bounds: dict[str, str]) -> None:
        self.kinds = kinds
        self.soon: list[Callable[[], None]] = []
        self.parked: dict[int, DelayedReply[HeartbeatResponse]] = {}
        self.requests: list[int] = []
        self.abandoned: set[int] = set()
        self.running = False
        node: Any = SimpleNamespace(config=BrokerConfig(bounds), now_ms=lambda: 0)
        route = Route(12, "Heartbeat", range(5), 4, HeartbeatRequest, HeartbeatResponse, self.serve)
        self.owner = Connections(node, {12: route}, self.soon.append)
        self.socket = Socket()
        self.connection = Connection(self.owner)
        self.connection.connection_made(cast(Any, self.socket))
        self.stream = b"".join(map(self.frame, range(len(kinds))))

    @staticmethod
    def frame(number: int) -> bytes:
        body = struct.pack(">hhihc", 12, 1, number, 1, b"c") + struct.pack(">hcihc", 1, b"g", number, 1, b"m")
        return struct.pack(">i", len(body)) + body

    def serve(self, node: Any, call: Call, request: HeartbeatRequest) -> Any:
        assert not self.running, "a request was served from within another's reply"
        number, response = (
            request.generation_id,
            HeartbeatResponse(error_code=0, throttle_time_ms=request.generation_id),
        )
        self.requests.append(number)
        kind = self.kinds[number]
        if kind == "now":
            return response
        if kind == "never":
            return None
        parked: DelayedReply[HeartbeatResponse] = DelayedReply(mutes=kind in ("mute", "join", "mute at once"))
        if kind in ("at once", "mute at once"):
            parked.answer(response)
        else:
            self.parked[number] = parked
            if kind != "join":
                parked.on_abandon(lambda: self.abandoned.add(number))
        return parked

    def answer(self, number: int) -> None:
        self.running = True
        self.parked.pop(number).answer(HeartbeatResponse(error_code=0, throttle_time_ms=number))
        self.running = False

    def turn(self) -> None:
        calls, self.soon[:] = self.soon[:], []
        for call in calls:
            call()

    def joins(self) -> list[int]:
        """The requests that wait for more than their peer."""
        return [number for number in self.parked if self.kinds[number] == "join"]

    def replied(self) -> list[int]:
        written = self.socket.written
        assert len(written) % REPLY_BYTES == 0
        replies = list(struct.iter_unpack(">iiih", written))
        assert all(size == REPLY_BYTES - 4 and correlation == reply for size, correlation, reply, _ in replies)
        return [correlation for _, correlation, _, _ in replies]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("feed"), st.integers(1, 200)),
        st.tuples(st.just("answer"), st.integers(0, 50)),
        st.tuples(st.just("turn"), st.just(0)),
        st.tuples(st.just("choke"), st.just(0)),
        st.tuples(st.just("read"), st.just(0)),
    ),
    max_size=60,
)
BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "queued.max.requests": st.sampled_from(["1", "2", "5"]),
        "rota.connection.inflight.bytes.max": st.sampled_from(["1", "60"]),
    },
)


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(st.sampled_from(KINDS), max_size=20), BOUNDS, STEPS, st.booleans(), st.sampled_from([1, 3, 256]))
def test_replies_keep_the_order_of_requests_and_nothing_is_left_behind(
    kinds: list[str], bounds: dict[str, str], steps: list[tuple[str, int]], leaves: bool, turn_requests: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "TURN_REQUESTS_MAX", turn_requests)
        converse(kinds, bounds, steps, leaves)


def converse(kinds: list[str], bounds: dict[str, str], steps: list[tuple[str, int]], leaves: bool) -> None:
    run, fed, write_paused = Run(kinds, bounds), 0, False
    expected = [number for number, kind in enumerate(kinds) if kind != "never"]
    for what, number in steps:
        if what == "feed" and run.socket.reads:
            run.connection.data_received(run.stream[fed : fed + number]) if fed < len(run.stream) else None
            fed += number
        elif what == "answer" and run.parked:
            run.answer(sorted(run.parked)[number % len(run.parked)])
        elif what == "turn":
            run.turn()
        elif what == "choke" and not write_paused:
            write_paused = run.socket.is_write_paused = True
            run.connection.pause_writing()
        elif what == "read" and write_paused:
            write_paused = run.socket.is_write_paused = False
            run.socket.unread_bytes = 0
            run.connection.resume_writing()
        assert run.requests == list(range(len(run.requests)))
        assert run.replied() == expected[: len(run.replied())]
    if leaves:
        run.socket.closed = True
        run.connection.connection_lost(None)
        while run.soon or run.joins():  # N17: what came before the end is served, unless the peer did not read
            run.turn()
            if not run.soon and run.joins():
                run.answer(run.joins()[0])
        received = min(fed, len(run.stream)) // len(run.frame(0))
        assert run.requests == list(range(len(run.requests) if write_paused else received))
        assert run.abandoned == set(run.parked)
        for number in list(run.parked):
            run.answer(number)
    else:
        finish(run, fed, write_paused)
        assert run.replied() == expected
        assert run.requests == list(range(len(kinds)))
        run.connection.connection_lost(None)
        assert not run.soon
    assert run.owner.request_memory.held_bytes == 0
    assert len(run.owner) == 0


def finish(run: Run, fed: int, write_paused: bool) -> None:
    """Let everything come to its end: the peer reads, all bytes arrive, every request is answered."""
    if write_paused:
        run.connection.resume_writing()
    for _ in range(8 * len(run.kinds) + 8):
        if run.socket.reads and fed < len(run.stream):
            run.connection.data_received(run.stream[fed:])
            fed = len(run.stream)
        for number in list(run.parked):
            run.answer(number)
        run.turn()
    assert not run.soon
    assert run.socket.reads
