"""A fetch that waits for records: told by its partitions, ended by its deadline, answered once.

Laws
    G4  It is answered exactly once: when enough bytes are there, when a partition fails, or at its deadline.
    F5  While it waits it reads nothing: an append only adds the bytes by which the log grew.
    F6  Once answered or abandoned it leaves nothing behind: no watch, no timer.
    F7  The answer is made in a turn of its own, so that appends of one turn share it, and a producer never pays for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from rota.coordinator.scheduling.delayed_reply import DelayedReply, shaped_or_mistake

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition, Watch
    from rota.coordinator.scheduling.timers import Timers

T = TypeVar("T")
_TIMER: Final = "fetch"


class _Watched:
    """Counts what one partition of a waiting fetch could give now, at most `bytes_max`."""

    __slots__ = ("_bytes_max", "_bytes_ready", "_log_bytes", "_partition", "_poll")

    def __init__(self, poll: DelayedFetch[T], partition: Partition, bytes_ready: int, bytes_max: int) -> None:
        self._poll, self._partition = poll, partition
        self._bytes_ready, self._bytes_max = bytes_ready, max(bytes_max, 1)
        self._log_bytes = partition.log.size_bytes

    def woken(self) -> None:
        if self._partition.offline is not None:
            self._poll.settle()
            return
        log_bytes = self._partition.log.size_bytes
        grown = log_bytes - self._log_bytes
        self._log_bytes = log_bytes
        # Retention between two appends makes the log shrink: count at least something, the deadline does the rest.
        ready = min(self._bytes_ready + max(grown, 1), self._bytes_max)
        gained, self._bytes_ready = ready - self._bytes_ready, ready
        self._poll.gained(gained)


class DelayedFetch(Generic[T]):
    """`watches` are (partition, bytes ready now, bytes it may give at most); `answer` makes the reply, once."""

    __slots__ = ("_answer", "_bytes_missing", "_due", "_timers", "_watched", "delayed_reply")

    def __init__(
        self,
        timers: Timers,
        deadline_ms: int,
        bytes_missing: int,
        watches: Iterable[tuple[Partition, int, int]],
        answer: Callable[[], T],
    ) -> None:
        self.delayed_reply: DelayedReply[T] = DelayedReply(mutes=True)
        self._timers, self._bytes_missing, self._answer = timers, bytes_missing, answer
        self._due = False
        self._watched: list[tuple[Partition, Watch]] | None = [
            (partition, partition.watch(self._watcher(partition, bytes_ready, bytes_max)))
            for partition, bytes_ready, bytes_max in watches
        ]
        self.delayed_reply.on_abandon(self._leave)
        timers.at((_TIMER, id(self)), deadline_ms, self._finish)

    def gained(self, some_bytes: int) -> None:
        self._bytes_missing -= some_bytes
        if self._bytes_missing <= 0:
            self.settle()

    def settle(self) -> None:
        """Answer in the next turn, with whatever there is by then."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._finish)

    def _watcher(self, partition: Partition, bytes_ready: int, bytes_max: int) -> Callable[[], None]:
        if self._bytes_missing <= 1:  # the default of every client: any record will do, and nothing is counted
            return self.settle
        return _Watched(self, partition, bytes_ready, bytes_max).woken

    def _finish(self) -> None:
        if self._watched is not None:
            self._leave()
            self.delayed_reply.answer(shaped_or_mistake(lambda _: self._answer(), None))

    def _leave(self) -> None:
        watched, self._watched = self._watched, None
        self._timers.cancel((_TIMER, id(self)))
        for partition, watch in watched or ():
            partition.unwatch(watch)
