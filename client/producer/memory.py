"""Callers that wait for memory of `buffer_memory`, served in order.

Laws
    A waiting record is taken when there is memory for it and all earlier ones are taken: as a whole, in the same tick
    of the loop in which memory was freed.
    A caller that is cancelled or times out leaves nothing behind, and its record is not taken.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from rota.client.producer.delivery import Delivery


class Waiting(NamedTuple):
    """A record that waits for memory."""

    size_bytes: int
    take: Callable[[], Delivery]
    taken: asyncio.Future[Delivery]


class Memory:
    """`fits(size_bytes)` returns whether there is memory. `changed()` is called after `waits` has changed."""

    def __init__(self, fits: Callable[[int], bool], changed: Callable[[], None]) -> None:
        self._fits, self._changed = fits, changed
        self._queue: deque[Waiting] = deque()
        self.waits = False

    async def enter(self, size_bytes: int, take: Callable[[], Delivery], seconds: float) -> Delivery:
        """Wait for memory and all earlier callers; return `take()`. Raises TimeoutError, and what `take` raises."""
        waiting = Waiting(size_bytes, take, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._update_waits()
        self.freed()
        try:
            async with asyncio.timeout(seconds):
                return await waiting.taken
        except TimeoutError:
            if waiting.taken.done() and not waiting.taken.cancelled():  # served in the same tick as the timeout
                return waiting.taken.result()
            raise
        finally:
            if not waiting.taken.done() or waiting.taken.cancelled():
                self._leave(waiting)

    def freed(self) -> None:
        """Serve waiting callers: memory was freed."""
        while self._queue and self._fits(self._queue[0].size_bytes):
            waiting = self._queue.popleft()
            if waiting.taken.done():
                continue
            try:
                waiting.taken.set_result(waiting.take())
            except Exception as why:  # noqa: BLE001 of the caller's partitioner: raised to that caller
                waiting.taken.set_exception(why)
        self._update_waits()

    def end(self, why: Exception) -> None:
        """Fail all waiting callers with `why`."""
        queue, self._queue = self._queue, deque()
        self._update_waits()
        for waiting in queue:
            if not waiting.taken.done():
                waiting.taken.set_exception(why)

    def _leave(self, waiting: Waiting) -> None:
        if waiting in self._queue:
            self._queue.remove(waiting)
        self.freed()

    def _update_waits(self) -> None:
        waits = bool(self._queue)
        if waits is not self.waits:
            self.waits = waits
            self._changed()
