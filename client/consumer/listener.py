"""The user's callbacks around a rebalance.

Laws
    Callbacks run one after the other, awaited: `on_revoked` ends before `on_assigned` begins.
    `on_lost` is `on_revoked` when none was given, as with Java's listeners.
    What a callback raises reaches the caller of the poll, unchanged; the partitions move all the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rota.client.types import TopicPartition

Partitions = tuple[TopicPartition, ...]
Callback = Callable[[Partitions], Awaitable[object] | object]  # an async function, or a plain one


@dataclass(frozen=True, slots=True)
class Listener:
    """What `subscribe` was given. A callback takes a tuple of TopicPartition; its result is awaited if it can be."""

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None

    async def assigned(self, partitions: Partitions) -> None:
        """Also with nothing: a rebalance that gives nothing has happened too."""
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
