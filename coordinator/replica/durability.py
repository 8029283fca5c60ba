"""When is what was appended on the medium? Groups of appends share one flush, off the loop.

Laws
    D1  With `flush.messages` set, a reply that waits for its records leaves after a flush that began after the append.
    D2  One flush is under way per broker; whatever is appended meanwhile makes the next group.
    D3  A flush that fails takes its partition offline and answers nobody with success.
    D4  Replies of one partition keep the order of their appends.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING

from rota.coordinator.log.contract import Log, StorageFailed

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition

Call = Callable[[], None]
Failed = Callable[[StorageFailed], None]
_Waiting = dict["Partition", list[tuple[Call, Failed | None]]]


class Durability:
    """Group flush. `executor` runs the flushes; by default one thread, started with the first of them."""

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor
        self._waiting: _Waiting = {}
        self._untold: Counter[Partition] = Counter()  # calls that wait, up to the moment in which they are made
        self._flight: asyncio.Task[None] | None = None

    def when_durable(self, partition: Partition, call: Call, failed: Failed | None = None) -> None:
        """Have `call` told once all that was appended to `partition` so far is durable.

        At once when the partition's config leaves flushing to the system (`flush_messages` None), as Kafka does, unless
        others still wait, from a time when it did not (D4).
        On failure the partition goes offline and `failed` is told instead. Raises StorageFailed when it is offline.
        """
        if partition.log.config.flush_messages is None and partition not in self._untold:
            call()
            return
        self._join(partition).append((call, failed))
        self._untold[partition] += 1

    def flush_soon(self, partition: Partition) -> None:
        """Have `partition` flushed with the next group, whatever its config says of replies. Nobody is told."""
        self._join(partition)

    async def drained(self) -> None:
        """Wait until nobody waits: for a graceful stop."""
        while self._flight is not None:
            await asyncio.wait({self._flight})

    def close(self) -> None:
        """Release the thread. Nothing may be under way (`drained`)."""
        if isinstance(self._executor, ThreadPoolExecutor):
            self._executor.shutdown(wait=True)

    def _join(self, partition: Partition) -> list[tuple[Call, Failed | None]]:
        """Who waits for the next flush of `partition`."""
        if self._flight is None:
            self._flight = asyncio.get_running_loop().create_task(self._flush_groups())
        return self._waiting.setdefault(partition, [])

    async def _flush_groups(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting, {}
                await self._flush(group)
        finally:
            self._flight = None

    async def _flush(self, group: _Waiting) -> None:
        logs = {partition: _log_of(partition) for partition in group}
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="flush")
        loop = asyncio.get_running_loop()
        for partition, log in logs.items():
            error: StorageFailed | None = None
            try:
                if log is None:
                    raise StorageFailed(f"{partition.topic}-{partition.index} is offline: {partition.offline}")
                await loop.run_in_executor(self._executor, log.flush)
                partition.flushed()
            except StorageFailed as cause:
                error = cause
                partition.fail(str(cause))
            for call, failed in group[partition]:  # each in a turn of its own, so that a mistake in one harms no other
                loop.call_soon(self._tell, partition, call, failed, error)

    def _tell(self, partition: Partition, call: Call, failed: Failed | None, error: StorageFailed | None) -> None:
        self._untold[partition] -= 1
        if not self._untold[partition]:
            del self._untold[partition]
        if error is None:
            call()
        elif failed is not None:
            failed(error)


def _log_of(partition: Partition) -> Log | None:
    return None if partition.offline is not None else partition.log
