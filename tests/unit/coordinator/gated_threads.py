"""Threads of the event loop that begin when a test says so: until then what they would do is not done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

PATIENCE_S = 20


class GatedThreads(ThreadPoolExecutor):
    """An executor whose work waits for `open`. A thread that is fast could else be done before it is waited for."""

    def __init__(self) -> None:
        super().__init__(max_workers=2)
        self._gate = threading.Event()

    @classmethod
    def of_this_loop(cls) -> GatedThreads:
        """Be the default executor of the running loop, which shuts it down."""
        threads = cls()
        asyncio.get_running_loop().set_default_executor(threads)
        return threads

    def open(self) -> None:
        """Let the work begin."""
        self._gate.set()

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        def gated() -> Any:
            assert self._gate.wait(PATIENCE_S), "the gate of the threads was never opened"
            return work(*args, **named)

        return super().submit(gated)
