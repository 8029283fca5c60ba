"""What comes round again and again, so that a broker may run for years: retention, compaction, flushes, checkpoints.

Laws
    A4  Nobody waits for upkeep: on the loop it takes a slice of a few milliseconds, and what blocks goes to a thread.
    U1  What was appended to a topic with flush.ms is on its way to the medium at most flush.ms and one round later.
    U2  Upkeep that fails is told in the log and tried again in the next round; the broker goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.replica.durability import Durability
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.scheduling.timers import Timers
from rota.coordinator.storage import Disk, Memory

log = structlog.get_logger("rota.upkeep")

ROUND_MS: Final = 1_000
COMPACTION_PAUSE_MS: Final = 10  # between two slices of a compaction under way
TIDY_EVERY_MS: Final = 60_000  # as Kafka's checkpoints, and its wait before the files of a deleted log go


class Upkeep:
    """Rings by itself from `start` to `stop`."""

    def __init__(
        self,
        partitions: Partitions,
        storage: Disk | Memory,
        durability: Durability,
        timers: Timers,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        self._partitions, self._storage, self._durability = partitions, storage, durability
        self._timers, self._now_ms, self._wall_ms = timers, now_ms, wall_ms
        self._unflushed_since_ms: dict[Partition, int] = {}
        self._tidying: asyncio.Task[None] | None = None
        self._tidied_ms = now_ms()

    def start(self) -> None:
        self._later(("upkeep", "round"), ROUND_MS, self._round)

    async def stop(self) -> None:
        """Ring no more; returns when no thread is busy with it."""
        for what in ("round", "compaction"):
            self._timers.cancel(("upkeep", what))
        if self._tidying is not None:
            await asyncio.wait({self._tidying})

    def _later(self, key: tuple[str, str], wait_ms: int, call: Callable[[], None]) -> None:
        self._timers.at(key, self._now_ms() + wait_ms, call)

    def _round(self) -> None:
        self._later(("upkeep", "round"), ROUND_MS, self._round)
        self._maintain()
        self._flush()
        if self._tidying is None and self._now_ms() - self._tidied_ms >= TIDY_EVERY_MS:
            self._tidying = asyncio.get_running_loop().create_task(self._tidy())

    def _maintain(self) -> None:
        if self._partitions.maintain(self._now_ms(), self._wall_ms()):
            self._later(("upkeep", "compaction"), COMPACTION_PAUSE_MS, self._maintain)

    def _flush(self) -> None:
        """U1. Partitions that left while they were unflushed are forgotten with the old dictionary."""
        now_ms, before, since = self._now_ms(), self._unflushed_since_ms, dict[Partition, int]()
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

    async def _tidy(self) -> None:
        try:
            await asyncio.to_thread(self._storage.tidy)
        except StorageFailed as cause:
            log.warning("Upkeep failed and is tried again", reason=str(cause))
        finally:
            self._tidied_ms, self._tidying = self._now_ms(), None
