"""`/api/events`: sends browsers the names of changed things as server-sent events, so that they read only those again.

Laws
    WB7 An event names what changed; many changes between two events are one. A browser that does not read keeps one
        set of names waiting, and nothing else. At most STREAMS_MAX streams are open. Looking for changes takes at
        most LOOK_SHARE of the loop's time, in turns of LOOK_GROUPS.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Final

from rota.coordinator.web.broker_requests import ApiError
from rota.coordinator.web.site import Site

LOOK_SECONDS: Final = 0.5  # time between two checks for changes, while a browser is connected
LOOK_SHARE: Final = 0.05  # of the time that looks may take: with many groups there are fewer of them
LOOK_GROUPS: Final = 500  # looked at in one turn of the loop
COMMENT_SECONDS: Final = 15.0  # silence after which a comment shows that the stream is open
STREAMS_MAX: Final = 32
NAMES_MAX: Final = 200  # groups that an event names; for more it names none: everything may have changed

Seen = tuple[str | int, ...]  # what lists show of a group, and when its state began


class Stream:
    """The events that were not sent to one browser yet."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.wake = asyncio.Event()

    def add(self, names: set[str]) -> None:
        """Let the browser know."""
        self.names |= names
        self.wake.set()


class Events:
    """The streams of one broker."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._streams: set[Stream] = set()
        self._groups: dict[str, Seen] = {}
        self._looked_seconds = 0.0
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._changed: set[str] = set()
        site.node.topics.on_change(lambda _: self._changed.add("cluster") if self._streams else None)

    def open(self) -> Stream:
        """Begin to collect changes for one browser. Raises ApiError."""
        if len(self._streams) >= STREAMS_MAX or self._is_stopping:
            raise ApiError(503, f"at most {STREAMS_MAX} streams of events are open")
        stream = Stream()
        self._streams.add(stream)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        return stream

    async def read(self, stream: Stream) -> AsyncIterator[str]:
        """Iterate over the text of the stream until the server stops."""
        try:
            yield "retry: 2000\n\n"
            while not self._is_stopping:
                try:
                    async with asyncio.timeout(COMMENT_SECONDS):
                        await stream.wake.wait()
                except TimeoutError:
                    yield ": open\n\n"
                    continue
                names, stream.names = stream.names, set()
                stream.wake.clear()
                if names:
                    yield f"event: changed\ndata: {json.dumps(sorted(names))}\n\n"
        finally:
            self.close(stream)

    def close(self, stream: Stream) -> None:
        """Collect no more for this browser."""
        self._streams.discard(stream)
        if not self._streams and self._task is not None:
            self._task.cancel()
            self._task = None

    def stop(self) -> None:
        """End all streams."""
        self._is_stopping = True
        if self._task is not None:
            self._task.cancel()
        for stream in self._streams:
            stream.wake.set()

    async def _watch(self) -> None:
        await self._look()  # what there was before is no change
        while True:
            await asyncio.sleep(max(LOOK_SECONDS, self._looked_seconds / LOOK_SHARE))
            names = await self.changes()
            for stream in self._streams if names else ():
                stream.add(names)

    async def changes(self) -> set[str]:
        """Return the names of the objects that changed since the last call: `cluster`, `groups`, `group:ID`."""
        groups = await self._look()
        names, self._changed = self._changed, set()
        if groups:
            names |= {"groups"} if len(groups) > NAMES_MAX else {"groups", *(f"group:{each}" for each in groups)}
        return names

    async def _look(self) -> set[str]:
        """Return the groups that are not as they were at the last look."""
        before, found, changed = self._groups, dict[str, Seen](), set[str]()
        self._looked_seconds, began = 0.0, time.perf_counter()
        for number, group in enumerate(list(self._site.node.groups.machines()), 1):
            seen = found[group.group_id] = (*group.summary, group.state_ms)
            if before.get(group.group_id) != seen:
                changed.add(group.group_id)
            if not number % LOOK_GROUPS:
                self._looked_seconds += time.perf_counter() - began
                await asyncio.sleep(0)
                began = time.perf_counter()
        changed |= before.keys() - found.keys()
        self._groups = found
        self._looked_seconds += time.perf_counter() - began
        return changed
