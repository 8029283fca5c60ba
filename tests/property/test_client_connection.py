"""A client's connection, step by step, on a wire in memory: whatever is asked, cancelled, held back, cut or garbled.

NC1, NC2: every request gets its own answer or a failure; requests leave in order; nobody waits for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples

from rota.client.errors import KafkaError, Unreachable
from rota.protocol.compiler import codec
from rota.protocol.header import read_request, response_header
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.transport.connection import Connection

VERSION = 4


class Wire(asyncio.Transport):
    """What was written, and whether it was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def writelines(self, parts: Any) -> None:
        self.written += b"".join(parts)

    def abort(self) -> None:
        self.aborted = True


class World:
    """A connection, its wire and the broker at the other end."""

    def __init__(self) -> None:
        self.connection = Connection("b", "me")
        self.connection.versions = {12: range(VERSION + 1)}
        self.wire = Wire()
        self.connection.connection_made(self.wire)
        self.pending: list[asyncio.Task[Any]] = []
        self.received: list[int] = []  # generations, as the broker read them
        self.owed: deque[bytes] = deque()
        self.sent: list[bytes] = []
        self.full = False
        self.ended = False

    async def do(self, step: tuple[str, int]) -> None:
        name, number = step
        getattr(self, name)(number)
        for _ in range(3):
            await asyncio.sleep(0)
        self._read()

    def _read(self) -> None:
        """The broker reads whole requests, and owes an answer to each."""
        while len(self.wire.written) >= 4:
            size = int.from_bytes(self.wire.written[:4], "big")
            if len(self.wire.written) < 4 + size:
                break
            header, request = read_request(self.wire.written[4 : 4 + size])
            self.wire.written = self.wire.written[4 + size :]
            self.received.append(request.generation_id)
            body = response_header(header.correlation_id, 12, VERSION)
            body += codec(HeartbeatResponse, VERSION).encode(HeartbeatResponse(error_code=request.generation_id))
            self.owed.append(len(body).to_bytes(4, "big") + body)

    # steps

    def send_request(self, _: int) -> None:
        request = HeartbeatRequest(group_id="g", generation_id=len(self.pending), member_id="m")
        self.pending.append(asyncio.ensure_future(self.connection.send_request(request, 60)))

    def cancel(self, number: int) -> None:
        if self.pending:
            self.pending[number % len(self.pending)].cancel()

    def answer(self, number: int) -> None:
        """A few answers, in pieces of a few bytes."""
        data = b"".join(self.owed.popleft() for _ in range(min(number % 4 + 1, len(self.owed))))
        if not self.ended:
            for at in range(0, len(data), 1 + number % 7):
                self.connection.data_received(data[at : at + 1 + number % 7])

    def fill(self, _: int) -> None:
        if not self.full and not self.ended:
            self.full = True
            self.connection.pause_writing()

    def drain(self, _: int) -> None:
        if self.full and not self.ended:
            self.full = False
            self.connection.resume_writing()

    def garble(self, number: int) -> None:
        if not self.ended:
            self.connection.data_received(b"\xff\xff\xff\xff" if number % 2 else b"\0\0\0\x08abcdefgh")

    def lose(self, _: int) -> None:
        if not self.ended:
            self.ended = True
            self.connection.connection_lost(None)


HARMLESS = ("send_request", "send_request", "send_request", "cancel", "answer", "answer", "fill", "drain")
steps = st.tuples(st.sampled_from(HARMLESS), st.integers(0, 30))
harms = st.tuples(st.sampled_from((*HARMLESS, "garble", "lose")), st.integers(0, 30))


async def played(script: list[tuple[str, int]]) -> World:
    world = World()
    for step in script:
        await world.do(step)
    return world


@settings(max_examples=examples(150), deadline=None)
@given(script=st.lists(steps, max_size=40))
def test_every_request_gets_its_own_response(script: list[tuple[str, int]]) -> None:
    async def play() -> None:
        world = await played(script)
        await world.do(("drain", 0))
        while world.owed:
            await world.do(("answer", 3))
        requests = list(range(len(world.pending)))
        assert world.received == requests, "they leave in order, the cancelled ones too"
        for number, task in enumerate(world.pending):
            assert task.done(), "nobody waits for ever"
            assert task.cancelled() or task.result().error_code == number
        assert world.connection.is_open
        assert world.connection.in_flight == 0
        world.connection.end(Unreachable("over"))

    asyncio.run(play())


@settings(max_examples=examples(150), deadline=None)
@given(script=st.lists(harms, max_size=40))
def test_closing_fails_every_pending_request(script: list[tuple[str, int]]) -> None:
    async def play() -> None:
        world = await played(script)
        world.connection.end(Unreachable("over"))
        await asyncio.gather(*world.pending, return_exceptions=True)
        assert world.wire.aborted or world.ended
        for number, task in enumerate(world.pending):
            if task.cancelled():
                continue
            failure = task.exception()
            assert isinstance(failure, KafkaError) if failure is not None else task.result().error_code == number
        late = asyncio.ensure_future(
            world.connection.send_request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 1)
        )
        await asyncio.wait([late])
        assert isinstance(late.exception(), KafkaError)
        assert world.connection.in_flight == 0

    asyncio.run(play())
