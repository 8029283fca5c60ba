"""Callers that wait for room in `buffer_memory`, served in the order in which they came.

Laws
    A record that waits is taken when there is room for it and all that waited before it are taken: as a whole, in the
    turn of the loop in which room came.
    Who gives up, or is late, leaves nothing behind and nothing is taken of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from rota.client.producer.delivery import Delivery


class Waiting(NamedTuple):
    """A record that waits for room."""

    size_bytes: int
    take: Callable[[], Delivery]
    taken: asyncio.Future[Delivery]


class Memory:
    """`fits(size_bytes)` tells whether there is room. `waits`: somebody waits; `changed()` after that changed."""

    def __init__(self, fits: Callable[[int], bool], changed: Callable[[], None]) -> None:
        self._fits, self._changed = fits, changed
        self._queue: deque[Waiting] = deque()
        self.waits = False

    async def enter(self, size_bytes: int, take: Callable[[], Delivery], seconds: float) -> Delivery:
        """What `take` gives, when its turn has come. Raises TimeoutError, and what `take` raises."""
        one = Waiting(size_bytes, take, asyncio.get_running_loop().create_future())
        self._queue.append(one)
        self._update_waits()
        self.freed()
        try:
            async with asyncio.timeout(seconds):
                return await one.taken
        except TimeoutError:
            if one.taken.done() and not one.taken.cancelled():  # its turn came in the very turn in which time was over
                return one.taken.result()
            raise
        finally:
            if not one.taken.done() or one.taken.cancelled():
                self._leave(one)

    def freed(self) -> None:
        """There may be room."""
        while self._queue and self._fits(self._queue[0].size_bytes):
            one = self._queue.popleft()
            if one.taken.done():
                continue
            try:
                one.taken.set_result(one.take())
            except Exception as why:  # noqa: BLE001 of the caller's partitioner: told to who sent that record
                one.taken.set_exception(why)
        self._update_waits()

    def end(self, why: Exception) -> None:
        """Nobody is taken any more."""
        queue, self._queue = self._queue, deque()
        self._update_waits()
        for one in queue:
            if not one.taken.done():
                one.taken.set_exception(why)

    def _leave(self, one: Waiting) -> None:
        if one in self._queue:
            self._queue.remove(one)
        self.freed()

    def _update_waits(self) -> None:
        waits = bool(self._queue)
        if waits is not self.waits:
            self.waits = waits
            self._changed()
