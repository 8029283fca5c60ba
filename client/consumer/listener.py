"""The user's callbacks around a rebalance.

Laws
    Callbacks run one after the other, awaited: `on_revoked` ends before `on_assigned` begins.
    `on_lost` is `on_revoked` when none was given, as with Java's listeners.
    An exception of a callback is raised by the poll, unchanged; the rebalance completes.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass

Partitions = tuple[TopicPartition, ...]
Callback = Callable[[Partitions], Awaitable[object] | object]  # an async function or a plain one


@dataclass(frozen=True, slots=True)
class Listener:
    """The callbacks of `subscribe`. A callback takes a tuple of TopicPartition; an awaitable result is awaited."""

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None

    async def assigned(self, partitions: Partitions) -> None:
        """Call `on_assigned`, also with no partitions, because the rebalance has happened."""
        await _call(self.on_assigned, partitions)

    async def revoked(self, partitions: Partitions) -> None:
        if partitions:
            await _call(self.on_revoked, partitions)

    async def lost(self, partitions: Partitions) -> None:
        if partitions:
            await _call(self.on_revoked if self.on_lost is None else self.on_lost, partitions)


async def _call(callback: Callback | None, partitions: Partitions) -> None:
    if callback is None:
        return
    result = callback(partitions)
    if inspect.isawaitable(result):
        await result
