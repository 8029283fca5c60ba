"""What a consumer does when its partitions change: the hooks that its member calls, within a poll or the end.

Laws
    C1: before partitions go, what the user was handed of them is committed, if the consumer commits by itself, also
    what a cooperative member was handed while it joined.
    While `on_revoked` runs the partitions are still there to be committed and asked about; afterwards nothing of them
    is left: no position, no record that waits.
    When `on_assigned` runs they are there to be sought; nothing of them was fetched before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from rota.client.consumer.delivered_records import Handed
from rota.client.consumer.listener import Listener, Partitions
from rota.client.consumer.positions import Positions


@dataclass(frozen=True, slots=True)
class Committer:
    """What a consumer does with offsets around a rebalance; each waits no longer than a rebalance may."""

    before_rejoin: Callable[[], Awaitable[None]]
    before_revoking: Callable[[], Awaitable[None]]
    settle: Callable[[], Awaitable[None]]  # what is under way


class Rebalancing:
    """`rota.client.group.member.Hooks`. `listener` is the subscription's; `changed` is called when there may be
    something to fetch or to find."""

    def __init__(self, positions: Positions, handed: Handed, committer: Committer, changed: Callable[[], None]) -> None:
        self._positions, self._handed, self._committer, self._changed = positions, handed, committer, changed
        self.listener = Listener()
        self.task: asyncio.Task[Any] | None = None  # that runs a callback now

    async def before_rejoin(self) -> None:
        """Before JoinGroup: the automatic commit."""
        await self._committer.before_rejoin()

    async def revoked(self, partitions: Partitions) -> None:
        """Still ours: the user is told, then they go."""
        try:
            await self._committer.before_revoking()
            await self._call(self.listener.revoked(partitions))
            await self._committer.settle()
        finally:
            self._drop(partitions)

    async def lost(self, partitions: Partitions) -> None:
        """No longer ours: nothing of them may be committed, the user is told."""
        self._handed.forget(partitions)
        try:
            await self._call(self.listener.lost(partitions))
        finally:
            self._drop(partitions)

    async def assigned(self, owned: Partitions, added: Partitions) -> None:
        """Ours now: the user may seek before anything is read."""
        self._handed.forget(self._positions.assigned - set(owned))
        self._positions.assign(owned)
        self._changed()
        await self._call(self.listener.assigned(added))

    async def _call(self, callback: Awaitable[None]) -> None:
        self.task = asyncio.current_task()
        try:
            await callback
        finally:
            self.task = None

    def _drop(self, partitions: Partitions) -> None:
        self._handed.forget(partitions)
        self._positions.drop(partitions)
        self._changed()
