"""One peer: frames in, replies out, in the order of the requests.

Laws
    G4  Every request is answered exactly once, or the connection ends; what it waited for is told when the peer goes.
    Replies leave in the order of the requests, whenever they become known.
    A peer's mistake, and our own in one API, ends this connection with a logged reason and nothing else.
    What a peer makes us keep is bounded: requests under way, requests that wait their turn, replies that it does not
    read. Beyond a bound we serve nothing more and, a little later, read nothing more.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from rota.coordinator.api.node import Call, HangUp
from rota.coordinator.network.dispatch import VERSIONS_KNOWN_MAX, ApiHandler, UnknownApi, read_head, skip_tags
from rota.coordinator.network.frames import Framer
from rota.coordinator.network.replies import Piece, Slot, framed, pack_lead, pack_lead_tagged
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.constructs import GARBLED
from rota.protocol.wire import DecodeError

if TYPE_CHECKING:
    from rota.coordinator.network.connections import Connections

WRITE_CHUNK_BYTES = 64 * 1024  # replies go to the socket at least this often
TURN_REQUESTS_MAX = 256  # of one peer before the others have their turn
READ_AHEAD_BYTES = 64 * 1024  # what we read while we may not serve, so that a peer that leaves is noticed

MUTED, CHOKED, FULL, ENDING = 1, 2, 4, 8  # reasons to serve nothing more

Bound = tuple[ApiHandler, Call]  # a version of an API as one client uses it


class Connection(asyncio.Protocol):
    """One peer. `active` is set by every byte that comes; whoever looks for idle peers takes it away."""

    def __init__(self, owner: Connections, listener: str = "") -> None:
        self._owner = owner
        self._framer = Framer(owner.frame_bytes_max)
        self._bound: dict[int, Bound] = {}
        self._client: bytes | None = None  # the client id as it came, behind its length
        self._out: list[Piece] = []
        self._out_bytes = 0
        self._slots: deque[Slot] = deque()
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = self._slot_bytes = 0
        self._room_bytes = 0  # that are here of an unfinished large frame
        self._brakes = 0
        self._paused = self._resuming = self._waits = False
        self._leaving = False  # somebody will send what is answered, at the end of this turn at the latest
        self._transport: asyncio.Transport | None = None
        self.peer = self.local = ("", 0)
        self.listener = listener
        self.id = 0
        self.active = True
        self._idle_since_ms: int | None = None

    # ---- what the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = made = cast("asyncio.Transport", transport)  # uvloop's only looks like one
        self.peer = address(made.get_extra_info("peername"))
        self.local = address(made.get_extra_info("sockname"))
        made.set_write_buffer_limits(high=self._owner.write_buffer_bytes_max)
        self._owner.came(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._brakes |= ENDING
        self._owner.went(self)
        slots, self._slots = self._slots, deque()
        self._backlog.clear()
        self._owner.request_memory.release(self._slot_bytes + self._backlog_bytes + self._room_bytes)
        self._owner.request_memory.done(self)
        self._slot_bytes = self._backlog_bytes = self._room_bytes = 0
        for slot in slots:
            if slot.delayed_reply is not None:
                slot.delayed_reply.abandon()

    def data_received(self, data: bytes) -> None:
        self.active = True
        framer = self._framer
        frames = framer.feed(data)
        if self._brakes or self._backlog:
            self._put_off(frames)
        elif frames:
            self._work(frames)
        if framer.large or self._room_bytes:
            self._gather(framer.buffered if framer.large else 0)
        if framer.refused is not None and not self._backlog:
            self.end(framer.refused)

    def pause_writing(self) -> None:
        self._brakes |= CHOKED
        self._set_reading()

    def resume_writing(self) -> None:
        self.active = True
        self._release(CHOKED)

    # ---- requests

    def _work(self, frames: list[bytes]) -> None:
        """Serve the frames as far as we may; the rest waits its turn. Replies of one call leave in one write."""
        done, self._leaving = 0, True
        try:
            for frame in frames:
                if done == TURN_REQUESTS_MAX:
                    break
                done += 1
                self._serve(frame)
                if self._brakes:
                    break
        except (DecodeError, UnknownApi, HangUp) as why:
            self.end(str(why))
        except Exception as why:  # noqa: BLE001  # our own mistake in one API: this connection ends, the broker goes on
            self._owner.broken(self, why)
            self.end("our own mistake, logged above")
        self._leaving = False
        if self._out or (self._slots and self._slots[0].pieces is not None):
            self._leave()
        if done < len(frames):
            self._put_off(frames[done:], first=True)
            self._resume_soon()

    def _serve(self, frame: bytes) -> None:
        """The hot path: no call of ours beyond decode, serve and encode."""
        try:
            api, correlation_id, named = read_head(frame)
            at = 10 + named if named > 0 else 10
            if frame[8:at] != self._client:
                self._rename(frame[8:at], named)
            known, call = self._bound.get(api) or self._bind(api)
            decode, encode, serve, flexible, tagged, bulky, _, _, _ = known
            if flexible:
                at = skip_tags(frame, at) if frame[at] else at + 1
        except (IndexError, struct.error):
            raise DecodeError("a frame shorter than its header") from None
        request, _ = decode(frame, at)
        reply = serve(self._owner.node, call, request)
        if reply.__class__ is DelayedReply and reply.answered and not self._slots:
            reply = reply.told()  # it did not have to wait
        if isinstance(reply, DelayedReply) or self._slots:
            self._queue(Slot(known, correlation_id, len(frame)), reply)
        elif reply is None:
            pass
        elif bulky:
            pieces = framed(known, correlation_id, reply)
            self._send(pieces, sum(map(len, pieces)))
        else:
            body = encode(reply)
            size = len(body)
            self._out.append(
                (pack_lead_tagged(size + 5, correlation_id, 0) if tagged else pack_lead(size + 4, correlation_id))
                + body
            )
            self._out_bytes += size
            if self._out_bytes > WRITE_CHUNK_BYTES:
                self._flush()

    def _rename(self, raw: bytes, named: int) -> None:
        """Another client id than last time, which happens once. Raises DecodeError."""
        if len(raw) != 2 + max(named, 0):
            raise DecodeError("a client id longer than its frame")
        self._client = raw
        self._bound.clear()

    def _bind(self, api: int) -> Bound:
        """A version that this client asks for the first time. Raises UnknownApi."""
        known = self._owner.known(api)
        host, port = self._owner.told_address(self)
        client_id = (self._client or b"")[2:].decode("utf-8", GARBLED)
        call = Call(known.version, client_id, f"/{self.peer[0]}", host, port, self.id)
        if len(self._bound) >= VERSIONS_KNOWN_MAX:
            self._bound.clear()
        bound = self._bound[api] = (known, call)
        return bound

    # ---- replies

    def _queue(self, slot: Slot, reply: Any) -> None:
        self._slots.append(slot)
        self._slot_bytes += slot.size
        self._owner.request_memory.hold(slot.size)
        if isinstance(reply, DelayedReply):
            slot.delayed_reply = reply
            reply.then(partial(self._answered, slot))
            if reply.mutes and slot.pieces is None:
                self._brakes |= MUTED
        else:
            self._answered(slot, reply)
        if len(self._slots) >= self._owner.requests_max or self._slot_bytes >= self._owner.connection_bytes_max:
            self._brakes |= FULL
            self._set_reading()

    def _answered(self, slot: Slot, value: Any) -> None:
        """A reply is known. Called from anywhere, at any time: it serves no other request before the next turn."""
        if self._transport is None:
            return
        delayed_reply, slot.delayed_reply = slot.delayed_reply, None
        try:
            size = slot.fill(value)
        except Exception as why:  # noqa: BLE001  # as in _work; whoever answers must not be harmed
            self._owner.broken(self, why)
            self._transport.abort()
            return
        self._slot_bytes += size
        self._owner.request_memory.hold(size)
        if not self._leaving and slot is self._slots[0]:
            self._leaving = True  # replies that become known in one turn leave in one write
            self._owner.tick_queue(self._leave)
        if delayed_reply is not None and delayed_reply.mutes:
            self._release(MUTED)

    def _leave(self) -> None:
        """Send the replies that nothing is before any more."""
        self._leaving = False
        slots, gone_bytes = self._slots, 0
        while slots and (pieces := slots[0].pieces) is not None:
            slot = slots.popleft()
            gone_bytes += slot.size
            self._send(pieces, slot.reply_bytes)
        self._flush()
        if not gone_bytes:
            return
        self._slot_bytes -= gone_bytes
        self._owner.request_memory.release(gone_bytes)
        if self._brakes & ENDING and not slots:
            self._close()
        elif self._brakes & FULL and self._has_room():
            self._release(FULL)

    def _has_room(self) -> bool:
        """Half of what may be under way: a bound that is met again at once would cost two calls a request."""
        few = len(self._slots) * 2 <= self._owner.requests_max
        return few and (not self._slots or self._slot_bytes * 2 <= self._owner.connection_bytes_max)

    def _send(self, pieces: list[Piece], size: int) -> None:
        self._out += pieces
        self._out_bytes += size
        if self._out_bytes > WRITE_CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._out:
            return
        out, self._out = self._out, []
        size, self._out_bytes = self._out_bytes, 0
        if self._transport is None:
            return
        if size > WRITE_CHUNK_BYTES:
            self._transport.writelines(out)
        else:
            self._transport.write(b"".join(out))

    # ---- back-pressure

    def _put_off(self, frames: list[bytes], *, first: bool = False) -> None:
        if self._brakes & ENDING:
            return
        size = sum(map(len, frames))
        if first:
            self._backlog.extendleft(reversed(frames))
        else:
            self._backlog.extend(frames)
        self._backlog_bytes += size
        self._owner.request_memory.hold(size)
        self._set_reading()

    def _release(self, brake: int) -> None:
        self._brakes &= ~brake
        self._resume_soon()
        self._set_reading()

    def _resume_soon(self) -> None:
        if not self._brakes and self._backlog and not self._resuming:
            self._resuming = True
            self._owner.tick_queue(self._resume)

    def _resume(self) -> None:
        """Go on with what waited its turn; never from within a reply, which may come out of the middle of a step."""
        self._resuming = False
        if self._brakes:
            return
        frames = [self._backlog.popleft() for _ in range(min(len(self._backlog), TURN_REQUESTS_MAX))]
        size = sum(map(len, frames))
        self._backlog_bytes -= size
        self._work(frames)
        self._owner.request_memory.release(size)
        self._resume_soon()
        self._set_reading()
        if self._framer.refused is not None and not self._backlog:
            self.end(self._framer.refused)

    def _gather(self, size: int) -> None:
        """So much of a large frame is here; 0 when it is whole."""
        request_memory, before, self._room_bytes = self._owner.request_memory, self._room_bytes, size
        if size:
            request_memory.hold(size - before)
            self._waits = not request_memory.goes_on(self)
            self._set_reading()
        else:
            request_memory.release(before)
            request_memory.done(self)

    def admitted(self) -> None:
        """There is room for the large frame."""
        self._waits = False
        self._set_reading()

    def _set_reading(self) -> None:
        stop = self._brakes & ~MUTED or self._waits or self._backlog_bytes > READ_AHEAD_BYTES
        if self._transport is None or bool(stop) is self._paused or self._transport.is_closing():
            return
        self._paused = bool(stop)
        if stop:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # ---- the end

    def end(self, why: str) -> None:
        """The peer's mistake or ours: what is under way is answered, then the connection is closed."""
        if not self._brakes & ENDING:
            self._owner.ended(self, why)
            self.finish()

    def finish(self) -> None:
        """Serve nothing more; close once everything under way is answered."""
        self._brakes |= ENDING
        self._owner.request_memory.release(self._backlog_bytes)
        self._backlog.clear()
        self._backlog_bytes = 0
        self._set_reading()
        if not self._slots:
            self._close()

    def _close(self) -> None:
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once; what is unread by the peer is lost."""
        if self._transport is not None:
            self._transport.abort()

    def idle_since(self, now_ms: int) -> int:
        """Since when nothing moves here. A request under way is no idleness, unless the peer does not read."""
        if self._idle_since_ms is None or self.active or (self._slots and not self._brakes & CHOKED):
            self.active = False
            self._idle_since_ms = now_ms
        return self._idle_since_ms


def address(name: Any) -> tuple[str, int]:
    """(host, port) of a socket; an IPv4 address inside an IPv6 one is shown as what it is."""
    if not isinstance(name, tuple) or len(name) < 2:
        return "", 0
    return str(name[0]).removeprefix("::ffff:"), int(name[1])
