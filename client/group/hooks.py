"""The hooks of a membership, which a consumer implements for changes of its partitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, assert_never

from rota.client.group import effects as out
from rota.client.group.effects import Partitions

BeforeLeaving = Callable[[], Awaitable[None]]  # the last commit


class Hooks(Protocol):
    """The hooks that a consumer implements. All run inside `Membership.poll` or `Membership.close`."""

    async def before_rejoin(self) -> None:
        """Do the automatic commit, before JoinGroup and before a revocation. Must not raise."""

    async def revoked(self, partitions: Partitions) -> None:
        """The partitions are still assigned and about to be revoked (on_revoked)."""

    async def lost(self, partitions: Partitions) -> None:
        """These are no longer ours: fenced, thrown out, or poll timeout (on_lost)."""

    async def assigned(self, owned: Partitions, added: Partitions) -> None:
        """The owned partitions and the added ones (on_assigned; called also with an empty `added`)."""


async def call_hook(hooks: Hooks, hook: out.Hook, before_leaving: BeforeLeaving | None) -> None:
    """Call the consumer's function for this hook and await it. Raises its exceptions."""
    match hook:
        case out.BeforeRejoin():
            await hooks.before_rejoin()
        case out.Revoke(partitions):
            await hooks.revoked(partitions)
        case out.Lose(partitions):
            await hooks.lost(partitions)
        case out.Assign(owned, added):
            await hooks.assigned(owned, added)
        case out.BeforeLeaving():
            if before_leaving is not None:
                await before_leaving()
        case _:
            assert_never(hook)
