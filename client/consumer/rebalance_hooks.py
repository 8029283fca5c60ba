"""What a consumer does when its partitions change: the hooks that its membership calls, within a poll or `close`.

Laws
    C1: before partitions are revoked, the records of them that the user was given are committed (with automatic
    commits), also those that a cooperative member was given while it joined.
    While `on_revoked` runs the partitions can still be committed; afterwards they have no position and no record.
    When `on_assigned` runs they can be sought; none of their records was fetched before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from rota.client.consumer.delivered_records import DeliveredRecords
from rota.client.consumer.listener import Listener, Partitions
from rota.client.consumer.positions import Positions


class Committer(Protocol):
    """The automatic commits around a rebalance; each waits no longer than a rebalance may."""

    async def commit_before_rejoin(self) -> None: ...

    async def commit_before_revoking(self) -> None: ...

    async def wait_until_answered(self) -> None: ...


class RebalanceHooks:
    """`rota.client.group.hooks.Hooks`. `listener` has the subscription's callbacks; `changed()` is called when
    there may be something to fetch, or a position to look up."""

    def __init__(
        self, positions: Positions, delivered: DeliveredRecords, committer: Committer, changed: Callable[[], None]
    ) -> None:
        self._positions, self._delivered, self._committer, self._changed = positions, delivered, committer, changed
        self.listener = Listener()
        self._task: asyncio.Task[Any] | None = None  # that runs a callback now

    @property
    def is_called_by_current_task(self) -> bool:
        """Whether the current task runs a callback of the user."""
        return self._task is not None and self._task is asyncio.current_task()

    async def before_rejoin(self) -> None:
        """Do the automatic commit before JoinGroup."""
        await self._committer.commit_before_rejoin()

    async def revoked(self, partitions: Partitions) -> None:
        """The partitions are still ours: commit, call the user, then drop them."""
        try:
            await self._committer.commit_before_revoking()
            await self._call(self.listener.revoked(partitions))
            await self._committer.wait_until_answered()
        finally:
            self._drop(partitions)

    async def lost(self, partitions: Partitions) -> None:
        """The partitions are no longer ours: commit nothing, call the user, drop them."""
        self._delivered.forget(partitions)
        try:
            await self._call(self.listener.lost(partitions))
        finally:
            self._drop(partitions)

    async def assigned(self, owned: Partitions, added: Partitions) -> None:
        """The partitions are ours now: the user may seek before anything is read."""
        self._delivered.forget(self._positions.assigned - set(owned))
        self._positions.assign(owned)
        self._changed()
        await self._call(self.listener.assigned(added))

    async def _call(self, callback: Awaitable[None]) -> None:
        self._task = asyncio.current_task()
        try:
            await callback
        finally:
            self._task = None

    def _drop(self, partitions: Partitions) -> None:
        self._delivered.forget(partitions)
        self._positions.drop(partitions)
        self._changed()
