"""The clients of a Python worker: a task hands its client to the next one, which connects to no broker again.

Spark reuses its Python workers (`spark.python.worker.reuse`), each of which runs one task at a time.

Laws
    A client serves one task at a time, with the settings for which it was made. Its metadata are read again for each
    task: the topic may have been deleted and created again.
    A client whose task failed or was cancelled is closed.
    At most IDLE_CLIENTS_MAX clients wait for a task, each for IDLE_CLOSE_S at most. No thread runs while none waits.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from rota.client.config import ConsumerConfig
from rota.client.consumer.reader import PartitionReader
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import Metadata

T = TypeVar("T")
IDLE_CLIENTS_MAX: Final = 2
IDLE_CLOSE_S: Final = 60.0


class TaskReader(PartitionReader):
    """A PartitionReader that outlives a task."""

    async def refresh(self, topic: str) -> None:
        """Read the metadata again, for this topic alone. Raises TimedOut, Unreachable."""
        self._topics = {topic}
        self._cluster.set_topics(self._topics)
        await refreshed(self._cluster)


class SharedReader(PartitionReader):
    """A PartitionReader on a client that is connected and has the metadata of these topics. It is not closed."""

    def __init__(self, config: ConsumerConfig, cluster: Cluster, topics: Iterable[str]) -> None:
        super().__init__(config, isolation_level=config.isolation_level)
        self._cluster, self._topics = cluster, set(topics)


class TaskClient:
    """A reader with the event loop that it runs on. `settings` are the client's settings by Kafka's names."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)
        self.config = ConsumerConfig.from_properties(self.settings)
        self.idle_since_s = 0.0
        self._runner = asyncio.Runner()
        self._reader: TaskReader | None = None

    def reader(self, topic: str) -> TaskReader:
        """The connected reader, with new metadata of the topic. Raises KafkaError."""
        if self._reader is None:
            self._reader = self.run(_connected(self.config))
        else:
            self.run(self._reader.refresh(topic))
        return self._reader

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine."""
        return self._runner.run(call)

    def close(self) -> None:
        """Close the connections and the loop."""
        reader, self._reader = self._reader, None
        with self._runner:
            if reader is not None:
                self.run(reader.__aexit__(None, None, None))


class ClientPool:
    """The idle clients of this process. Closes them from a thread of its own."""

    def __init__(self, idle_close_s: float = IDLE_CLOSE_S) -> None:
        self._idle_close_s = idle_close_s
        self._idle: list[TaskClient] = []
        self._changed = threading.Condition()
        self._closer: threading.Thread | None = None

    @contextmanager
    def client(self, settings: Mapping[str, str]) -> Iterator[TaskClient]:
        """A client for a task: an idle one with these settings, else a new one. Raises ConfigError."""
        client = self._take(settings) or TaskClient(settings)
        try:
            yield client
        except BaseException:
            client.close()
            raise
        self._give_back(client)

    def close(self) -> None:
        """Close the idle clients."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for client in idle:
            client.close()

    @property
    def idle_count(self) -> int:
        """The number of clients that wait for a task."""
        return len(self._idle)

    def _take(self, settings: Mapping[str, str]) -> TaskClient | None:
        with self._changed:
            found = next((client for client in self._idle if client.settings == settings), None)
            if found is not None:
                self._idle.remove(found)
                self._changed.notify_all()
            return found

    def _give_back(self, client: TaskClient) -> None:
        client.idle_since_s = time.monotonic()
        with self._changed:
            self._idle.append(client)
            surplus = self._idle[:-IDLE_CLIENTS_MAX]
            del self._idle[:-IDLE_CLIENTS_MAX]
            if self._closer is None:
                self._closer = threading.Thread(target=self._close_idle, name="rota-idle-clients", daemon=True)
                self._closer.start()
        for old in surplus:
            old.close()

    def _close_idle(self) -> None:
        """Close the clients that have waited for too long, until none waits."""
        while True:
            with self._changed:
                if not self._idle:
                    self._closer = None
                    return
                wait_s = self._idle[0].idle_since_s + self._idle_close_s - time.monotonic()
                expired = self._idle.pop(0) if wait_s <= 0 else None
                if expired is None:
                    self._changed.wait(wait_s)
            if expired is not None:
                expired.close()


POOL: Final = ClientPool()


async def _connected(config: ConsumerConfig) -> TaskReader:
    reader = TaskReader(config, isolation_level=config.isolation_level)
    return await reader.__aenter__()


async def refreshed(cluster: Cluster) -> Metadata:
    """Metadata from a request that is sent now, also when the brokers come back only later. Raises TimedOut,
    Unreachable."""
    before = iter((None,))
    return await cluster.until(lambda metadata: next(before, metadata), what="reading metadata")
