"""A fetch that waits until its partitions have enough bytes, or until its deadline (Kafka's DelayedFetch).

Laws
    G4  It is answered exactly once: when enough bytes are committed, when a partition fails, or at its deadline.
    F5  While it waits it reads nothing: when the high watermark moves, the bytes by which the log grew are added.
         A read_committed fetch is not woken by records of open transactions.
    F6  Once answered or abandoned it has no watch and no timer.
    F7  The response is computed in its own tick, so that appends of one tick share it and no producer waits for it.
    F11 Its records are loaded in a thread, too, if they are not in the page cache.
    F17 When a FindCoordinator arrives behind it, it is answered at once, with the available records.
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


class _ByteCount:
    """Counts the bytes that one partition of a waiting fetch could return now, at most `bytes_max`."""

    __slots__ = ("_bytes_max", "_bytes_ready", "_fetch", "_log_bytes", "_partition")

    def __init__(self, fetch: DelayedFetch[T], partition: Partition, bytes_ready: int, bytes_max: int) -> None:
        self._fetch, self._partition = fetch, partition
        self._bytes_ready, self._bytes_max = bytes_ready, max(bytes_max, 1)
        self._log_bytes = partition.log.size_bytes

    def high_watermark_moved(self) -> None:
        if self._partition.offline is not None:
            self._fetch.complete_soon()
            return
        log_bytes = self._partition.log.size_bytes
        grown = log_bytes - self._log_bytes
        self._log_bytes = log_bytes
        # Retention between two appends may shrink the log: count at least one byte; the deadline limits the wait.
        ready = min(self._bytes_ready + max(grown, 1), self._bytes_max)
        gained, self._bytes_ready = ready - self._bytes_ready, ready
        self._fetch.add_bytes(gained)


class _StableOffset:
    """Calls `moved` when the last stable offset or the leader of a partition changes, and when the partition fails."""

    __slots__ = ("_before", "_moved", "_partition")

    def __init__(self, partition: Partition, moved: Callable[[], None]) -> None:
        self._partition, self._moved = partition, moved
        self._before = partition.last_stable_offset, partition.leader_epoch, partition.is_leader

    def high_watermark_moved(self) -> None:
        partition = self._partition
        if partition.offline is None:
            before = self._before
            self._before = partition.last_stable_offset, partition.leader_epoch, partition.is_leader
            if self._before == before:
                return
        self._moved()


class DelayedFetch(Generic[T]):
    """`watches` are (partition, bytes ready now, maximum bytes of the partition); `answer` computes the response,
    which may be delayed once more."""

    __slots__ = (
        "_answer",
        "_bytes_missing",
        "_is_completing",
        "_read_committed",
        "_timers",
        "_watches",
        "delayed_reply",
    )

    def __init__(
        self,
        timers: Timers,
        deadline_ms: int,
        bytes_missing: int,
        watches: Iterable[tuple[Partition, int, int]],
        answer: Callable[[], T | DelayedReply[T]],
        *,
        of_follower: bool = False,
        read_committed: bool = False,
    ) -> None:
        """A follower's fetch waits for appends, and does not delay the next request of its connection.

        A read_committed fetch waits for the last stable offset.
        """
        self.delayed_reply: DelayedReply[T] = DelayedReply(mutes=not of_follower)
        self._timers, self._bytes_missing, self._answer = timers, bytes_missing, answer
        self._is_completing, self._read_committed = False, read_committed
        self._watches: list[tuple[Partition, Watch]] | None = []
        for partition, bytes_ready, bytes_max in watches:
            watch = partition.watch_appends if of_follower else partition.watch
            self._watches.append((partition, watch(self._callback(partition, bytes_ready, bytes_max))))
        self.delayed_reply.on_abandon(self._release)
        self.delayed_reply.on_expedite(self.complete_soon)
        timers.at((_TIMER, id(self)), deadline_ms, self._complete)

    def add_bytes(self, count: int) -> None:
        self._bytes_missing -= count
        if self._bytes_missing <= 0:
            self.complete_soon()

    def complete_soon(self) -> None:
        """Answer in the next tick, with the records that are available then."""
        if not self._is_completing:
            self._is_completing = True
            asyncio.get_running_loop().call_soon(self._complete)

    def complete_on_commit(self, partition: Partition) -> None:
        """Answer also when the high watermark of this partition moves: for a follower that requested it (KIP-1166)."""
        if self._watches is not None:
            self._watches.append((partition, partition.watch(self.complete_soon)))

    def complete(self) -> None:
        """Answer now, with the available records, unless it is answered already."""
        self._complete()

    def _callback(self, partition: Partition, bytes_ready: int, bytes_max: int) -> Callable[[], None]:
        moved = self.complete_soon  # the default of every client: any record will do, and nothing is counted
        if self._bytes_missing > 1:
            moved = _ByteCount(self, partition, bytes_ready, bytes_max).high_watermark_moved
        return _StableOffset(partition, moved).high_watermark_moved if self._read_committed else moved

    def _complete(self) -> None:
        if self._watches is not None:
            self._release()
            answer = shaped_or_mistake(lambda _: self._answer(), None)
            if isinstance(answer, DelayedReply):  # its records are on the disk
                answer.then(self.delayed_reply.answer)
            else:
                self.delayed_reply.answer(answer)

    def _release(self) -> None:
        watches_left, self._watches = self._watches, None
        self._timers.cancel((_TIMER, id(self)))
        for partition, watch in watches_left or ():
            partition.unwatch(watch)
