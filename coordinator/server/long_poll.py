"""A fetch that waits for records: told by its partitions, ended by its deadline, answered once.

Laws
    G4  It is answered exactly once: when enough bytes are there, when a partition fails, or at its deadline.
    W1  While it waits it reads nothing: an append only adds the bytes by which the log grew.
    W2  Once answered or abandoned it leaves nothing behind: no watch, no timer.
    W3  The answer is made in a turn of its own, so that appends of one turn share it, and a producer never pays for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from rota.coordinator.server.parked import Parked

if TYPE_CHECKING:
    from rota.coordinator.cluster.partition import Partition, Waiter
    from rota.coordinator.server.timers import Timers

T = TypeVar("T")
_TIMER: Final = "fetch"


class _Watched:
    """One partition of a waiting fetch. `bytes_ready` counts what it could give now, at most `bytes_max`."""

    __slots__ = ("bytes_max", "bytes_ready", "log_bytes", "partition", "poll", "waiter")

    def __init__(self, poll: LongPoll[T], partition: Partition, bytes_ready: int, bytes_max: int) -> None:
        self.poll, self.partition = poll, partition
        self.bytes_ready, self.bytes_max = bytes_ready, max(bytes_max, 1)
        self.log_bytes = partition.log.size_bytes
        self.waiter: Waiter = partition.watch(self.woken)

    def woken(self) -> None:
        if self.poll.bytes_missing <= 1 or self.partition.offline is not None:
            self.poll.settle()
            return
        log_bytes = self.partition.log.size_bytes
        grown = log_bytes - self.log_bytes
        self.log_bytes = log_bytes
        # Retention between two appends makes the log shrink: count at least something, the deadline does the rest.
        ready = min(self.bytes_ready + max(grown, 1), self.bytes_max)
        gained, self.bytes_ready = ready - self.bytes_ready, ready
        self.poll.gained(gained)


class LongPoll(Generic[T]):
    """`watches` are (partition, bytes ready now, bytes it may give at most); `answer` makes the reply, once."""

    __slots__ = ("_answer", "_due", "_timers", "_watched", "bytes_missing", "parked")

    def __init__(
        self,
        timers: Timers,
        deadline_ms: int,
        bytes_missing: int,
        watches: Iterable[tuple[Partition, int, int]],
        answer: Callable[[], T],
    ) -> None:
        self.parked: Parked[T] = Parked(mutes=True)
        self._timers, self.bytes_missing, self._answer = timers, bytes_missing, answer
        self._due = False
        self._watched: list[_Watched] | None = [_Watched(self, *watch) for watch in watches]
        self.parked.on_abandon(self._leave)
        timers.at((_TIMER, id(self)), deadline_ms, self._finish)

    def gained(self, some_bytes: int) -> None:
        self.bytes_missing -= some_bytes
        if self.bytes_missing <= 0:
            self.settle()

    def settle(self) -> None:
        """Answer in the next turn, with whatever there is by then."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._finish)

    def _finish(self) -> None:
        if self._watched is not None:
            self._leave()
            self.parked.answer(self._answer())

    def _leave(self) -> None:
        watched, self._watched = self._watched, None
        self._timers.cancel((_TIMER, id(self)))
        for one in watched or ():
            one.partition.unwatch(one.waiter)
