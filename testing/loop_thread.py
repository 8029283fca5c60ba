"""Brokers in this process: a thread with an event loop of its own, so that the tests may block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rota.coordinator.observe import logs  # first: it loads structlog without rich, in half the time
from rota.testing.commands import Commands
from rota.testing.host import Host

__all__ = ["LoopThread", "logs"]

T = TypeVar("T")

STOP_S = 30.0
COMMAND_S_MAX = 60.0


class LoopThread(threading.Thread):
    """Runs a host and performs commands for other threads. Raises what `Host.start` raises."""

    def __init__(
        self, properties: Mapping[str, str] | None = None, *, count: int = 1, data: Path | None = None, seed: int = 0
    ) -> None:
        super().__init__(name="rota", daemon=True)
        self._host = Host(properties, count=count, data=data, seed=seed)  # first: it refuses properties
        self._loop = asyncio.new_event_loop()
        self._commands = Commands(self._host)
        self.start()
        try:
            self._run(self._host.start())
        except BaseException:
            self._end()
            raise
        self.bootstrap_servers = self._host.bootstrap

    def call(self, command: str, **arguments: Any) -> Any:
        """Perform a command and return its result. Raises CommandRefused."""
        return self._run(self._commands.perform(command, arguments))

    def close(self) -> None:
        """Stop the brokers and the thread."""
        if self.is_alive():
            try:
                self._run(self._host.stop())
            finally:
                self._end()

    def run(self) -> None:
        """The thread: run the loop until `close`."""
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(COMMAND_S_MAX)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(STOP_S)
