"""How many bytes of requests and replies are kept in memory at one time, over all connections. Pure.

Laws
    Only bytes that exist count: received frames, replies that wait for earlier ones, replies that a peer does not read.
    Unfinished large frames have half of the memory, and no more than is left of it. Above that one of them at a time is
    read on; the others wait, small frames never do.
    While all else holds more than the other half, Fetches wait, whose replies are large; other requests never do. So a
    peer that sends no more of its frame keeps nobody from reading.
    Waiters are admitted in their order.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Waiter(Protocol):
    """A connection that waits for memory."""

    def admitted(self) -> None:
        """Read on: the large frame may be received."""

    def reply_admitted(self) -> None:
        """Serve on: a Fetch may be answered."""


class RequestMemoryPool:
    """Bytes that are held, out of `bytes_max`."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self.frame_bytes = 0  # of them, those of unfinished large frames
        self._receiver: Waiter | None = None  # reads on above the limit, so that one frame is finished
        self._receivers: deque[Waiter] = deque()
        self._repliers: deque[Waiter] = deque()

    @property
    def has_reply_room(self) -> bool:
        """Whether a large reply may be made."""
        return (self.held_bytes - self.frame_bytes) * 2 <= self.bytes_max

    @property
    def is_exceeded(self) -> bool:
        """Whether more is held than the limit."""
        return self.held_bytes > self.bytes_max

    @property
    def _has_frame_room(self) -> bool:
        return self.held_bytes <= self.bytes_max and self.frame_bytes * 2 <= self.bytes_max

    @property
    def has_waiting_replies(self) -> bool:
        return bool(self._repliers)

    def goes_on(self, waiter: Waiter) -> bool:
        """May `who` read more of its large frame? False means wait for `who.admitted()`. Call `done` in the end."""
        if self._has_frame_room or self._receiver is waiter:
            return True
        if self._receiver is None:
            self._receiver = waiter
            return True
        self._receivers.append(waiter)
        return False

    def wait_for_reply_room(self, waiter: Waiter) -> None:
        """Call `who.reply_admitted()` when it is its turn and there is room; it looks again then."""
        self._repliers.append(waiter)

    def admit_reply(self) -> None:
        """Admit the next waiter, if there is room. Each of them calls this when it has served its Fetch."""
        if self._repliers and self.has_reply_room:
            self._repliers.popleft().reply_admitted()

    def hold(self, size: int) -> None:
        """Count bytes that are kept from now on."""
        self.held_bytes += size

    def hold_frame(self, size: int) -> None:
        """Count bytes that were received of an unfinished large frame."""
        self.frame_bytes += size
        self.hold(size)

    def release_frame(self, size: int) -> None:
        """Count bytes of a large frame that is finished, or whose peer is gone."""
        self.frame_bytes -= size
        self.release(size)

    def release(self, size: int) -> None:
        """Count bytes that are kept no longer, and admit who waits for room."""
        self.held_bytes -= size
        assert self.held_bytes >= 0, "more room was given back than taken"
        while self._receivers and self._has_frame_room:
            self._receivers.popleft().admitted()
        if self._repliers:
            self.admit_reply()

    def done(self, waiter: Waiter) -> None:
        """The large frame of `who` is whole, or `who` is closed."""
        if waiter in self._receivers:
            self._receivers.remove(waiter)
        if self._receiver is waiter:
            self._receiver = self._receivers.popleft() if self._receivers else None
            if self._receiver is not None:
                self._receiver.admitted()

    def closed(self, waiter: Waiter) -> None:
        """`who` waits for nothing any more."""
        self.done(waiter)
        if waiter in self._repliers:
            self._repliers.remove(waiter)
