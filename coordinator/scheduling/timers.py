"""Timers by key: one heap and one timer of the event loop for the whole broker.

Laws
    A key has one time; setting it again moves it. Moving a timer later touches no heap.
    A timer that is due when it is set fires at the end of the loop's turn, as `soon` calls.
    A call happens once, never before its time, in the order of times; a call that fails harms no other.
    After the loop was blocked, received requests are served before timers fire, because they may move the timers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

STALE_ENTRIES_MIN = 64  # below this, cancelled entries are not worth a clean-up
STANDSTILL_MS = 2_000  # a wake-up that is later than this means that something blocked the loop
READING_MS = 100  # for what peers sent meanwhile
SLEEP_MS_MAX = 3_600_000  # a timer further away is looked at again: some loops refuse longer waits

Then = Callable[[], None]


class _Armed:
    __slots__ = ("at_ms", "call", "queued_ms")

    def __init__(self, at_ms: int, call: Then) -> None:
        self.at_ms, self.queued_ms, self.call = at_ms, at_ms, call


class TimerHeap:
    """The pure half: which timers are due when."""

    def __init__(self) -> None:
        self._armed: dict[Hashable, _Armed] = {}
        self._heap: list[tuple[int, int, Hashable, _Armed]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._armed)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._armed

    def at(self, key: Hashable, at_ms: int, call: Then) -> None:
        """Set or move the timer of `key`."""
        armed = self._armed.get(key)
        if armed is None:
            armed = self._armed[key] = _Armed(at_ms, call)
            self._push(key, armed)
            return
        armed.at_ms, armed.call = at_ms, call
        if at_ms < armed.queued_ms:
            armed.queued_ms = at_ms
            self._push(key, armed)

    def cancel(self, key: Hashable) -> None:
        """Forget the timer of `key`, if there is one."""
        if self._armed.pop(key, None) is not None and len(self._heap) > 2 * len(self._armed) + STALE_ENTRIES_MIN:
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapify(self._heap)

    def postpone(self, key: Hashable, by_ms: int) -> None:
        """Move the timer of `key` later, if it is set."""
        armed = self._armed.get(key)
        if armed is not None:
            armed.at_ms += by_ms

    def next_ms(self) -> int | None:
        """When to look again; perhaps sooner than anything is due, never later. None when nothing is set."""
        while self._heap and not self._is_current(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[Then]:
        """Yield the calls that are due, the earliest first; each is forgotten when it is yielded."""
        ripe = []
        while self._heap and self._heap[0][0] <= now_ms:
            entry = heappop(self._heap)
            _, _, key, armed = entry
            if self._is_current(entry) and armed.at_ms > armed.queued_ms:  # moved later since
                armed.queued_ms = armed.at_ms
                self._push(key, armed)
            else:
                ripe.append(entry)
        for entry in ripe:  # first all, then one by one: what a call sets for now waits its turn
            _, _, key, armed = entry
            if not self._is_current(entry):
                continue
            if armed.at_ms > now_ms:  # moved later by one of these calls
                armed.queued_ms = armed.at_ms
                self._push(key, armed)
                continue
            del self._armed[key]
            yield armed.call

    def _push(self, key: Hashable, armed: _Armed) -> None:
        self._count += 1
        heappush(self._heap, (armed.queued_ms, self._count, key, armed))

    def _is_current(self, entry: tuple[int, int, Hashable, _Armed]) -> bool:
        queued_ms, _, key, armed = entry
        return armed.queued_ms == queued_ms and self._armed.get(key) is armed


class Handle(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """The parts of an event loop that timers use."""

    def call_later(self, delay: float, callback: Then) -> Handle: ...

    def call_soon(self, callback: Then) -> Handle: ...

    def call_exception_handler(self, context: dict[str, object]) -> None: ...


class Timers:
    """The shell: sleeps until the first timer is due. `now_ms` is elapsed time, which never steps.

    `soon` calls what it is given when the requests of this turn were read; None: the loop's `call_soon`.
    """

    def __init__(self, now_ms: Callable[[], int], loop: Loop | None = None) -> None:
        self._now_ms, self._loop = now_ms, loop
        self.soon: Callable[[Then], object] | None = None
        self._heap = TimerHeap()
        self._handle: Handle | None = None
        self._wakes_ms: int | None = None
        self._stopped = self._is_reading = self._is_queued = False

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, key: Hashable, at_ms: int, call: Then) -> None:
        """Call `call` at `at_ms`; a key that is set already is moved."""
        if self._stopped:
            return
        self._heap.at(key, at_ms, call)
        if self._wakes_ms is None or at_ms < self._wakes_ms:
            self._sleep()

    def cancel(self, key: Hashable) -> None:
        """Forget `key`, if it is set."""
        self._heap.cancel(key)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._heap

    def postpone(self, key: Hashable, by_ms: int) -> None:
        """Move the timer of `key` later, if it is set."""
        self._heap.postpone(key, by_ms)

    def stop(self) -> None:
        """Cancel all timers, and ignore those that are set from now on."""
        self._stopped = True
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._wakes_ms = None
        self._heap = TimerHeap()

    def fire(self) -> None:
        """Call the due timers and sleep again."""
        self._handle = None
        for call in self._heap.due(self._now_ms()):
            try:
                call()
            except Exception as why:  # noqa: BLE001  # one timer that fails must not stop the others
                self._running_loop().call_exception_handler({"message": "a timer failed", "exception": why})
        self._sleep()

    def _woken(self) -> None:
        late_ms = 0 if self._wakes_ms is None else self._now_ms() - self._wakes_ms
        self._is_reading = late_ms > STANDSTILL_MS and not self._is_reading
        if self._is_reading:
            self._handle = self._running_loop().call_later(READING_MS / 1000, self._woken)
        else:
            self.fire()

    def _sleep(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._wakes_ms = self._heap.next_ms()
        if self._wakes_ms is None:
            return
        delay_ms = min(max(self._wakes_ms - self._now_ms(), 0), SLEEP_MS_MAX)
        if delay_ms:
            self._handle = self._running_loop().call_later(delay_ms / 1000, self._woken)
        elif not self._is_queued:  # what is queued cannot be cancelled: it finds nothing due then
            self._is_queued = True
            (self.soon or self._running_loop().call_soon)(self._queued)

    def _queued(self) -> None:
        self._is_queued = False
        if self._handle is None:  # else `fire` was called meanwhile
            self._woken()

    def _running_loop(self) -> Loop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop
