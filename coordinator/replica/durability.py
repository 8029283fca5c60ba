"""Group flush: appends of one loop turn share one flush, on a worker thread.

Laws
    D1  With `flush.messages` set, a reply that waits for its records is sent after a flush that began after the append.
    D2  A broker runs one flush at a time; the partitions with appends during it are the next group.
    D3  A failed flush takes its partition offline, and no wait of that partition ends with success.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition


class Durability:
    """The flush worker. `executor` runs the flushes; by default one thread, started with the first of them."""

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor
        self._unflushed: dict[Partition, None] = {}  # in the order of the first append
        self._flushing: asyncio.Task[None] | None = None

    def flush_soon(self, partition: Partition) -> None:
        """Flush `partition` with the next group, and call `partition.flushed()`; `partition.fail` when that fails."""
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush_groups())
        self._unflushed[partition] = None

    async def drained(self) -> None:
        """Wait until no flush is pending: for a graceful stop."""
        while self._flushing is not None:
            await asyncio.wait({self._flushing})

    def close(self) -> None:
        """Release the thread. Call `drained` before."""
        if isinstance(self._executor, ThreadPoolExecutor):
            self._executor.shutdown(wait=True)

    async def _flush_groups(self) -> None:
        try:
            while self._unflushed:
                group, self._unflushed = self._unflushed, {}
                for partition in group:
                    await self._flush(partition)
        finally:
            self._flushing = None

    async def _flush(self, partition: Partition) -> None:
        if partition.offline is not None:
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="flush")
        log = partition.log
        try:
            flush = log.begin_flush()
            await asyncio.get_running_loop().run_in_executor(self._executor, flush.run)
            flush.finish()
        except Exception as cause:  # noqa: BLE001  # any exception: the other partitions are flushed, too
            partition.log_failed(log, str(cause) or repr(cause))
        else:
            partition.flushed()
