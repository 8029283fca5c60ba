"""Limit the bytes of requests and replies that all connections together hold in memory. Pure.

Laws
    Only bytes that exist count: received frames, replies that wait for earlier ones, replies that a peer does not read.
    Incomplete large frames may use half of the memory, and never more than is free. Above that only one of them at a
    time is read on and the others wait. Small frames never wait.
    While the rest (all but incomplete large frames) holds more than half of the memory, Fetches wait, because their
    replies are large. Other requests never wait. So a peer that does not complete its frame cannot block consumers.
    Waiting connections are admitted in the order in which they began to wait.
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
    """Counts the held bytes and admits waiting connections while `held_bytes` is within `bytes_max`."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self.frame_bytes = 0  # the part of `held_bytes` that incomplete large frames hold
        self._receiver: Waiter | None = None  # the one that reads on above the limit, so that one frame completes
        self._receivers: deque[Waiter] = deque()
        self._repliers: deque[Waiter] = deque()

    @property
    def has_reply_room(self) -> bool:
        """Whether there is memory for a large reply."""
        return (self.held_bytes - self.frame_bytes) * 2 <= self.bytes_max

    @property
    def is_exceeded(self) -> bool:
        """Whether more bytes are held than the limit allows."""
        return self.held_bytes > self.bytes_max

    @property
    def _has_frame_room(self) -> bool:
        return self.held_bytes <= self.bytes_max and self.frame_bytes * 2 <= self.bytes_max

    @property
    def has_waiting_replies(self) -> bool:
        return bool(self._repliers)

    def admit_frame(self, waiter: Waiter) -> bool:
        """Return whether `waiter` may read more of its large frame; if not, `waiter.admitted()` is called later.

        Call `done` when the frame is complete.
        """
        if self._has_frame_room or self._receiver is waiter:
            return True
        if self._receiver is None:
            self._receiver = waiter
            return True
        self._receivers.append(waiter)
        return False

    def wait_for_reply_room(self, waiter: Waiter) -> None:
        """Call `waiter.reply_admitted()` when there is memory and all earlier waiters were admitted."""
        self._repliers.append(waiter)

    def admit_reply(self) -> None:
        """Admit the next waiter if there is memory. Each waiter calls this after it has served its Fetch."""
        if self._repliers and self.has_reply_room:
            self._repliers.popleft().reply_admitted()

    def hold(self, size: int) -> bool:
        """Count bytes that are held from now on; return whether more are held than the limit allows."""
        self.held_bytes += size
        return self.held_bytes > self.bytes_max

    def hold_frame(self, size: int) -> None:
        """Count bytes that were received of an incomplete large frame."""
        self.frame_bytes += size
        self.hold(size)

    def release_frame(self, size: int) -> None:
        """Release the bytes of a large frame that is complete or whose connection is closed."""
        self.frame_bytes -= size
        self.release(size)

    def release(self, size: int) -> None:
        """Release bytes that are no longer held, and admit waiters that now have memory."""
        self.held_bytes -= size
        assert self.held_bytes >= 0, "more room was given back than taken"
        while self._receivers and self._has_frame_room:
            self._receivers.popleft().admitted()
        if self._repliers:
            self.admit_reply()

    def done(self, waiter: Waiter) -> None:
        """The large frame of `waiter` is complete, or `waiter` is closed."""
        if waiter in self._receivers:
            self._receivers.remove(waiter)
        if self._receiver is waiter:
            self._receiver = self._receivers.popleft() if self._receivers else None
            if self._receiver is not None:
                self._receiver.admitted()

    def closed(self, waiter: Waiter) -> None:
        """Remove `waiter` from all queues."""
        self.done(waiter)
        if waiter in self._repliers:
            self._repliers.remove(waiter)
