"""One connection of a client: it reads request frames and sends replies in the order of the requests.

Laws
    G4  Every request is answered exactly once, or the connection is closed; delayed replies are abandoned then.
    Replies are sent in the order of the requests, whatever the order in which they become ready.
    An error of the peer, or of one API, closes this connection with a logged reason and harms no other.
    Requests in flight, queued requests and unread replies are bounded. At a bound the connection stops serving
    requests; while they wait for a reply or for memory it reads at most READ_AHEAD_BYTES more, then stops reading.
    N16 However many requests a peer has sent, TURN_REQUESTS_MAX of them are served at a time, at most three times in a
        turn of the event loop (as they come, and in the two rounds of `TickQueue`), before other connections are. Kafka
        serves one. Between them a consumer's Fetch is answered, with short runs of each partition that is written.
    N17 Requests that a peer has sent before it closes its connection are served: a producer with acks=0 waits for no
        reply. While some are queued nothing more is read, unless they wait for a reply: the end abandons it, or they
        are served after it, as in Kafka. Those of a peer that has not read its replies are not.

The file is longer than 400 lines because one class owns the state of a connection.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from rota.coordinator.network.call import Call, ClientSoftware, CloseConnection
from rota.coordinator.network.dispatch import HANDLERS_MAX, ApiHandler, UnknownApi, read_head, skip_tags
from rota.coordinator.network.frames import Framer
from rota.coordinator.network.owner import Owner, address, sends_files, unacknowledged_bytes
from rota.coordinator.network.replies import Slot, framed, pack_lead, pack_lead_tagged
from rota.coordinator.observe.counters import ApiCounters, now_ns
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.principal import ANONYMOUS, Principal
from rota.protocol.constructs import GARBLED
from rota.protocol.wire import DecodeError

if TYPE_CHECKING:
    from rota.coordinator.network.file_sending import Piece
    from rota.coordinator.network.unauthenticated import Handshake
    from rota.coordinator.security.sasl.session import SaslSession

FIND_COORDINATOR = 10  # its API key
WRITE_CHUNK_BYTES = 64 * 1024  # replies go to the socket at least this often
TURN_REQUESTS_MAX = 16  # N16. Requests of one connection that are served at a time
SEARCHED_REQUESTS_MAX = 1_024  # for a FindCoordinator among those that wait
READ_AHEAD_BYTES = 64 * 1024  # read while no request is served, so that the end of the connection is noticed

# Mute reasons: while a connection has one it serves no request.
AWAITS_REPLY, PEER_NOT_READING, IN_FLIGHT_FULL, CLOSING, AWAITS_MEMORY, SUSPENDED = 1, 2, 4, 8, 16, 32
THROTTLED = 64
READS_ON = AWAITS_REPLY | AWAITS_MEMORY | THROTTLED  # with these reasons it still reads
ENDS_WITH_PEER = IN_FLIGHT_FULL | AWAITS_MEMORY  # nothing is sent to it any more
DRAINS_AFTER = THROTTLED | AWAITS_REPLY  # N17

UNUSED = ApiCounters()  # the counters of connections that have sent no reply yet
BoundHandler = tuple[ApiHandler, Call]  # a version of an API as one client uses it


class Connection(asyncio.Protocol):
    """The connection of one peer. Received bytes set `active`; the sweep for idle connections clears it."""

    __slots__ = (
        *("_awaits_frame_memory", "_backlog", "_backlog_bytes", "_begun_ns", "_client", "_counters"),
        *("_flush_pending", "_framer", "_handlers", "_idle_since_ms", "_large_frame_bytes", "_measures"),
        *("_mute_reasons", "_output", "_output_bytes", "_owner", "_paused", "_resuming", "_slot_bytes", "_slots"),
        *("_software", "_taken_bytes", "_throttled_until_ms", "_transport", "_uncounted", "_written_bytes"),
        *("active", "handshake", "id", "identify", "listener", "local", "peer", "principal", "sasl"),
        *("_is_draining", "stalled_since_ms", "unsent_bytes"),
    )

    def __init__(self, owner: Owner, listener: str = "") -> None:
        self._owner = owner
        self._framer = Framer(owner.frame_bytes_max)
        self._handlers: dict[int, BoundHandler] = {}
        self._client: bytes | None = None  # the client id as received: its length, then its bytes
        self._software = ClientSoftware()
        self._output: list[Piece] = []
        self._output_bytes = 0
        self._slots: deque[Slot] = deque()
        self._backlog: deque[bytes] | None = None  # an idle connection has none
        self._backlog_bytes = self._slot_bytes = 0
        self._large_frame_bytes = 0  # bytes received of an incomplete large frame
        self._mute_reasons = 0
        self._throttled_until_ms = 0  # while THROTTLED is a mute reason
        self.unsent_bytes = 0  # bytes of replies that the peer has not read, at the last measurement
        self.stalled_since_ms: int | None = None  # the first check since which the peer has read nothing
        self._written_bytes = self._taken_bytes = 0  # since the peer stopped reading: bytes written, bytes it has taken
        self._paused = self._resuming = self._awaits_frame_memory = self._is_draining = False
        self._begun_ns = 0  # the time at which the requests that are being served were read
        self._counters = UNUSED  # the counters of the API of the last replies
        self._uncounted = 0  # the number of those replies that are not counted yet
        self._measures = owner.measures_latency
        self._flush_pending = False  # a flush of the ready replies is scheduled for the end of this tick
        self._transport: asyncio.Transport | None = None
        self.peer = self.local = ("", 0)
        self.listener = listener
        self.principal = ANONYMOUS
        self.identify: Callable[[Any], Principal] | None = None  # from a TLS connection to its principal
        self.sasl: SaslSession | None = None
        self.id = 0
        self.handshake: Handshake | None = None  # of TLS; it counted as a new connection of its address
        self.active = True
        self._idle_since_ms: int | None = None

    # ---- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = made = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass
        self.peer = address(made.get_extra_info("peername"))
        self.local = address(made.get_extra_info("sockname"))
        made.set_write_buffer_limits(high=self._owner.write_buffer_bytes_max)
        if made.get_extra_info("ssl_object") is not None:
            cast("Any", made).set_read_buffer_limits(high=1, low=0)  # N17. uvloop drops at the end what it holds
        self._owner.connection_opened(self)
        if self.identify is not None:
            self._identify(self.identify, made.get_extra_info("ssl_object"))

    def _identify(self, identify: Callable[[Any], Principal], tls: Any) -> None:
        try:
            self.principal = identify(tls)
        except ValueError as why:
            self.end(str(why))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._is_draining = bool(self._backlog) and not self._mute_reasons & ~(DRAINS_AFTER | ENDS_WITH_PEER)
        if self._is_draining:
            self._abandon_replies()
            self._resume_soon()  # N17. Over TLS the end comes with the last requests, and cannot be left unread
        else:
            self._lost()

    def _lost(self) -> None:
        self._is_draining = False
        if self._mute_reasons & (THROTTLED | CLOSING):
            self._owner.node.timers.cancel((THROTTLED, self))
        self._mute_reasons |= CLOSING
        self._owner.connection_closed(self)
        self._backlog = None
        self._abandon_replies()
        self._owner.request_memory.release_frame(self._large_frame_bytes)
        self._owner.request_memory.release(self._backlog_bytes + self.unsent_bytes)
        self._backlog_bytes = self._large_frame_bytes = self.unsent_bytes = 0

    def _abandon_replies(self) -> None:
        """The peer is gone: the replies that wait are not sent. One that is given up holds back no request."""
        slots, self._slots = self._slots, deque()
        self._mute_reasons &= ~ENDS_WITH_PEER
        self._owner.request_memory.closed(self)
        size, self._slot_bytes = self._slot_bytes, 0
        self._owner.request_memory.release(size)
        for slot in slots:
            if slot.delayed_reply is not None and slot.delayed_reply.abandon():
                self._mute_reasons &= ~(AWAITS_REPLY if slot.delayed_reply.mutes else 0)
                slot.delayed_reply = None

    def data_received(self, data: bytes) -> None:
        self.active = True
        framer = self._framer
        frames = framer.feed(data)
        if self._mute_reasons or self._backlog:
            self._queue_frames(frames)
        elif frames:
            self._serve_frames(frames)
        if framer.large or self._large_frame_bytes:
            self._count_large_frame(framer.buffered if framer.large else 0)
        if framer.refused is not None and not self._backlog:
            self.end(framer.refused)

    def pause_writing(self) -> None:
        self._mute_reasons |= PEER_NOT_READING
        self._written_bytes = self._taken_bytes = 0
        self._owner.reader_stalled(self)
        self._set_reading()

    def resume_writing(self) -> None:
        self.active = True
        self._owner.reader_resumed(self)
        self._count_unsent(0)
        self._unmute(PEER_NOT_READING)

    # ---- requests

    def _serve_frames(self, frames: list[bytes]) -> None:
        """Serve frames until a limit or a mute reason, then queue the rest. Send their replies in one write."""
        done, self._flush_pending = 0, True
        if self._measures:
            self._begun_ns = now_ns()
        try:
            for frame in frames:
                if done == TURN_REQUESTS_MAX or not self._serve(frame):
                    break
                done += 1
                if self._mute_reasons:
                    break
        except (DecodeError, UnknownApi, CloseConnection) as why:
            self.end(str(why))
        except Exception as why:  # noqa: BLE001  # a bug in one API closes this connection only
            self._owner.internal_error(self, why)
            self.end("an internal error, logged above")
        self._flush_pending = False
        if self._slots and self._slots[0].pieces is not None:
            self._send_ready_replies()
        elif self._output:
            self._flush()
        if self._measures and self._uncounted:
            self._counters.add(self._uncounted, now_ns() - self._begun_ns)
            self._uncounted = 0
        if done < len(frames):
            self._queue_frames(frames[done:], first=True)
            self._resume_soon()

    def _serve(self, frame: bytes) -> bool:
        """Serve one request; return False if it has to wait for memory. This is the hot path: it makes few calls."""
        try:
            api, correlation_id, named = read_head(frame)
            at = 10 + named if named > 0 else 10
            if frame[8:at] != self._client:
                self._set_client_id(frame[8:at], named)
            handler, call = self._handlers.get(api) or self._bind(api)
            decode, encode, serve, flexible, tagged, bulky, _, _, _, counters, has_error = handler
            if flexible:
                at = skip_tags(frame, at) if frame[at] else at + 1
        except (IndexError, struct.error):
            raise DecodeError("a frame shorter than its header") from None
        if bulky and (self._is_draining or not self._has_reply_room()):
            return self._is_draining  # N17: nobody gets the reply to a Fetch, which has no other effect
        request, _ = decode(frame, at)
        reply = serve(self._owner.node, call, request)
        if reply.__class__ is DelayedReply and reply.answered and not self._slots:
            reply = reply.result()  # it is ready already
        if reply.__class__ is DelayedReply or self._slots:
            self.queue_reply(Slot(handler, correlation_id, len(frame), self._begun_ns, api), reply)
            return True
        if counters is not self._counters:
            self._count(counters)
        self._uncounted += 1
        if reply is None:
            return True
        if has_error and reply.error_code:
            counters.add_error(reply.error_code)
        if bulky:
            self._send(framed(handler, correlation_id, reply))
        else:
            body = encode(reply)
            size = len(body)
            lead = pack_lead_tagged(size + 5, correlation_id, 0) if tagged else pack_lead(size + 4, correlation_id)
            self._output.append(lead + body)
            self._output_bytes += size
            if self._output_bytes > WRITE_CHUNK_BYTES:
                self._flush()
        return True

    def _count(self, following: ApiCounters) -> None:
        """OB1. Count the requests of one API that had an immediate reply; `following` counts the next requests."""
        if self._measures and self._uncounted:
            self._counters.add(self._uncounted, now_ns() - self._begun_ns)
        self._uncounted, self._counters = 0, following

    def _has_reply_room(self) -> bool:
        """Return whether there is memory for a large reply; if not, serve nothing until `reply_admitted`."""
        if self._owner.request_memory.has_reply_room:
            return True
        self._mute_reasons |= AWAITS_MEMORY
        self._owner.request_memory.wait_for_reply_room(self)
        return False

    def _set_client_id(self, raw: bytes, named: int) -> None:
        """Store the client id, usually once per connection. Raises DecodeError."""
        if len(raw) != 2 + max(named, 0):
            raise DecodeError("a client id longer than its frame")
        self._client = raw
        self._handlers.clear()

    def _bind(self, api: int) -> BoundHandler:
        """Look up the handler of an API version at its first use on this connection. Raises UnknownApi."""
        handler = self._owner.handler_of(api)
        if self._owner.measured is not None:
            handler = self._owner.measured(handler)
        host, port = self._owner.address_for(self)
        call = Call(
            handler.version,
            self.client_id,
            f"/{self.peer[0]}",
            host,
            port,
            self.id,
            self.listener,
            self.peer[1],
            self._software,
            handler.counters,
            self.principal,
            self.sasl,
            sends_files(self._transport),
            self.mute_for,
        )
        if len(self._handlers) >= HANDLERS_MAX:
            self._handlers.clear()
        bound = self._handlers[api] = (handler, call)
        return bound

    # ---- replies

    def queue_reply(self, slot: Slot, reply: Any) -> None:
        """Send a reply, or the result of a DelayedReply when it is answered, after those of earlier requests."""
        slots, owner, size = self._slots, self._owner, slot.size
        slots.append(slot)
        self._slot_bytes += size
        owner.request_memory.hold(size)
        if reply.__class__ is DelayedReply:
            slot.delayed_reply = reply
            reply.then(partial(self._answered, slot))
            if reply.mutes and not reply.answered:
                self._mute_reasons |= AWAITS_REPLY
        else:
            self._answered(slot, reply)
        if len(slots) >= owner.requests_max or self._slot_bytes >= owner.connection_bytes_max:
            self._mute_reasons |= IN_FLIGHT_FULL
            self._set_reading()

    def _answered(self, slot: Slot, value: Any) -> None:
        """Fill the slot of a reply. Any code may call this, so no other request is served before the next tick."""
        delayed_reply, slot.delayed_reply = slot.delayed_reply, None
        if self._transport is None:
            if delayed_reply is not None and delayed_reply.mutes:
                self._serve_on()
            return
        try:
            size = slot.fill(value, waits=slot is not self._slots[0])
        except Exception as why:  # noqa: BLE001  # as in _serve_frames; the caller must not fail
            if isinstance(why, OSError) and why is not value:
                self._cut_off(self._transport, why)
            else:
                self._owner.internal_error(self, why)
                self.abort()
            return
        self._slot_bytes += size
        is_exceeded = self._owner.request_memory.hold(size)
        if slot is self._slots[0]:
            if is_exceeded:
                self._send_ready_replies()  # now: the replies of a whole tick would take too much memory
            elif not self._flush_pending:
                self._flush_pending = True  # the replies of one tick are sent in one write
                self._owner.tick_queue(self._send_ready_replies)
        if delayed_reply is not None and delayed_reply.mutes:
            self._serve_on()

    def _serve_on(self) -> None:
        self._mute_reasons &= ~AWAITS_REPLY  # one of READS_ON: reading goes on as before
        if self._backlog:
            self._resume_soon()

    def _send_ready_replies(self) -> None:
        """Send the ready replies at the head of the queue."""
        self._flush_pending, slots, sent_bytes = False, self._slots, 0
        ready: list[Slot] = []
        while slots and slots[0].pieces is not None:
            ready.append(slots.popleft())
            sent_bytes += ready[-1].size
        if ready:
            self._slot_bytes -= sent_bytes
            self._owner.request_memory.release(sent_bytes)  # _flush counts the bytes that the peer does not read
        for slot in ready:
            self._send(slot.pieces or [])
        self._flush()
        ended_ns = now_ns() if self._measures else 0
        for slot in ready if self._measures else ():
            slot.handler.counters.add(1, ended_ns - slot.begun_ns)
        if ready and self._mute_reasons & CLOSING and not slots:
            self._close()
        elif ready and self._mute_reasons & IN_FLIGHT_FULL and self._has_room():
            self._unmute(IN_FLIGHT_FULL)

    def _has_room(self) -> bool:
        """Return whether at most half of the bound is in use, so that the connection is not muted again at once."""
        few = len(self._slots) * 2 <= self._owner.requests_max
        return few and (not self._slots or self._slot_bytes * 2 <= self._owner.connection_bytes_max)

    def _send(self, pieces: list[Piece]) -> None:
        self._output += pieces
        self._output_bytes += len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))
        if self._output_bytes > WRITE_CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._output:
            return
        out, self._output = self._output, []
        size, self._output_bytes = self._output_bytes, 0
        if self._transport is None:
            return
        if size > WRITE_CHUNK_BYTES:
            self._write_pieces(self._transport, out)
        else:
            self._transport.write(b"".join(cast("list[bytes]", out)))
        if self._mute_reasons & PEER_NOT_READING:
            self._written_bytes += size
            self.measure_unsent()

    def _write_pieces(self, transport: asyncio.Transport, pieces: list[Piece]) -> None:
        """F18. Abort the connection where a reply cannot be sent whole."""
        from rota.coordinator.network.file_sending import write_pieces  # an idle broker does not need it

        try:
            write_pieces(transport, pieces)
        except OSError as why:
            self._cut_off(transport, why)

    def _cut_off(self, transport: asyncio.Transport, why: OSError) -> None:
        if not isinstance(why, (ConnectionError, TimeoutError)):  # those are the peer's end
            self._owner.protocol_error(self, f"its reply cannot be completed: {why}")
        self._mute_reasons |= CLOSING
        transport.abort()

    def measure_unsent(self) -> None:
        """Measure the bytes that the peer has not read, without those in the kernel's socket buffer."""
        if self._transport is not None and self._mute_reasons & PEER_NOT_READING:
            self._count_unsent(self._transport.get_write_buffer_size())

    def has_taken_more(self) -> bool:
        """Return whether the peer's host has acknowledged any byte since the last call.

        This counts the kernel's socket buffer, too. It may hold megabytes, so `unsent_bytes` alone shrinks late.
        """
        if self._transport is None:
            return False
        self.measure_unsent()
        before, self._taken_bytes = (
            self._taken_bytes,
            self._written_bytes - self.unsent_bytes - unacknowledged_bytes(self._transport.get_extra_info("socket")),
        )
        return self._taken_bytes > before

    def _count_unsent(self, size: int) -> None:
        grown, self.unsent_bytes = size - self.unsent_bytes, size
        if grown < 0:
            self._owner.request_memory.release(-grown)
        elif grown:
            self._owner.request_memory.hold(grown)
            self._owner.limit_unsent(self)

    def close_stalled(self, why: str) -> None:
        """Close at once and release the memory that is held for a peer that does not read."""
        if self._transport is not None:
            self._owner.protocol_error(self, why)
            self._mute_reasons |= CLOSING
            self._transport.abort()
            self._count_unsent(0)

    # ---- back-pressure

    def _queue_frames(self, frames: list[bytes], *, first: bool = False) -> None:
        if self._mute_reasons & CLOSING:
            return
        if self._mute_reasons & AWAITS_REPLY:
            self._expedite(frames)
        size = sum(map(len, frames))
        self._backlog = self._backlog or deque()
        if first:
            self._backlog.extendleft(reversed(frames))
        else:
            self._backlog.extend(frames)
        self._backlog_bytes += size
        self._owner.request_memory.hold(size)
        self._set_reading()

    def _expedite(self, frames: Iterable[bytes]) -> None:
        """F17. Tell the reply that mutes, which is the last one, if a FindCoordinator waits for it."""
        delayed_reply, searched = self._slots[-1].delayed_reply, islice(frames, SEARCHED_REQUESTS_MAX)
        if delayed_reply is not None and any(int.from_bytes(frame[:2]) == FIND_COORDINATOR for frame in searched):
            delayed_reply.expedite()

    def refuse(self, why: str) -> None:
        """Close a new connection at once; over TLS its peer could keep it open otherwise."""
        self._owner.protocol_error(self, why)
        self._mute_reasons |= CLOSING
        self.abort()

    def forget_handlers(self) -> None:
        """Look up the handlers of APIs again: they are measured from now on, or no more."""
        self._handlers.clear()

    def hold_and_close(self, ms: int, why: str) -> None:
        """Serve nothing, and close after `ms`."""
        self._owner.protocol_error(self, why)
        self._mute_reasons |= CLOSING
        self._set_reading()
        node = self._owner.node
        node.timers.at((THROTTLED, self), node.now_ms() + ms, self._close)

    def suspend(self) -> None:
        """Serve no request until `resume`."""
        self._mute_reasons |= SUSPENDED
        self._set_reading()

    def resume(self) -> None:
        """Serve the queued requests and read on."""
        self._unmute(SUSPENDED)

    def mute_for(self, ms: int) -> None:
        """Serve no request for `ms`, as the client has exceeded a quota (KIP-219); a longer mute goes on."""
        node = self._owner.node
        until_ms = node.now_ms() + ms
        if self._transport is None or (self._mute_reasons & THROTTLED and until_ms <= self._throttled_until_ms):
            return
        self._mute_reasons |= THROTTLED
        self._throttled_until_ms = until_ms
        node.timers.at((THROTTLED, self), until_ms, partial(self._unmute, THROTTLED))
        self._set_reading()

    def _unmute(self, reason: int) -> None:
        self._mute_reasons &= ~reason
        self._resume_soon()
        self._set_reading()

    def _resume_soon(self) -> None:
        if not self._mute_reasons and self._backlog and not self._resuming:
            self._resuming = True
            self._owner.tick_queue(self._resume)

    def _resume(self) -> None:
        """Serve queued frames. The tick queue calls this: an API may answer a DelayedReply while it changes state."""
        self._resuming, backlog = False, self._backlog
        if self._mute_reasons or not backlog:
            self._end_when_drained()
            return
        frames = [backlog.popleft() for _ in range(min(len(backlog), TURN_REQUESTS_MAX))]
        size = sum(map(len, frames))
        self._backlog_bytes -= size
        self._backlog = backlog or None
        self._serve_frames(frames)
        if self._is_draining:
            self._abandon_replies()
        elif self._mute_reasons & AWAITS_REPLY and self._backlog:
            self._expedite(self._backlog)
        self._owner.request_memory.release(size)
        self._owner.request_memory.admit_reply()  # admit the next waiting connection
        self._resume_soon()
        self._set_reading()
        if self._framer.refused is not None and not self._backlog:
            self.end(self._framer.refused)
        self._end_when_drained()

    def _end_when_drained(self) -> None:
        """N17. What the peer had sent before its end is served."""
        if self._is_draining and (self._mute_reasons & ~DRAINS_AFTER or not self._backlog):
            self._lost()

    def _count_large_frame(self, size: int) -> None:
        """Count the received bytes of a large frame; 0 when it is complete."""
        request_memory, before, self._large_frame_bytes = self._owner.request_memory, self._large_frame_bytes, size
        if size:
            request_memory.hold_frame(size - before)
            self._awaits_frame_memory = not request_memory.admit_frame(self)
            self._set_reading()
        else:
            request_memory.release_frame(before)
            request_memory.done(self)

    def admitted(self) -> None:
        """Read on: there is memory for the large frame."""
        self._awaits_frame_memory = False
        self._set_reading()

    def reply_admitted(self) -> None:
        """Serve on: there is memory for the reply to a Fetch."""
        self._unmute(AWAITS_MEMORY)

    def _set_reading(self) -> None:
        waits = self._mute_reasons & (AWAITS_REPLY | AWAITS_MEMORY)
        is_full = self._backlog_bytes > (READ_AHEAD_BYTES if waits else 0)  # N17
        stop = self._mute_reasons & ~READS_ON or self._awaits_frame_memory or is_full
        if self._transport is None or bool(stop) is self._paused or self._transport.is_closing():
            return
        self._paused = bool(stop)
        if stop:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # ---- closing

    def end(self, why: str) -> None:
        """Report `why`, send the replies of the requests in flight, then close."""
        if not self._mute_reasons & CLOSING:
            self._owner.protocol_error(self, why)
            self.finish()

    def finish(self) -> None:
        """Serve no more requests; close after the replies of the requests in flight."""
        self._mute_reasons |= CLOSING
        self._owner.request_memory.release(self._backlog_bytes)
        self._backlog, self._backlog_bytes = None, 0
        self._set_reading()
        if not self._slots or self._is_draining:
            self._close()

    def _close(self) -> None:
        self._flush()
        if self._transport is not None:
            self._transport.close()
        elif self._is_draining:
            self._owner.tick_queue(self._end_when_drained)

    @property
    def client_id(self) -> str:
        """The client id of the last request; empty before the first one."""
        return (self._client or b"")[2:].decode("utf-8", GARBLED)

    @property
    def is_closing(self) -> bool:
        """Whether it ends, which is reported one turn of the event loop later; no peer can prevent that any more."""
        if self._is_draining:
            return bool(self._mute_reasons & CLOSING)
        return self._transport is None or self._transport.is_closing()

    def abort(self) -> None:
        """Close at once; replies that the peer has not read are lost."""
        self._mute_reasons |= CLOSING
        if self._transport is not None:
            self._transport.abort()
        elif self._is_draining:
            self._owner.tick_queue(self._end_when_drained)

    def idle_since(self, now_ms: int) -> int:
        """Return the time of the first sweep since which nothing was received.

        A connection with a request in flight is idle only if its peer does not read.
        """
        if self._idle_since_ms is None or self.active or (self._slots and not self._mute_reasons & PEER_NOT_READING):
            self.active = False
            self._idle_since_ms = now_ms
        return self._idle_since_ms
