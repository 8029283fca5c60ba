"""One connection to a broker: it sends requests and matches responses to them by their correlation ids.

Laws
    Requests are written in the order of the calls, and a Kafka broker responds in that order. A response with an
    unexpected correlation id, or one that cannot be decoded, closes the connection.
    A request that has no response by its deadline closes the connection, even if its caller was cancelled. This detects
    a broker that accepts connections but no longer responds.
    Cancelling one request does not affect the others: its response is read and discarded.
    When the connection closes, every pending request raises the reason. No request waits for ever.
    Requests that the socket does not accept yet, and requests made while the broker throttles this client (KIP-219),
    are queued and written later in the same order.
    NC13 Requests without a response that are written are sent before the end of a connection that its owner closes.

The file is longer than 400 lines because one class owns the state of a connection.
"""

from __future__ import annotations

import asyncio
import copy
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, cast

from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header
from rota.protocol.registry import APIS
from rota.protocol.wire import DecodeError
from rota.transport.errors import KafkaError, TimedOut, TlsFailed, Unreachable
from rota.transport.frames import Frames, InvalidFrame
from rota.transport.shielded import shielded
from rota.transport.tls import tls_failure
from rota.transport.versions import NO_FEATURES, Features, newest
from rota.transport.writing import write_parts

COPIED_BYTES_MAX: Final = 64 * 1024  # a request up to this size goes out as one piece
LINGER_SECONDS: Final = 5.0  # NC13, where the owner has not less time
THROTTLE_SECONDS_MAX: Final = 60.0  # no broker's quota asks for more: its window is eleven seconds by default
CORRELATION_MASK: Final = 0x7FFFFFFF
_lead = struct.Struct(">ihhi").pack

Parts = list[bytes | memoryview]


class ApiCodec(NamedTuple):
    """Encodes requests and decodes responses of one API in one version."""

    key: int
    version: int
    parts: Callable[[Any], Parts]
    decode: Callable[[bytes, int], tuple[Any, int]]
    tail: bytes  # the end of the request header: the client id, then zero tagged fields
    body_at: int  # position of the response body when the response header has no tagged fields
    throttles: bool  # its responses have throttle_time_ms


class Slot:
    """A request without a response. `waiter` gets the response frame; `deadline` is a time of the loop."""

    __slots__ = ("correlation", "deadline", "is_written", "seconds", "waiter")

    def __init__(self, correlation: int, deadline: float, seconds: float, waiter: asyncio.Future[bytes]) -> None:
        self.correlation, self.deadline, self.seconds, self.waiter = correlation, deadline, seconds, waiter
        self.is_written = False


class Connection(asyncio.Protocol):
    """`peer` names the broker in error messages. The handshake sets `versions`, the version ranges of the broker,
    and `features`, the finalized features of the cluster."""

    def __init__(self, peer: str, client_id: str, ended: Callable[[Connection], None] | None = None) -> None:
        self.peer = peer
        self.versions: dict[int, range] = {}
        self.features: Features = NO_FEATURES
        self.used_at = 0.0
        self.answers = 0
        self.failure: KafkaError | None = None
        raw = client_id.encode()
        self._client = struct.pack(">h", len(raw)) + raw
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self.was_closed_by_broker = False
        self.address: tuple[str, int] | None = None  # of the broker, as IP address and port
        self._codecs: dict[tuple[type, int, int | None], ApiCodec] = {}
        self._slots: deque[Slot] = deque()
        self._correlation = 0
        self._unsent: deque[tuple[Parts, Slot | None]] = deque()
        self._has_unanswered = False  # requests were sent that have no response
        self._writable: asyncio.Future[None] | None = None  # pending while requests may not be written
        self._is_full = False  # the socket's write buffer is above its limit
        self._is_held = False  # by `hold`
        self._throttled_until = 0.0  # no request is written before (throttle_time_ms)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._lost = self._loop.create_future()
        self._attached: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self.failure is None and self._transport is not None

    @property
    def in_flight(self) -> int:
        """The number of requests without a response."""
        return len(self._slots)

    # ---- requests

    async def send_request(
        self, request: Any, seconds: float, version_min: int = 0, version_max: int | None = None
    ) -> Any:
        """Send a request and return its response. Raises Unreachable, TimedOut, Unsupported."""
        kind = request.__class__
        api_codec = self._codecs.get((kind, version_min, version_max)) or self.codec_for(kind, version_min, version_max)
        return self.read(api_codec, await self.send(api_codec, request, seconds))

    async def send_request_ahead(self, request: Any, seconds: float, version_min: int = 0) -> Any:
        """As `send_request`, ahead of the requests that `hold` or the throttling delays. `seconds` begin when the
        requests that were sent before are past their deadlines: a broker answers one after the other."""
        api_codec = self.codec_for(request.__class__, version_min)
        self._correlation = (self._correlation + 1) & CORRELATION_MASK
        now = self._loop.time()
        written = [slot for slot in self._slots if slot.is_written]
        deadline = max([now, *(slot.deadline for slot in written)]) + seconds
        slot = Slot(self._correlation, deadline, seconds, self._loop.create_future())
        self._write(api_codec, slot.correlation, request, slot, is_ahead=True)
        self._slots.insert(len(written), slot)
        if self._timer is None or deadline < self._timer_at:
            self._watch(deadline)
        return self.read(api_codec, await slot.waiter)

    async def send_without_response(
        self, request: Any, seconds: float, version_min: int = 0, version_max: int | None = None
    ) -> None:
        """Send a request that has no response (acks=0); return once it is written. Raises Unreachable, Unsupported;
        TimedOut when the broker does not take it within `seconds`, which closes the connection.

        `end` with `linger_seconds` sends what is written.
        """
        api_codec = self.codec_for(request.__class__, version_min, version_max)
        self._has_unanswered = True
        self.used_at = self._loop.time()
        self._correlation = (self._correlation + 1) & CORRELATION_MASK
        self._write(api_codec, self._correlation, request, None)
        limit = asyncio.timeout_at(max(self.used_at, self._throttled_until) + seconds)
        try:
            async with limit:
                while self._writable is not None:
                    await shielded(self._writable)
        except TimeoutError:
            if not limit.expired():
                raise
            self.end(TimedOut(f"broker {self.peer} did not take a request within {seconds * 1000:.0f} ms"))
        if self.failure is not None:
            raise self._failed()

    def version(self, key: int) -> int:
        """Return the newest version of the API that both sides support. Raises Unsupported."""
        return newest(self.peer, self.versions, key)

    def codec_for(self, request: type[Any], low: int = 0, high: int | None = None) -> ApiCodec:
        """Return the codec of the newest version that both sides support. Raises Unsupported."""
        found = self._codecs.get((request, low, high))
        if found is None:
            version = newest(self.peer, self.versions, request.KEY, low, high)
            found = self._codecs[request, low, high] = self.codec_at_version(request, version)
        return found

    def codec_at_version(self, request: type[Any], version: int) -> ApiCodec:
        """Return the codec of this version, even if the broker does not support it."""
        key: int = request.KEY
        api = APIS[key]
        tail = self._client + (b"\0" if version >= api.flexible else b"")
        at = read_response_header(bytes(5), key, version)[1]
        throttles = hasattr(api.response, "throttle_time_ms")
        decode = codec(api.response, version).decode
        return ApiCodec(key, version, codec(request, version).parts, decode, tail, at, throttles)

    def send(self, api_codec: ApiCodec, request: Any, seconds: float) -> asyncio.Future[bytes]:
        """Send a request and return the future of its response frame. Raises Unreachable on a closed connection."""
        self._correlation = correlation = (self._correlation + 1) & CORRELATION_MASK
        now = self._loop.time()
        deadline = max(now, self._throttled_until) + seconds
        waiter: asyncio.Future[bytes] = self._loop.create_future()
        slot = Slot(correlation, deadline, seconds, waiter)
        self._write(api_codec, correlation, request, slot)
        self.used_at = now
        self._slots.append(slot)
        if self._timer is None or deadline < self._timer_at:
            self._watch(deadline)
        return waiter

    def read(self, api_codec: ApiCodec, frame: bytes) -> Any:
        """Decode a response frame. If that fails, close the connection and raise Unreachable."""
        try:
            at = api_codec.body_at
            if at == 5 and frame[4]:
                at = read_response_header(frame, api_codec.key, api_codec.version)[1]
            answer = api_codec.decode(frame, at)[0]
        except (DecodeError, IndexError) as cause:
            name = APIS[api_codec.key].name
            why = Unreachable(
                f"broker {self.peer} answered {name} version {api_codec.version} with {len(frame)} bytes that cannot "
                f"be read ({cause}); the connection was closed"
            )
            self.end(why)
            raise why from cause
        if api_codec.throttles and answer.throttle_time_ms > 0:
            self._throttle(answer.throttle_time_ms / 1000)
        return answer

    def _write(
        self, api_codec: ApiCodec, correlation: int, request: Any, slot: Slot | None, *, is_ahead: bool = False
    ) -> None:
        if self.failure is not None:
            raise self._failed()
        assert self._transport is not None, "asked before it was connected"
        parts = api_codec.parts(request)
        size = sum(map(len, parts)) + len(api_codec.tail) + 8
        out: Parts = [_lead(size, api_codec.key, api_codec.version, correlation), api_codec.tail, *parts]
        if self._writable is not None and not is_ahead:
            self._unsent.append((out, slot))
            return
        if slot is not None:
            slot.is_written = True
        if size <= COPIED_BYTES_MAX:
            self._transport.write(b"".join(out))
        else:
            write_parts(self._transport, out)

    # ---- callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = made = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass
        self.used_at = self._loop.time()
        name = made.get_extra_info("peername")
        self.address = (name[0], name[1]) if isinstance(name, tuple) else None
        plug = made.get_extra_info("socket")
        if plug is not None:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        if self.failure is not None:
            return  # TLS reads on while it sends what is left (NC13)
        try:
            frames = self._frames.feed(data)
        except InvalidFrame as why:
            self.end(_invalid(self.peer, why))
            return
        for frame in frames:
            self._answer(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if isinstance(exc, ssl.SSLError) and "_ALERT_" in (exc.reason or ""):
            self.end(tls_failure(self.peer, self.peer, exc))  # TLS 1.3 refuses a client after its handshake
        why = f": {exc}" if exc is not None else ""
        self.was_closed_by_broker = self.failure is None
        self.end(Unreachable(f"broker {self.peer} closed the connection{why}"))
        if self._timer is not None:  # of `end`
            self._timer.cancel()
        if not self._lost.done():
            self._lost.set_result(None)

    def _answer(self, frame: bytes) -> None:
        if not self._slots:
            self.end(Unreachable(f"broker {self.peer} sent a response without a request; the connection was closed"))
            return
        slot = self._slots[0]
        correlation = int.from_bytes(frame[:4], "big", signed=True)
        if correlation != slot.correlation:
            problem = f"answered request {correlation} where {slot.correlation} was next; the connection was closed"
            self.end(Unreachable(f"broker {self.peer} {problem}"))
            return
        self._slots.popleft()
        self.answers += 1
        if not slot.waiter.done():
            slot.waiter.set_result(frame)

    # ---- back-pressure and throttling

    def pause_writing(self) -> None:
        self._is_full = True
        self._hold()

    def resume_writing(self) -> None:
        self._is_full = False
        self._release()

    @contextmanager
    def hold(self, at: float) -> Iterator[Callable[[], None]]:
        """Delay all requests but those of `send_request_ahead` from that time on, or the call of what is yielded."""
        timer = self._loop.call_at(at, self._begin_hold)
        try:
            yield self._begin_hold
        finally:
            timer.cancel()
            self._is_held = False
            self._release()

    def _begin_hold(self) -> None:
        self._is_held = True
        self._hold()

    def _throttle(self, seconds: float) -> None:
        """Write no request for `seconds`, at most THROTTLE_SECONDS_MAX."""
        self._throttled_until = max(self._throttled_until, self._loop.time() + min(seconds, THROTTLE_SECONDS_MAX))
        self._hold()
        self._loop.call_at(self._throttled_until, self._release)

    def _hold(self) -> None:
        if self._writable is None and self.failure is None:
            self._writable = self._loop.create_future()

    def _release(self) -> None:
        """Write queued requests until the socket's buffer is full or the queue is empty."""
        while self._unsent and self._is_writable and self._transport is not None:
            parts, slot = self._unsent.popleft()
            if slot is not None:
                slot.is_written = True
            write_parts(self._transport, parts)
        if not self._unsent and self._is_writable:
            self._release_writers()

    @property
    def _is_writable(self) -> bool:
        return not self._is_full and not self._is_held and self._loop.time() >= self._throttled_until

    def _release_writers(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None:
            writable.set_result(None)

    # ---- deadlines

    def _watch(self, deadline: float) -> None:
        """Check the deadlines at `deadline`. One timer serves all requests; most requests do not reset it."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._check_deadlines)

    def _check_deadlines(self) -> None:
        """Close the connection if a request is past its deadline, else set the timer for the next deadline."""
        self._timer = None
        if not self._slots:
            return
        late = min(self._slots, key=lambda slot: slot.deadline)
        if late.deadline > self._timer_at:
            self._watch(late.deadline)
            return
        problem = f"did not answer within {late.seconds * 1000:.0f} ms (request_timeout_ms); the connection was closed"
        self.end(TimedOut(f"broker {self.peer} {problem}"))

    # ---- closing

    def end(self, why: KafkaError, *, linger_seconds: float = 0.0) -> None:
        """Fail all pending requests with `why` and abort the socket. Only the first reason is kept.

        Requests without a response that are written, but not sent yet, get `linger_seconds` to be sent.
        """
        if self.failure is None:
            self.failure = why
            if self._timer is not None:
                self._timer.cancel()
            if self._attached is not None and self._attached is not _current_task():
                self._attached.cancel()
            self._unsent.clear()
            self._release_writers()
            slots, self._slots = self._slots, deque()
            for slot in slots:
                if not slot.waiter.done():
                    slot.waiter.set_exception(self._failed())
            if self._ended is not None:
                self._ended(self)
        if self._transport is not None and linger_seconds > 0 and self._has_unanswered:
            self._transport.close()
            self._timer = self._loop.call_later(linger_seconds, self._transport.abort)
        elif self._transport is not None:
            self._transport.abort()

    def attach(self, task: asyncio.Task[None]) -> None:
        """Cancel the task when the connection ends."""
        self._attached = task
        if self.failure is not None:
            task.cancel()

    async def closed(self) -> None:
        """Wait until the socket is closed."""
        await shielded(self._lost)
        if self._attached is not None:
            await asyncio.wait([self._attached])

    def _failed(self) -> KafkaError:
        assert self.failure is not None
        return copied(self.failure)


def copied(failure: KafkaError) -> KafkaError:
    """Return a copy of an exception, one for each waiting caller: a shared one would collect all their tracebacks."""
    made = copy.copy(failure)
    made.__cause__ = failure.__cause__
    return made


def tls_listener(peer: str) -> TlsFailed:
    """Return the error for a listener with TLS where TLS is not set."""
    remedy = "set security_protocol to SSL or SASL_SSL, or use another port"
    return TlsFailed(f"broker {peer} answered in TLS: this port is a TLS listener; {remedy}", broker=peer)


def _invalid(peer: str, why: InvalidFrame) -> KafkaError:
    if why.is_tls:
        return tls_listener(peer)
    return Unreachable(f"broker {peer} sent {why}; is it a Kafka listener without TLS and SASL?")


def _current_task() -> asyncio.Task[object] | None:
    """Return the running task; None in a callback of the event loop, also outside any loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
