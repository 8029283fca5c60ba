"""Reads of data that is not in the page cache: a thread loads it, so that the loop does not wait for the disk.

Laws
    F11 The loop waits for the disk only when loading brings a read no further, because the page cache does not keep
        the loaded data.
    A4  The reads that wait for one rebuild of indexes take no threads from other work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from rota.coordinator.log.contract import Load
from rota.coordinator.log.index_rebuild import IndexRebuild

PASSES_MAX: Final = 100
_REBUILDS: Final = ThreadPoolExecutor(1, thread_name_prefix="index-rebuild")  # starts its thread with the first one


class ReadResult(Protocol):
    """The result of one pass. It is complete when `loads` is empty."""

    @property
    def loads(self) -> Collection[Load]: ...


R = TypeVar("R", bound=ReadResult)


async def load_and_read(result: R, read: Callable[[bool], R]) -> R:
    """Load what `result` lacks and call `read(False)`, until a result is complete; at last `read(True)`, which waits.

    A pass makes progress if it needs data that was not loaded before, or less data than the pass before.
    """
    loop = asyncio.get_running_loop()
    loaded: set[Load] = set()
    for _ in range(PASSES_MAX):
        loads = tuple(result.loads)
        await loop.run_in_executor(_executor(loads), _load, loads)
        loaded.update(loads)
        result = read(False)
        if not result.loads:
            return result
        if loaded.issuperset(result.loads) and len(result.loads) >= len(loads):
            break
    return read(True)


def load_soon(loads: Sequence[Load], then: Callable[[], None]) -> None:
    """Run the loads in a thread, then call `then` in the event loop."""
    loading = asyncio.get_running_loop().run_in_executor(_executor(loads), _load, loads)
    loading.add_done_callback(lambda _: then())


def _executor(loads: Sequence[Load]) -> Executor | None:
    """Return the thread for rebuilds, which read whole segments; None, the threads of the loop, for other loads."""
    return _REBUILDS if any(isinstance(load, IndexRebuild) for load in loads) else None


def _load(loads: Sequence[Load]) -> None:
    for load in loads:
        with suppress(OSError):  # the next read gets the same error and takes the partition offline
            load()
