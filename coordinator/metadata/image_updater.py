"""Keeps the image of a cluster up to date: reads what a watch of the metadata store reports as changed.

Laws
    IM1 A change that another broker writes is in the image soon after. No change is missed, however many watches fire
        during a read: a part of the image that changes while it is read is read again.
    IM2 After a failure the part of the image that could not be read, and in every new session of the store the whole
        image, is read again.
    IM3 After `close` no watch and no session begins a read: the logs that a change would open are being closed.

There is one read at a time of each topic, of the brokers and of the controller; watches that fire meanwhile make one
more. Source: the watches of ZooKeeper fire once, and are set again by the read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog

from rota.coordinator.metadata import eager_tasks, znodes
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.repeated_warning import RepeatedWarning
from rota.coordinator.metadata.store import EventType, NoNode, StoreError, StoreFailed, WatchEvent
from rota.coordinator.metadata.topics import Topics

RETRY_SECONDS: Final = 0.5  # after a read that failed

log = structlog.get_logger("rota.metadata")


class ImageUpdater:
    """`Topics(watch=updater.changed)`, then `updater.follow(topics)`; `close` ends it."""

    def __init__(self) -> None:
        self._topics: Topics | None = None
        self._stale: dict[str, set[int]] = {}  # partitions whose state changed, by topic
        self._reads: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closed = False

    async def follow(self, topics: Topics) -> None:
        """Load the whole image and keep it up to date from now on. Raises StoreFailed."""
        self._topics = topics
        await topics.load()
        await self.refresh_brokers()
        await self._read_controller()

    async def close(self) -> None:
        """Stop reading."""
        self._closed = True
        reads = list(self._reads.values())
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)

    async def wait_until_applied(self) -> None:
        """Wait until nothing is being read."""
        while self._reads:
            await asyncio.wait(list(self._reads.values()))

    def changed(self, event: WatchEvent) -> None:
        """Read again what a watch reports as changed. The watch of every node that is read."""
        if self._topics is None or self._closed:
            return
        path = event.path
        if path == znodes.BROKER_IDS or path.startswith(znodes.BROKER_IDS + "/"):
            self._start("brokers", self.refresh_brokers)
        elif path == znodes.CONTROLLER:
            self._start("controller", self._read_controller)
        elif path == znodes.TOPICS:
            self._start("topics", self._read_names)
        elif kind := znodes.RESOURCE_CONFIGS.get(path):
            self._start(path, partial(self._image.configs.refresh_kind, kind))
        elif kind := znodes.RESOURCE_CONFIGS.get(path.rpartition("/")[0]):
            name = znodes.read_resource_name(path.rpartition("/")[2])
            self._start(path, partial(self._image.configs.refresh, kind, name))
        else:
            self._topic_changed(path, event.what)

    def session_began(self) -> None:
        """Read everything again: the store has a new session, without the watches of the old one."""
        if self._topics is not None and not self._closed:
            self._start("all", self._read_all)

    # ---- inside

    def _topic_changed(self, path: str, event_type: EventType) -> None:
        is_config = path.startswith(znodes.TOPIC_CONFIGS + "/")
        name, _, rest = path.removeprefix(znodes.TOPIC_CONFIGS if is_config else znodes.TOPICS)[1:].partition("/")
        stale = self._stale.setdefault(name, set())
        if rest and event_type is EventType.CHANGED:
            stale.add(int(rest.split("/")[1]))
        self._start(f"topic {name}", lambda: self._read_topic(name))

    async def _read_topic(self, name: str) -> None:
        stale = self._stale.pop(name, set())
        try:
            await self._image.refresh(name, stale)
        except Exception:
            self._stale.setdefault(name, set()).update(stale)
            raise

    async def _read_names(self) -> None:
        topics = self._image
        names = set(await topics.store.children(znodes.TOPICS, self.changed))
        await eager_tasks.gather(topics.refresh(name) for name in sorted(names ^ set(topics.names())))

    async def refresh_brokers(self) -> None:
        """Read the live brokers into the image. Raises StoreFailed."""
        store = self._image.store
        ids = [int(name) for name in await store.children(znodes.BROKER_IDS, self.changed) if name.isdecimal()]
        brokers = await eager_tasks.gather(self._read_broker(broker_id) for broker_id in ids)
        self._image.apply_brokers({broker.broker_id: broker for broker in brokers if broker is not None})

    async def _read_broker(self, broker_id: int) -> BrokerRegistration | None:
        try:
            data, stat = await self._image.store.get(znodes.broker_path(broker_id), self.changed)
            return znodes.read_broker(broker_id, data, stat.created)
        except NoNode:
            return None  # the watch on the children reports that, too
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            log.warning("Registration of a broker cannot be read", broker=broker_id, reason=repr(error))
            return None

    async def _read_controller(self) -> None:
        store, controller = self._image.store, None
        if await store.exists(znodes.CONTROLLER, self.changed) is not None:
            with suppress(NoNode):  # the watch reports that, too
                data, _ = await store.get(znodes.CONTROLLER, self.changed)
                with znodes.reading(znodes.CONTROLLER):
                    controller = znodes.read_controller(data)
        self._image.apply_controller(controller)

    async def _read_all(self) -> None:
        await self._image.refresh_all(keeps_unreadable=True)
        await self.refresh_brokers()
        await self._read_controller()

    @property
    def _image(self) -> Topics:
        assert self._topics is not None, "follow comes first"
        return self._topics

    def _start(self, key: str, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Read one part, now or, when it is being read, once more after that."""
        if key in self._reads:
            self._again.add(key)
        else:
            self._reads[key] = asyncio.get_running_loop().create_task(self._run(key, read))

    async def _run(self, key: str, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        failures = RepeatedWarning(log.bind(part=key), "Metadata could not be read; trying again")
        try:
            while True:
                self._again.discard(key)
                try:
                    await read()
                    failures.succeeded()
                except (StoreFailed, StoreError) as failure:
                    failures.failed(str(failure))
                    await self._wait_to_read_again(key)
                except Exception as mistake:  # noqa: BLE001  # one of who listens must not stop the image
                    failures.failed_by_mistake(mistake)
                    await self._wait_to_read_again(key)
                if key not in self._again:
                    return
        finally:
            del self._reads[key]

    async def _wait_to_read_again(self, key: str) -> None:
        self._again.add(key)
        await asyncio.sleep(RETRY_SECONDS)
