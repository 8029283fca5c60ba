"""Metadata kept up to date: asked for when somebody needs it, when it is old, and when it proved wrong.

Laws
    One request at a time. Who asks while one is under way gets the answer to the next, which knows their topics.
    A failed request is told to those who waited for it; the next one comes after a backoff.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable

from rota.client.config import ClientConfig
from rota.client.errors import KafkaError, TimedOut
from rota.client.log import logger
from rota.client.net.backoff import wait_ms
from rota.client.net.metadata import Metadata, learned
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

Ask = Callable[[MetadataRequest], Awaitable[MetadataResponse]]
_log = logger("rota.client.cluster")


class News:
    """`run()` is the task that asks; the rest tells it when."""

    def __init__(self, config: ClientConfig, ask: Ask, auto_create: bool) -> None:
        self.metadata = Metadata()
        self._config = config
        self._ask = ask
        self._auto_create = auto_create
        self._loop = asyncio.get_running_loop()
        self._topics: tuple[str, ...] | None = ()
        self._next: asyncio.Future[Metadata] | None = None  # for whoever waits for the next answer
        self._kick = asyncio.Event()
        self._is_stale = False
        self._stales = 0  # in a row
        self._told: list[Callable[[Metadata], None]] = []

    def want(self, topics: Iterable[str] | None) -> None:
        self._topics = None if topics is None else tuple(sorted(set(topics)))

    def on_change(self, told: Callable[[Metadata], None]) -> Callable[[], None]:
        self._told.append(told)
        return lambda: self._told.remove(told) if told in self._told else None

    def stale(self) -> None:
        self._is_stale = True
        self._kick.set()

    async def refresh(self) -> Metadata:
        if self._next is None:
            self._next = self._loop.create_future()
            self._next.add_done_callback(_retrieve)
        self._kick.set()
        return await asyncio.shield(self._next)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._wait()
            waiting, self._next = self._next, None
            if waiting is None and self._is_stale:
                self._stales += 1
            self._is_stale = False
            self._kick.clear()
            try:
                metadata = await self._read()
            except KafkaError as why:
                _log.debug("could not read metadata", error=str(why))
                if waiting is not None and not waiting.done():
                    waiting.set_exception(why)
                else:
                    self.stale()
                continue
            if waiting is not None and not waiting.done():
                waiting.set_result(metadata)

    def close(self, why: KafkaError) -> None:
        """Nothing more comes; tell who waits."""
        if self._next is not None and not self._next.done():
            self._next.set_exception(why)

    async def _wait(self) -> None:
        """Until there is a reason to ask."""
        config = self._config
        while self._next is None and not self._is_stale:
            left = self.metadata.at + config.metadata_max_age_ms / 1000 - self._loop.time()
            try:
                async with asyncio.timeout(max(left, config.retry_backoff_ms / 1000)):
                    await self._kick.wait()
            except TimeoutError:
                return
            self._kick.clear()
        if self._next is None:  # nobody waits: not too often
            failures = max(self._stales, 1)
            pause = wait_ms(failures, config.retry_backoff_ms, config.retry_backoff_max_ms, random.random()) / 1000
            try:
                async with asyncio.timeout(max(self.metadata.at + pause - self._loop.time(), 0)):
                    while self._next is None:
                        self._kick.clear()
                        await self._kick.wait()
            except TimeoutError:
                pass

    async def _read(self) -> Metadata:
        wanted = self._topics
        topics = None if wanted is None else tuple(MetadataRequestTopic(name=name) for name in wanted)
        answer = await self._ask(MetadataRequest(topics=topics, allow_auto_topic_creation=self._auto_create))
        self.take(learned(self.metadata, answer, self._loop.time()))
        return self.metadata

    def take(self, metadata: Metadata) -> None:
        """This is known now."""
        changed = metadata.version != self.metadata.version
        self.metadata = metadata
        if changed:
            self._stales = 0
            for told in tuple(self._told):
                told(metadata)


def _retrieve(future: asyncio.Future[Metadata]) -> None:
    if not future.cancelled():
        future.exception()


__all__ = ["News", "TimedOut"]
