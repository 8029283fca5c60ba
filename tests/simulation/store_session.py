"""A session with the shared metadata store over a network: requests, answers and watches take their time.

As with ZooKeeper, requests of a session take effect in their order, and a watch that has fired is told before anything
newer can be read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import Any

from tests.simulation.loop import SimLoop

from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import Op, OutcomeUnknown, StoreFailed, Watch, WatchEvent
from rota.coordinator.metadata.tree import Fact, Tree
from rota.coordinator.metadata.tree_session import TreeSession


class StoreSession(TreeSession):
    """Create it in the context of its process: there its watches are called, whoever has changed the tree."""

    commits_take_time = False  # reads always do

    def __init__(self, shared: SharedTree, loop: SimLoop) -> None:
        self._loop, self.context = loop, copy_context()
        self._arriving: deque[tuple[Watch, WatchEvent]] = deque()
        self._free_at = 0.0
        self._commits_left: int | None = None
        self.expired_within = 0
        super().__init__(shared)

    def do(self, call: Callable[[], None]) -> None:
        """Call one of the faults as if the network had done it."""
        self.context.copy().run(call)

    async def perform(self, work: Coroutine[Any, Any, None]) -> None:
        """The same for one that takes time. A process that has crashed meanwhile does not hear of it."""
        task = self._loop.create_task(work, context=self.context.copy())
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def _tree(self) -> Tree:
        await self._travel()
        return await super()._tree()

    async def apply(self, ops: Sequence[Op]) -> list[Fact]:
        if not self.commits_take_time:
            return await super().apply(ops)
        session = self.session_id
        await self._travel()
        if session != self.session_id:
            raise StoreFailed("the session has expired")
        facts = await super().apply(ops)
        await self._count_commit()
        await self._travel()
        if session != self.session_id:
            raise OutcomeUnknown("the session has expired before the answer came")
        return facts

    def expire_after(self, commits: int | None) -> None:
        """End the session after so many more commits, before the answer to the last of them; None: do not."""
        self._commits_left, self.expired_within = commits, 0

    async def _count_commit(self) -> None:
        if self._commits_left is None:
            return
        self._commits_left -= 1
        if self._commits_left == 0:
            self._commits_left = None
            self.expired_within += 1
            await self.perform(self.expire())

    async def _travel(self) -> None:
        now = self._loop.time()
        self._free_at = max(self._free_at + 1e-6, now + self._loop.network.delay())
        await asyncio.sleep(self._free_at - now)

    def _deliver(self, watch: Watch, event: WatchEvent) -> None:
        if self._held_events is not None:
            self._held_events.append((watch, event))
            return
        self._arriving.append((watch, event))
        self._loop.call_later(self._loop.network.delay(), self._arrive, context=self.context.copy())

    def _arrive(self) -> None:
        if self._held_events is None and self._arriving:
            watch, event = self._arriving.popleft()
            watch(event)

    def _call_held(self) -> None:
        while self._arriving:
            watch, event = self._arriving.popleft()
            watch(event)
        super()._call_held()
