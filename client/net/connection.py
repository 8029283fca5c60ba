"""One connection to a broker: requests out, answers in, matched by their correlation ids.

Laws
    Requests leave in the order in which they were asked; answers come in that order, as Kafka promises: an answer with
    another correlation id, or one that cannot be read, ends the connection.
    A request without an answer by its deadline ends the connection, whoever still waits for it: a broker that is
    half gone is noticed.
    Who stops waiting harms nobody: the answer is read and dropped.
    When the connection ends, everybody who waits is told why; nobody waits for ever.
    What the socket does not take is kept in the order of the requests and goes out when it does.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from rota.client.errors import KafkaError, TimedOut, Unreachable
from rota.client.net.frames import FrameRefused, Frames
from rota.client.net.versions import newest
from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header
from rota.protocol.registry import APIS
from rota.protocol.wire import DecodeError

COPIED_BYTES_MAX: Final = 64 * 1024  # a request up to this size goes out as one piece
CORRELATION_MASK: Final = 0x7FFFFFFF
_lead = struct.Struct(">ihhi").pack

Parts = list[bytes | memoryview]


class Spoken(NamedTuple):
    """One API in one version, as this connection speaks it."""

    key: int
    version: int
    parts: Callable[[Any], Parts]
    decode: Callable[[bytes, int], tuple[Any, int]]
    tail: bytes  # of the header: the client id, and no tags
    body_at: int  # where an answer begins when it has no tags


class Slot:
    """A request that is under way."""

    __slots__ = ("correlation", "deadline", "seconds", "waiter")

    def __init__(self, correlation: int, deadline: float, seconds: float, waiter: asyncio.Future[bytes]) -> None:
        self.correlation, self.deadline, self.seconds, self.waiter = correlation, deadline, seconds, waiter


class Connection(asyncio.Protocol):
    """`peer` names the broker in messages; `versions` are those that it serves, once the handshake has set them."""

    def __init__(self, peer: str, client_id: str, ended: Callable[[Connection], None] | None = None) -> None:
        self.peer = peer
        self.versions: dict[int, range] = {}
        self.used_at = 0.0
        self.failure: KafkaError | None = None
        raw = client_id.encode()
        self._client = struct.pack(">h", len(raw)) + raw
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._spoken: dict[tuple[type, int, int | None], Spoken] = {}
        self._slots: deque[Slot] = deque()
        self._correlation = 0
        self._unsent: deque[Parts] = deque()
        self._room: asyncio.Future[None] | None = None  # while the socket takes nothing
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._lost = self._loop.create_future()

    @property
    def is_open(self) -> bool:
        return self.failure is None and self._transport is not None

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return len(self._slots)

    # ---- asking

    async def ask(self, request: Any, seconds: float, *, version_max: int | None = None, version_min: int = 0) -> Any:
        """The answer. Raises Unreachable, TimedOut, Unsupported."""
        spoken = self.speaks(request.__class__, version_min, version_max)
        frame = await self.send(spoken, request, seconds)
        return self.read(spoken, frame)

    async def tell(self, request: Any, *, version_max: int | None = None, version_min: int = 0) -> None:
        """A request that has no answer; returns when the socket has room again. Raises Unreachable, Unsupported."""
        spoken = self.speaks(request.__class__, version_min, version_max)
        self._correlation = (self._correlation + 1) & CORRELATION_MASK
        self._write(spoken, self._correlation, request)
        if self._room is not None:
            await asyncio.shield(self._room)

    def speaks(self, request: type[Any], low: int = 0, high: int | None = None) -> Spoken:
        """How this request is written here. Raises Unsupported."""
        found = self._spoken.get((request, low, high))
        if found is None:
            version = newest(self.peer, self.versions, request.KEY, low, high)
            found = self._spoken[request, low, high] = self.spoken(request, version)
        return found

    def version(self, key: int) -> int:
        """The version in which this API is asked here. Raises Unsupported."""
        return newest(self.peer, self.versions, key)

    def spoken(self, request: type[Any], version: int) -> Spoken:
        """This request in this version, whatever the broker serves."""
        key = request.KEY
        api = APIS[key]
        tail = self._client + (b"\0" if version >= api.flexible else b"")
        at = read_response_header(bytes(5), key, version)[1]
        return Spoken(key, version, codec(request, version).parts, codec(api.response, version).decode, tail, at)

    def send(self, spoken: Spoken, request: Any, seconds: float) -> asyncio.Future[bytes]:
        """The frame of the answer, when it is there. Raises Unreachable at once when the connection has ended."""
        self._correlation = correlation = (self._correlation + 1) & CORRELATION_MASK
        self._write(spoken, correlation, request)
        now = self._loop.time()
        self.used_at = now
        deadline = now + seconds
        waiter: asyncio.Future[bytes] = self._loop.create_future()
        self._slots.append(Slot(correlation, deadline, seconds, waiter))
        if self._timer is None or deadline < self._timer_at:
            self._watch(deadline)
        return waiter

    def read(self, spoken: Spoken, frame: bytes) -> Any:
        """The message in an answer. Raises Unreachable, and ends the connection, when it cannot be read."""
        try:
            at = spoken.body_at
            if at == 5 and frame[4]:
                at = read_response_header(frame, spoken.key, spoken.version)[1]
            return spoken.decode(frame, at)[0]
        except (DecodeError, IndexError) as cause:
            name = APIS[spoken.key].name
            why = Unreachable(
                f"broker {self.peer} answered {name} version {spoken.version} with {len(frame)} bytes that cannot be "
                f"read ({cause}); the connection was closed"
            )
            self.end(why)
            raise why from cause

    def _write(self, spoken: Spoken, correlation: int, request: Any) -> None:
        if self.failure is not None:
            raise self._failed()
        assert self._transport is not None, "asked before it was connected"
        parts = spoken.parts(request)
        size = sum(map(len, parts)) + len(spoken.tail) + 8
        out: Parts = [_lead(size, spoken.key, spoken.version, correlation), spoken.tail, *parts]
        if size <= COPIED_BYTES_MAX:
            out = [b"".join(out)]
        if self._room is None:
            self._transport.writelines(out)
        else:
            self._unsent.append(out)

    # ---- what the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's only looks like one
        self.used_at = self._loop.time()

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._frames.feed(data)
        except FrameRefused as why:
            self.end(Unreachable(f"{self.peer} sent {why}; is it a Kafka listener of security protocol PLAINTEXT?"))
            return
        for frame in frames:
            self._answer(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        why = f": {exc}" if exc is not None else ""
        self.end(Unreachable(f"broker {self.peer} closed the connection{why}"))
        if not self._lost.done():
            self._lost.set_result(None)

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)
        while self._unsent and self._room is None and self._transport is not None:
            self._transport.writelines(self._unsent.popleft())

    def _answer(self, frame: bytes) -> None:
        if not self._slots:
            self.end(Unreachable(f"broker {self.peer} sent an answer that nobody asked for"))
            return
        slot = self._slots.popleft()
        correlation = int.from_bytes(frame[:4], "big", signed=True)
        if correlation != slot.correlation:
            self._slots.appendleft(slot)
            self.end(
                Unreachable(f"broker {self.peer} answered request {correlation}, where {slot.correlation} was next")
            )
        elif not slot.waiter.done():
            slot.waiter.set_result(frame)

    # ---- deadlines

    def _watch(self, deadline: float) -> None:
        """One timer for all requests: it is moved when it fires, not with each request."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._slots:
            return
        late = min(self._slots, key=lambda slot: slot.deadline)
        if late.deadline > self._timer_at:
            self._watch(late.deadline)
            return
        self.end(
            TimedOut(
                f"broker {self.peer} did not answer within {late.seconds * 1000:.0f} ms (request_timeout_ms); the "
                "connection was closed"
            )
        )

    # ---- the end

    def end(self, why: KafkaError) -> None:
        """Tell everybody who waits, and close at once. A second reason changes nothing."""
        if self.failure is None:
            self.failure = why
            if self._timer is not None:
                self._timer.cancel()
            slots, self._slots = self._slots, deque()
            for slot in slots:
                if not slot.waiter.done():
                    slot.waiter.set_exception(self._failed())
            self._unsent.clear()
            if self._room is not None and not self._room.done():
                self._room.set_result(None)
            if self._ended is not None:
                self._ended(self)
        if self._transport is not None:
            self._transport.abort()

    async def closed(self) -> None:
        """Until the socket is gone."""
        await asyncio.shield(self._lost)

    def _failed(self) -> KafkaError:
        """One exception for each who waits: a shared one would gather all their tracebacks."""
        assert self.failure is not None
        made = type(self.failure)(*self.failure.args)
        made.__cause__ = self.failure.__cause__
        return made
