"""Keeps metadata up to date: requests it on demand, when it is older than metadata_max_age_ms, and when it is stale.

Laws
    One request at a time. A caller of `refresh` during a request gets the answer to the next one, which names the
    caller's topics.
    The interval between background reads grows while nothing changes and after failures. NC12: those who wait for a
    change share these reads, however many they are.
    A failed request raises in the callers that wait for it; without a caller it is repeated in the background.
    A request that may create topics names no topic that must not be created: it is sent beside the one for the others.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rota.client.config import ClientConfig
from rota.client.errors import KafkaError, Unreachable
from rota.client.log import logger
from rota.client.network.backoff import wait_ms
from rota.client.network.metadata import Metadata, updated_from
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from rota.transport.connection import copied
from rota.transport.shielded import shielded

SendMetadataRequest = Callable[[MetadataRequest], Awaitable[MetadataResponse]]
AutoCreate = bool | Callable[[], Collection[str]]  # for all topics; or the names of those that a request may create
Waiting = tuple[asyncio.Future[Metadata] | None, ...]
_log = logger("rota.client.cluster")


class MetadataUpdater:
    """`run()` is the task that sends requests; the other methods say when and for which topics."""

    def __init__(self, config: ClientConfig, send_request: SendMetadataRequest, auto_create: AutoCreate) -> None:
        self.metadata = Metadata()
        self._config = config
        self._send_request = send_request
        self._auto_create = auto_create
        self._loop = asyncio.get_running_loop()
        self._topics: frozenset[str] | None = frozenset()
        self._temporary_topics: Counter[str] = Counter()
        self._next: asyncio.Future[Metadata] | None = None  # resolved by the next answer, which is requested at once
        self._later: asyncio.Future[Metadata] | None = None  # as well, when it comes
        self._wake = asyncio.Event()
        self._is_stale = False
        self._unchanged = 0  # consecutive background answers that changed nothing
        self._tried_at = self._loop.time()
        self._pause = 0.0
        self._listeners: list[Callable[[Metadata], None]] = []
        self._on_responses: list[Callable[[Metadata], None]] = []
        self._closed: KafkaError | None = None

    def set_topics(self, topics: Iterable[str] | None) -> None:
        """Set the topics whose metadata is requested from now on; None: all topics."""
        self._topics = None if topics is None else frozenset(topics)

    @contextmanager
    def with_topics(self, topics: Iterable[str]) -> Iterator[None]:
        """Read metadata of these topics too, until the context ends."""
        names = tuple(topics)
        self._temporary_topics.update(names)
        try:
            yield
        finally:
            self._temporary_topics.subtract(names)
            self._temporary_topics = +self._temporary_topics

    def on_change(self, listener: Callable[[Metadata], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def on_response(self, listener: Callable[[Metadata], None]) -> None:
        """Call `listener` after each response, also when it has changed nothing."""
        self._on_responses.append(listener)

    def request_refresh(self) -> None:
        """Read metadata soon, in the background, after the backoff."""
        if not self._is_stale and self._loop.time() - self._tried_at > self._config.retry_backoff_max_ms / 1000:
            self._unchanged, self._pause = 0, 0.0
        self._is_stale = True
        self._wake.set()

    async def refresh(self) -> Metadata:
        """Request metadata and return it. Raises Unreachable."""
        self._next = self._next or self._loop.create_future()
        return await self._answered(self._next)

    async def next_response(self) -> Metadata:
        """Return the metadata of the next response, which is requested in the background, after the backoff. Raises
        Unreachable."""
        self._later = self._later or self._loop.create_future()
        self.request_refresh()
        return await self._answered(self._later)

    async def _answered(self, response: asyncio.Future[Metadata]) -> Metadata:
        if self._closed is not None:
            raise copied(self._closed)
        self._wake.set()
        try:
            return await shielded(response)
        except KafkaError as failure:
            raise copied(failure) from failure.__cause__

    async def run(self) -> None:
        """Request metadata whenever it is due, until cancelled."""
        while True:
            await self._wait_until_due()
            await self._read()

    def replace(self, metadata: Metadata) -> None:
        """Set the metadata and call the listeners when its version changed."""
        changed = metadata.version != self.metadata.version
        self.metadata = metadata
        if changed:
            self._unchanged = 0
            for listener in tuple(self._listeners):
                _notify(listener, metadata)

    def close(self) -> None:
        """Fail the callers of `refresh`, now and later, with Unreachable."""
        self._closed = Unreachable("the client was closed")
        _fail((self._next, self._later), self._closed)

    # ---- when to read

    async def _wait_until_due(self) -> None:
        """Return when a request is due."""
        while (remaining := self._due() - self._loop.time()) > 0:
            self._wake.clear()
            try:
                async with asyncio.timeout(remaining):
                    await self._wake.wait()
            except TimeoutError:
                return

    def _due(self) -> float:
        if self._next is not None:
            return 0.0
        if self._is_stale:
            return self._tried_at + self._pause
        return self._tried_at + max(self._config.metadata_max_age_ms, self._config.retry_backoff_ms) / 1000

    # ---- one request

    async def _read(self) -> None:
        waiting = self._next, self._later
        self._next = self._later = None
        self._is_stale = False
        self._tried_at = self._loop.time()
        self._unchanged += 1
        try:
            self.replace(updated_from(self.metadata, await self._answer(), self._loop.time()))
            for listener in self._on_responses:
                _notify(listener, self.metadata)
        except KafkaError as why:
            _log.debug("metadata could not be read", reason=str(why))
            self._failed(waiting, why)
        except Exception as why:  # noqa: BLE001  # a bug: the callers get it, and the next response may be readable
            _log.error("metadata could not be processed", exc_info=why)
            self._failed(waiting, Unreachable(f"metadata could not be processed: {type(why).__name__}: {why}"))
        except BaseException:
            _fail(waiting, Unreachable("the client was closed"))
            raise
        else:
            for each in waiting:
                if each is not None and not each.done():
                    each.set_result(self.metadata)
        config = self._config
        pause = wait_ms(max(self._unchanged, 1), config.retry_backoff_ms, config.retry_backoff_max_ms, random.random())
        self._pause = pause / 1000

    def _failed(self, waiting: Waiting, why: KafkaError) -> None:
        self._is_stale = self._is_stale or waiting[0] is None
        _fail(waiting, why)

    async def _answer(self) -> MetadataResponse:
        """Return the response for all topics, merged if two requests are needed."""
        first, *others = self._requests()
        answer = await self._send_request(first)
        for request in others:
            newer = await self._send_request(request)
            answer = replace(newer, topics=(*answer.topics, *newer.topics))
        return answer

    def _requests(self) -> list[MetadataRequest]:
        to_create = self._auto_create() if callable(self._auto_create) else None
        if self._topics is None:
            return [MetadataRequest(topics=None, allow_auto_topic_creation=self._auto_create is True)]
        names = self._topics.union(self._temporary_topics)
        if to_create is None:
            return [_request(names, self._auto_create is True)]
        new = names.intersection(to_create)
        requests = [_request(names - new, False)] if names - new or not new else []
        return [*requests, _request(new, True)] if new else requests


def _request(names: Iterable[str], auto_create: bool) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=name) for name in sorted(names))
    return MetadataRequest(topics=topics, allow_auto_topic_creation=auto_create)


def _fail(waiting: Waiting, why: KafkaError) -> None:
    for each in waiting:
        if each is not None and not each.done():
            each.set_exception(why)
            each.exception()  # there may be no caller left to retrieve it


def _notify(listener: Callable[[Metadata], None], metadata: Metadata) -> None:
    try:
        listener(metadata)
    except Exception as why:  # noqa: BLE001  # the listener's own error; the other listeners still run
        _log.error("a listener of the metadata failed", exc_info=why)
