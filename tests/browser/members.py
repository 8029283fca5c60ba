"""Real members of groups for the browser's tests: `rota.client` on an event loop in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, KafkaError, NewTopic, Producer, ProducerConfig

T = TypeVar("T")
SECONDS_MAX = 30


class Members:
    """Producers and members of groups of one broker."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._running: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the clients' loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS_MAX)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""

        async def create() -> None:
            async with Admin(AdminConfig(bootstrap_servers=self.address)) as admin:
                await admin.create_topics([NewTopic(topic, partitions)])

        self.run(create())

    def produce(self, topic: str, *values: bytes, key: bytes | None = b"k") -> None:
        """Write records."""

        async def produce() -> None:
            async with Producer(ProducerConfig(bootstrap_servers=self.address)) as producer:
                for value in values:
                    await producer.send(topic, value, key=key)

        self.run(produce())

    def join(self, group: str, name: str, topic: str, **settings: Any) -> None:
        """Let a member join; return when it has partitions."""

        async def join() -> None:
            ready, leaving = asyncio.Event(), asyncio.Event()
            work = self._loop.create_task(self._consume(group, name, topic, ready, leaving, settings))
            self._running[name] = work, leaving
            await ready.wait()

        self.run(join())

    def leave(self, name: str) -> None:
        """Let a member leave; return when it has left."""

        async def leave() -> None:
            work, leaving = self._running.pop(name)
            leaving.set()
            await work

        self.run(leave())

    def stop(self) -> None:
        """Let all members leave, and end the thread."""
        for name in list(self._running):
            self.leave(name)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS_MAX)
        self._loop.close()

    async def _consume(
        self, group: str, name: str, topic: str, ready: asyncio.Event, leaving: asyncio.Event, settings: dict[str, Any]
    ) -> None:
        fixed = {"bootstrap_servers": self.address, "group_id": group, "client_id": name}
        config = ConsumerConfig(**fixed, auto_offset_reset="earliest", **settings)
        async with Consumer(config) as consumer:
            consumer.subscribe([topic])
            while not leaving.is_set():
                await consumer.getmany(timeout_ms=50)
                if consumer.assignment:
                    ready.set()
            with suppress(KafkaError):  # a rebalance may have begun
                await consumer.commit({at: await consumer.position(at) for at in consumer.assignment})
