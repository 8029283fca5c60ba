"""The periodic work of a broker: retention, compaction, flushes, checkpoints, reopening of failed logs.

Laws
    A4  Requests never wait for upkeep: it runs on the loop in slices of a few milliseconds; blocking work in threads.
    U1  What was appended to a topic with flush.ms is on its way to the medium at most flush.ms and one round later.
    U2  Upkeep that fails is logged, harms nothing, and is tried again with growing waits; the broker goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final

import structlog

from rota.coordinator.log.contract import Log, StorageFailed
from rota.coordinator.replica.durability import Durability
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.replica.retry_wait import RetryWaits
from rota.coordinator.scheduling.timers import Timers
from rota.coordinator.storage import Disk, Memory

log = structlog.get_logger("rota.upkeep")

ROUND_MS: Final = 1_000
ROUND_PARTITIONS_MAX: Final = 16  # whose retention and compaction one round looks at
COMPACTION_PAUSE_MS: Final = 10  # between two slices of a compaction under way
CHECKPOINT_EVERY_MS: Final = 60_000  # as Kafka's checkpoints, and its wait before deleted files go
RETRY_AFTER_MS: Final = 10_000  # retention or compaction of a partition that failed; then twice as long each time
RETRY_AFTER_MS_MAX: Final = 600_000


class Upkeep:
    """Runs by itself from `start` to `stop`.

    `now_ms` is elapsed time, for the rounds; `wall_ms` is ms since the epoch, for the age of records.
    `retention_every_ms` is log.retention.check.interval.ms: old records stay until the next look for them. In a topic
    that is compacted as well they go in each pass: there the cleaner deletes, as in Kafka (RT2).
    """

    def __init__(
        self,
        partitions: Partitions,
        storage: Disk | Memory,
        durability: Durability,
        timers: Timers,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        *,
        retention_every_ms: int = 0,
    ) -> None:
        self._partitions, self._storage, self._durability = partitions, storage, durability
        self._timers, self._now_ms, self._wall_ms = timers, now_ms, wall_ms
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_stopping = False
        self._pausing: asyncio.Future[None] | None = None
        self._unflushed_since_ms: dict[Partition, int] = {}
        self._rolled_meanwhile = False  # many segments were rolled since `_flush_rolled` has begun
        self._checkpointed_ms = now_ms()
        self._upcoming: Iterator[Partition] = iter(())
        self._retention_every_ms = retention_every_ms
        self._retained_ms: int | None = None  # when the last pass with retention began
        self._retains = False
        self._waits = RetryWaits[Partition](RETRY_AFTER_MS, RETRY_AFTER_MS_MAX)

    def start(self) -> None:
        self._is_stopping = False
        self._storage.when_many_unsynced(self._many_rolled)
        self._timers.at(("upkeep", "round"), self._now_ms() + ROUND_MS, self._round)

    async def stop(self) -> None:
        """Begin nothing more; returns when no thread is busy with it."""
        self._is_stopping = True
        self._timers.cancel(("upkeep", "round"))
        self._timers.cancel(("upkeep", "pause"))
        self._resume()
        await self.idle()
        await self._partitions.stop_reopening()

    async def idle(self) -> None:
        """Return when no work is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _round(self) -> None:
        now_ms = self._now_ms()
        self._timers.at(("upkeep", "round"), now_ms + ROUND_MS, self._round)
        self._flush(now_ms)
        self._partitions.reopen_failed(now_ms)
        self._begin("maintain", self._maintain)
        self._begin("flush", self._flush_rolled)
        if now_ms - self._checkpointed_ms >= CHECKPOINT_EVERY_MS:
            self._begin("checkpoint", self._checkpoint)

    def _begin(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run it in a task, unless the one of the round before still runs."""
        if name not in self._tasks or self._tasks[name].done():  # the end of a task is called back a turn later
            self._tasks[name] = task = asyncio.get_running_loop().create_task(work())
            task.add_done_callback(partial(self._ended, name))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]

    # ---- flushes and checkpoints

    def _flush(self, now_ms: int) -> None:
        """U1. Partitions that left while they were unflushed are forgotten with the old dictionary."""
        before, since = self._unflushed_since_ms, dict[Partition, int]()
        for partition in self._partitions.all():
            if partition.offline is not None:
                continue
            flush_ms = partition.log.config.flush_ms
            if flush_ms is None or not partition.log.unflushed_messages:
                continue
            since_ms = before.get(partition, now_ms)
            if now_ms - since_ms >= flush_ms:
                self._durability.flush_soon(partition)
            else:
                since[partition] = since_ms
        self._unflushed_since_ms = since

    def _many_rolled(self) -> None:
        """Do not wait for the next round: at a limit the logs roll no more segments (law A8)."""
        self._rolled_meanwhile = True
        if not self._is_stopping:
            self._begin("flush", self._flush_rolled)

    async def _flush_rolled(self) -> None:
        """Flush the segments that were rolled, so that a recovery need not look at more than the active one."""
        self._rolled_meanwhile = True
        while self._rolled_meanwhile and not self._is_stopping:
            self._rolled_meanwhile = False
            await self._flush_rolled_once()

    async def _flush_rolled_once(self) -> None:
        for partition in self._partitions.all():
            if self._is_stopping:
                return
            if partition.offline is None and (of := partition.log).has_unflushed_segments:
                try:
                    flush = of.begin_flush(rolled=True)
                    await asyncio.to_thread(flush.run)
                    flush.finish()
                    partition.flushed()
                except StorageFailed as error:
                    partition.log_failed(of, str(error))

    async def _checkpoint(self) -> None:
        try:
            await asyncio.to_thread(self._storage.begin_checkpoint())
        except StorageFailed as error:
            log.warning("Checkpoint failed and is tried again", reason=str(error))
        finally:
            self._checkpointed_ms = self._now_ms()

    # ---- retention and compaction

    async def _maintain(self) -> None:
        """Retention and compaction of the next few partitions."""
        for _ in range(ROUND_PARTITIONS_MAX):
            partition = next(self._upcoming, None)
            if partition is None:
                self._begin_pass()
                return
            if partition.offline is None and self._waits.is_due(partition, self._now_ms()):
                await self._maintain_one(partition, partition.log)
            if self._is_stopping:
                return

    def _begin_pass(self) -> None:
        now_ms = self._now_ms()
        self._upcoming = iter(self._partitions.all())
        if self._retained_ms is None:
            self._retained_ms = now_ms
        self._retains = now_ms - self._retained_ms >= self._retention_every_ms
        if self._retains:
            self._retained_ms = now_ms

    async def _maintain_one(self, partition: Partition, of: Log) -> None:
        try:
            if self._retains or of.config.compact:
                await self._read_ages(partition, of)
            if self._is_stopping or partition.offline is not None or partition.log is not of:
                return
            if self._retains or (of.config.compact and of.config.delete):
                await self._retain(partition, of)
            if self._is_stopping or partition.offline is not None or partition.log is not of:
                return
            if of.config.compact:
                await self._compact(partition, of)
        except StorageFailed as error:
            if of.failure is not None:
                partition.log_failed(of, str(error))
                return
            wait_ms = self._waits.delay(partition, self._now_ms())
            log.warning(
                "Retention or compaction failed and is tried again",
                topic=partition.topic,
                partition=partition.index,
                reason=str(error),
                wait_ms=wait_ms,
            )
        else:
            self._waits.forget(partition)

    async def _read_ages(self, partition: Partition, of: Log) -> None:
        """A9. Raises StorageFailed."""
        while not self._is_stopping and partition.offline is None and partition.log is of:
            ages = of.begin_read_ages(self._wall_ms())
            if ages is None:
                return
            await asyncio.to_thread(ages.run)
            ages.finish()

    async def _retain(self, partition: Partition, of: Log) -> None:
        """Delete old segments, step by step. Raises StorageFailed; segments that cannot be deleted stay."""
        steps = of.retention(self._wall_ms(), high_watermark=partition.state.high_watermark)
        try:
            for _ in steps:
                partition.log_start_moved()
                await self._pause()
                if self._is_stopping or partition.offline is not None or partition.log is not of:
                    return
        finally:
            steps.close()
            if partition.offline is None and partition.log is of:
                partition.log_start_moved()

    async def _compact(self, partition: Partition, of: Log) -> None:
        """One pass, slice by slice, as long as the partition has this log. Raises StorageFailed."""
        of.producers.committed(partition.state.high_watermark)
        slices = of.compaction(self._wall_ms(), high_watermark=partition.state.high_watermark)
        try:
            for run in slices:
                await asyncio.to_thread(run)
                await self._pause()
                if self._is_stopping or partition.offline is not None or partition.log is not of:
                    return
        finally:
            slices.close()

    async def _pause(self) -> None:
        """Leave the loop to others for COMPACTION_PAUSE_MS."""
        if self._is_stopping:
            return
        self._pausing = asyncio.get_running_loop().create_future()
        self._timers.at(("upkeep", "pause"), self._now_ms() + COMPACTION_PAUSE_MS, self._resume)
        await self._pausing

    def _resume(self) -> None:
        if self._pausing is not None and not self._pausing.done():
            self._pausing.set_result(None)
