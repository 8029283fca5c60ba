"""A broker for tests: in this process, in memory, on a free port, stopped when the block ends.

from rota.coordinator.testing import running_broker

@pytest.fixture(scope="session")
def bootstrap():
    with running_broker() as address:
        yield address                      # "127.0.0.1:43127"
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.presets import PRESETS

START_S, STOP_S = 30.0, 30.0
FREE_PORT = {"listeners": "PLAINTEXT://127.0.0.1:0"}


@contextmanager
def running_broker(properties: Mapping[str, str] | None = None, *, data: Path | None = None) -> Iterator[str]:
    """HOST:PORT of a broker with the `dev` preset, `properties` (Kafka's names) on top.

    `data` keeps its logs in that folder instead of in memory. Raises what the broker raises when it cannot start.
    """
    config = BrokerConfig({**PRESETS["dev"], **FREE_PORT, **(properties or {})})
    if data is not None:
        config = config.changed({"log.dirs": str(data)})
    served = _BrokerThread(config, memory=data is None)
    served.start()
    try:
        yield served.address()
    finally:
        served.stop()


class _BrokerThread(threading.Thread):
    """Runs the broker in a thread and an event loop of its own, so that the caller may block."""

    def __init__(self, config: BrokerConfig, *, memory: bool) -> None:
        super().__init__(name="rota", daemon=True)
        self._broker = Broker(config, memory=memory)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def address(self) -> str:
        """Return HOST:PORT once the broker listens. Raises TimeoutError, and what `Broker.start` raises."""
        if not self._ready.wait(START_S):
            raise TimeoutError("the broker did not start")
        if self._failure is not None:
            raise self._failure
        host, port = self._broker.address
        return f"{host}:{port}"

    def stop(self) -> None:
        """Stop the broker gracefully, as SIGTERM does."""
        if self._loop is not None and self._stopping is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self.join(STOP_S)

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self._broker.start()
        except BaseException as failure:  # noqa: BLE001  # `address` raises it in the caller's thread
            self._failure = failure
            return
        finally:
            self._ready.set()
        await self._stopping.wait()
        await self._broker.stop()
