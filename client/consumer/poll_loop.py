"""One poll-like call of a consumer: membership, commits and positions first, then records.

Laws
    One poll-like call at a time.
    A call that is cancelled takes no record: records are taken in its last step.
    A call that begins while another task closes the consumer waits for the end, or for its time: a loop of calls does
    not spin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from rota.client.consumer.auto_commit import NEVER
from rota.client.consumer.delivered_records import DeliveredRecords
from rota.client.consumer.fetcher import Fetcher
from rota.client.consumer.offset_committer import OffsetCommitter
from rota.client.consumer.offset_resolver import OffsetResolver
from rota.client.consumer.topic_refusals import TopicRefusals
from rota.client.errors import IllegalUse, KafkaError

T = TypeVar("T")

SHORTCUT_S: Final = 0.005  # for so long calls may take records without a look at membership, commits and other tasks
MISSING_POSITIONS_S: Final = 0.02  # while some positions are not found, the other partitions are read
IDLE_COMMIT_S: Final = 0.1  # while no records come, automatic commits are no nearer than that


class PollLoop:
    """`poll` and `exclusive` for the calls, `notice` for whatever has changed, `interrupt` and `finish` for the end."""

    def __init__(
        self,
        fetcher: Fetcher,
        delivered: DeliveredRecords,
        committer: OffsetCommitter,
        resolver: OffsetResolver,
        refusals: TopicRefusals,
    ) -> None:
        self._fetcher, self._delivered, self._committer, self._resolver = fetcher, delivered, committer, resolver
        self._refusals = refusals
        self._is_due = True  # the next call has more to do than to take records
        self._poller: asyncio.Task[Any] | None = None  # the task that is in a poll-like call
        self._timeout: asyncio.Timeout | None = None  # of that call
        self._idle = asyncio.Event()
        self._idle.set()
        self._finished = asyncio.Event()
        self.is_closing = False
        self.time: Callable[[], float] = float  # the loop's, once the consumer has started

    def notice(self) -> None:
        """Something has changed: the next call looks at everything, the one that waits now."""
        self._is_due, self._delivered.shortcut_until = True, 0.0
        self._fetcher.wake()

    async def poll(self, take: Callable[[], T | None], timeout_ms: int | None) -> T | None:
        """Do what is due, then return what `take` gives, as soon as it gives anything; None when the time passes."""
        with self.exclusive():
            self._delivered.begin()
            ends = None if timeout_ms is None else self.time() + timeout_ms / 1000
            await asyncio.sleep(0)  # records may come for ever without a wait; other tasks want the loop too
            try:
                async with asyncio.timeout_at(ends) as self._timeout:
                    return await self._records(take)
            except TimeoutError as late:
                if isinstance(late, KafkaError) or self._timeout is None or not self._timeout.expired():
                    raise
            return None

    async def _records(self, take: Callable[[], T | None]) -> T | None:
        is_first = True
        while not self.is_closing:
            await self._do_due(is_first)
            is_first = False
            result = take()
            if result is not None:
                return result
            await self._wait()
        return None

    async def _do_due(self, is_first: bool) -> None:
        """Commits, membership, positions."""
        self._is_due = False
        try:
            self._committer.commit_if_due(is_first)
            if self._committer.membership is not None:
                await self._committer.membership.poll()
            self._refusals.raise_new()
            self._resolver.raise_failure()
            self._resolver.begin()
        except BaseException:
            self._is_due = True  # it is still due: no record before that, a callback may be running
            raise

    async def _wait(self) -> None:
        """Wait until there may be records to take, or something is due."""
        loop, next_ms = asyncio.get_running_loop(), self._committer.queue.auto.next_ms
        at = max(next_ms / 1000, loop.time() + IDLE_COMMIT_S)
        timer = loop.call_at(at, self.notice) if next_ms != NEVER else None
        try:
            if self._resolver.task is not None:
                await asyncio.wait({self._resolver.task}, timeout=MISSING_POSITIONS_S)
            else:
                await self._fetcher.wait()
        finally:
            if timer is not None:
                timer.cancel()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """One poll-like call. Raises IllegalUse when another one runs."""
        if self._poller is not None:
            raise IllegalUse(
                f"the consumer is being polled already, by task {self._poller.get_name()!r} or by the call that runs "
                f"this callback: a consumer has one reader; hand the records on through a queue, or use several "
                f"consumers"
            )
        self._poller = asyncio.current_task()
        self._delivered.shortcut_until = 0.0  # no other task takes records meanwhile
        self._idle.clear()
        try:
            yield
        finally:
            self._poller = self._timeout = None
            self._delivered.shortcut_until = self._shortcut_until()
            if self._committer.membership is not None:
                self._committer.membership.returning()
            self._idle.set()

    def _shortcut_until(self) -> float:
        if self._is_due or self.is_closing:
            return 0.0
        return min(self.time() + SHORTCUT_S, self._committer.queue.auto.next_ms / 1000)

    # the end

    async def interrupt(self, timeout_ms: float) -> None:
        """End the call of another task without records, and wait for its end; no call gives records any more."""
        self.is_closing = True
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())
        await _at_most(self._idle.wait(), timeout_ms)
        self._delivered.shortcut_until = 0.0

    async def until_finished(self, timeout_ms: float) -> None:
        """Wait for `finish`, for so long."""
        await _at_most(self._finished.wait(), timeout_ms)

    def finish(self) -> None:
        """The consumer is closed."""
        self._finished.set()


async def _at_most(wait: Awaitable[object], ms: float) -> None:
    limit = asyncio.timeout(ms / 1000)
    try:
        async with limit:
            await wait
    except TimeoutError:
        if not limit.expired():
            raise
