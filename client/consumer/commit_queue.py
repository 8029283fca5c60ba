"""The commits of one consumer, in the order of the calls.

Laws
    One commit is in flight at a time, in the order of the calls, retries included.
    A commit has the membership and the topic ids (C14) of the time of its call: one that was queued before a rebalance,
    or before its topic was created again, is refused.
    A cancelled commit, even one cancelled before its first step, does not delay later ones.
    Automatic commits block no call; a failure is logged and never raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from rota.client.config import ConsumerConfig
from rota.client.consumer.auto_commit import AutoCommit
from rota.client.consumer.delivered_records import Committable
from rota.client.errors import (
    BrokerError,
    CommitFailed,
    FencedInstance,
    KafkaError,
    RebalanceInProgress,
    TimedOut,
    Unreachable,
)
from rota.client.log import logger
from rota.client.network.cluster import Cluster
from rota.client.offsets.offset_commit import commit, topic_ids
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.dataclass import dataclass

TRANSIENT_ERRORS = (TimedOut, Unreachable, RebalanceInProgress)
_log = logger("rota.client.consumer")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A commit in the queue. It may start when `before` is done; `done` is set when it has ended."""

    before: asyncio.Future[None] | None
    done: asyncio.Future[None]


class CommitQueue:
    """`refused(group, code)` is called if the response ends the membership or announces a rebalance, `ended()` when an
    automatic commit has ended."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        refused: Callable[[GroupMetadata, int], None],
        ended: Callable[[], None],
    ) -> None:
        self._cluster, self._config, self._refused, self._ended = cluster, config, refused, ended
        self._last: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.last_committed: Committable = {}  # by the last automatic commit that succeeded
        self.auto = AutoCommit(
            on=config.has_automatic_commits,
            interval_ms=config.auto_commit_interval_ms,
            backoff_ms=config.retry_backoff_ms,
            now_ms=0,  # due with the first poll, which has nothing to commit
        )

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int | None = None
    ) -> None:
        """Commit and wait. Raises what `offsets.commit` raises; `timeout_ms` includes the wait for earlier commits."""
        await self._do(self._queue(), group, offsets, timeout_ms)

    def soon(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int | None = None
    ) -> asyncio.Task[None]:
        """Commit in a task, which is in the queue when this returns."""
        entry = self._queue()
        task = asyncio.create_task(self._do(entry, group, offsets, timeout_ms), name="rota-commit")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: _release(entry))  # `_do` does not run if it is cancelled before its first step
        return task

    def automatic(self, group: GroupMetadata, offsets: Committable) -> None:
        """Commit in the background if `auto.is_due`."""
        self.auto.begin(now_ms())
        if not offsets:
            self.auto.complete(now_ms(), retry=False)
            return
        task = self.soon(group, offsets)
        task.add_done_callback(lambda ended: self._auto_ended(group, offsets, ended))

    async def automatic_now(self, group: GroupMetadata, offsets: Committable, timeout_ms: int) -> None:
        """Commit before partitions are revoked, and wait up to `timeout_ms`. Never raises."""
        if not self.auto.on or not offsets:
            return
        self.auto.begin(now_ms())
        failure: KafkaError | None = None
        try:
            await self.commit(group, offsets, timeout_ms)
            self.last_committed = offsets
        except KafkaError as error:
            failure = error
            self._log_failed(group, offsets, error)
        finally:
            self.auto.complete(now_ms(), retry=isinstance(failure, TRANSIENT_ERRORS))

    @staticmethod
    def log_failure(task: asyncio.Task[None]) -> None:
        """Log the failure of a commit task that may not be awaited."""
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            _log.warning(f"A commit failed: {failure}")

    async def wait_until_answered(self, timeout_ms: int) -> None:
        """Wait for the queued commits, up to `timeout_ms`. Never raises."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_ms / 1000)

    async def close(self) -> None:
        """Cancel the commits that are in flight or queued."""
        waiting = set(self._tasks)
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting)

    def _queue(self) -> _Entry:
        before, self._last = self._last, asyncio.get_running_loop().create_future()
        return _Entry(before if before is not None and not before.done() else None, self._last)

    async def _do(
        self,
        entry: _Entry,
        group: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        timeout_ms: int | None,
    ) -> None:
        timeout_ms = self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        ends_ms, ids = now_ms() + timeout_ms, topic_ids(self._cluster, offsets)  # C14: of now, not of when it is sent
        try:
            await self._wait_for_earlier_commits(entry, group, timeout_ms)
            await commit(self._cluster, group, offsets, timeout_ms=max(1, int(ends_ms - now_ms())), ids=ids)
        except (CommitFailed, RebalanceInProgress, FencedInstance) as error:
            if isinstance(error.__cause__, BrokerError):
                self._refused(group, int(error.__cause__.code))
            raise
        finally:
            _release(entry)

    async def _wait_for_earlier_commits(self, entry: _Entry, group: GroupMetadata, timeout_ms: int) -> None:
        if entry.before is None:
            return
        done, _ = await asyncio.wait({entry.before}, timeout=timeout_ms / 1000)
        if not done:
            raise TimedOut(
                f"committing offsets of group {group.group_id}: earlier commits of this consumer were not done within "
                f"{timeout_ms} ms"
            )

    def _auto_ended(self, group: GroupMetadata, offsets: Committable, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self._log_failed(group, offsets, failure)
        elif not task.cancelled():
            self.last_committed = offsets
        self.auto.complete(now_ms(), retry=isinstance(failure, TRANSIENT_ERRORS))
        self._ended()

    def _log_failed(self, group: GroupMetadata, offsets: Committable, failure: BaseException) -> None:
        _log.warning(
            f"Automatic commit of offsets failed: {failure}",
            group=group.group_id,
            offsets={str(partition): at.offset for partition, at in offsets.items()},
        )


def now_ms() -> float:
    """Return the time of the event loop in ms."""
    return asyncio.get_running_loop().time() * 1000


def _release(entry: _Entry) -> None:
    """Let the next commit start when this one and all before it are done. A second call changes nothing."""
    if entry.before is None or entry.before.done():
        _set_done(entry.done)
    else:
        entry.before.add_done_callback(lambda _: _set_done(entry.done))


def _set_done(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
