"""Metadata kept up to date: read when somebody needs it, when it is old, and when it proved wrong.

Laws
    One request at a time. Who asks while one is under way gets the answer to the next, which knows of their topics.
    What is read in the background keeps a growing distance while nothing changes, and after failures.
    A failed request is told to those who waited for it, and repeated in the background when nobody did.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from rota.client.config import ClientConfig
from rota.client.errors import KafkaError, Unreachable
from rota.client.log import logger
from rota.client.network.backoff import wait_ms
from rota.client.network.connection import copied
from rota.client.network.metadata import Metadata, learned
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

Ask = Callable[[MetadataRequest], Awaitable[MetadataResponse]]
_log = logger("rota.client.cluster")


class News:
    """`run()` is the task that reads; everything else tells it when."""

    def __init__(self, config: ClientConfig, ask: Ask, auto_create: bool) -> None:
        self.metadata = Metadata()
        self._config = config
        self._ask = ask
        self._auto_create = auto_create
        self._loop = asyncio.get_running_loop()
        self._topics: frozenset[str] | None = frozenset()
        self._for_a_while: Counter[str] = Counter()
        self._next: asyncio.Future[Metadata] | None = None  # for whoever waits for the next answer
        self._kick = asyncio.Event()
        self._is_stale = False
        self._in_vain = 0  # background answers in a row that changed nothing
        self._tried_at = self._loop.time()
        self._pause = 0.0
        self._listeners: list[Callable[[Metadata], None]] = []
        self._closed: KafkaError | None = None

    def want(self, topics: Iterable[str] | None) -> None:
        """Whose metadata is read from now on; None: everybody's."""
        self._topics = None if topics is None else frozenset(topics)

    @contextmanager
    def also(self, topics: Iterable[str]) -> Iterator[None]:
        """These topics too, as long as it lasts."""
        names = tuple(topics)
        self._for_a_while.update(names)
        try:
            yield
        finally:
            self._for_a_while.subtract(names)
            self._for_a_while = +self._for_a_while

    def on_change(self, told: Callable[[Metadata], None]) -> Callable[[], None]:
        self._listeners.append(told)
        return lambda: self._listeners.remove(told) if told in self._listeners else None

    def stale(self) -> None:
        """Read soon, and not too often."""
        if not self._is_stale and self._loop.time() - self._tried_at > self._config.retry_backoff_max_ms / 1000:
            self._in_vain, self._pause = 0, 0.0
        self._is_stale = True
        self._kick.set()

    async def refresh(self) -> Metadata:
        """The next answer. Raises Unreachable."""
        if self._closed is not None:
            raise copied(self._closed)
        if self._next is None:
            self._next = self._loop.create_future()
        self._kick.set()
        try:
            return await asyncio.shield(self._next)
        except KafkaError as failure:
            raise copied(failure) from failure.__cause__

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._reason()
            await self._round()

    def take(self, metadata: Metadata) -> None:
        """This is known now."""
        changed = metadata.version != self.metadata.version
        self.metadata = metadata
        if changed:
            self._in_vain = 0
            for told in tuple(self._listeners):
                _tell(told, metadata)

    def close(self) -> None:
        """Nothing more comes; tell who waits."""
        self._closed = Unreachable("the client was closed")
        _fail(self._next, self._closed)

    # ---- when

    async def _reason(self) -> None:
        """Until there is a reason to ask."""
        while (left := self._due() - self._loop.time()) > 0:
            self._kick.clear()
            try:
                async with asyncio.timeout(left):
                    await self._kick.wait()
            except TimeoutError:
                return

    def _due(self) -> float:
        if self._next is not None:
            return 0.0
        if self._is_stale:
            return self._tried_at + self._pause
        return self._tried_at + max(self._config.metadata_max_age_ms, self._config.retry_backoff_ms) / 1000

    # ---- what

    async def _round(self) -> None:
        waiting, self._next = self._next, None
        self._is_stale = False
        self._tried_at = self._loop.time()
        self._in_vain += 1
        try:
            self.take(learned(self.metadata, await self._ask(self._request()), self._loop.time()))
        except KafkaError as why:
            _log.debug("metadata could not be read", reason=str(why))
            self._failed(waiting, why)
        except Exception as why:  # noqa: BLE001  # our own mistake: whoever waits is told, and the next answer may do
            _log.error("metadata could not be taken over", exc_info=why)
            self._failed(waiting, Unreachable(f"metadata could not be taken over: {type(why).__name__}: {why}"))
        except BaseException:
            _fail(waiting, Unreachable("the client was closed"))
            raise
        else:
            if waiting is not None and not waiting.done():
                waiting.set_result(self.metadata)
        config = self._config
        pause = wait_ms(max(self._in_vain, 1), config.retry_backoff_ms, config.retry_backoff_max_ms, random.random())
        self._pause = pause / 1000

    def _failed(self, waiting: asyncio.Future[Metadata] | None, why: KafkaError) -> None:
        self._is_stale = self._is_stale or waiting is None
        _fail(waiting, why)

    def _request(self) -> MetadataRequest:
        wanted = self._topics
        names = None if wanted is None else sorted(wanted.union(self._for_a_while))
        topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        return MetadataRequest(topics=topics, allow_auto_topic_creation=self._auto_create)


def _fail(waiting: asyncio.Future[Metadata] | None, why: KafkaError) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_exception(why)
        waiting.exception()  # nobody may be left who waits


def _tell(told: Callable[[Metadata], None], metadata: Metadata) -> None:
    try:
        told(metadata)
    except Exception as why:  # noqa: BLE001  # theirs; the others are told all the same
        _log.error("a listener of the metadata failed", exc_info=why)
