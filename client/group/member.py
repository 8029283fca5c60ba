"""The shell of a membership: performs what the pure machine (machine.py) decides, on a Cluster.

Laws
    Partitions are given up and taken over only inside `poll` and `close`, never while the user works on records.
    Heartbeats run by themselves; nothing that the user awaits holds them up.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from rota.client.config import ConsumerConfig
from rota.client.group.assignors.base import Assignor
from rota.client.net.cluster import Cluster
from rota.client.types import GroupMetadata, TopicPartition

Partitions = tuple[TopicPartition, ...]


class Hooks(Protocol):
    """What the consumer does when its partitions change. All run inside `Member.poll` or `Member.close`."""

    async def before_rejoin(self) -> None:
        """Before JoinGroup, before anything is revoked: the place for the automatic commit. Must not raise."""

    async def revoked(self, partitions: Partitions) -> None:
        """These are still ours and about to be given up (on_revoked)."""

    async def lost(self, partitions: Partitions) -> None:
        """These are no longer ours: fenced, thrown out, or poll timeout (on_lost)."""

    async def assigned(self, owned: Partitions, added: Partitions) -> None:
        """What we own now, and which of it is new (on_assigned; called with an empty `added` too)."""


class Member:
    """One member of one group."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        hooks: Hooks,
        *,
        wake: Callable[[], None],
    ) -> None:
        """`wake()` is called when `poll` has something to do: the consumer may be waiting for records."""
        raise NotImplementedError

    @property
    def group(self) -> GroupMetadata:
        """For commits: generation -1 and no member id when there is no membership."""
        raise NotImplementedError

    @property
    def state(self) -> str:
        """The machine's state by name: see docs/CLIENT_STATES.md."""
        raise NotImplementedError

    @property
    def settled(self) -> bool:
        """Part of a generation, with nothing for `poll` to do."""
        raise NotImplementedError

    def subscribe(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        """Takes effect with the next `poll`. A pattern follows topics as they come and go."""
        raise NotImplementedError

    async def poll(self) -> None:
        """Note that the user lives (max.poll.interval.ms) and do what is due: discover, join, sync, revoke, assign.

        Returns at once when nothing is due. Otherwise waits until the member is part of a generation (the consumer
        puts a timeout around it). The work goes on in a task of its own: a cancelled `poll` loses nothing, the next one
        waits for the same work. Raises what makes membership impossible (FencedInstance, BrokerError, AssignmentFailed)
        and what user callbacks raised.
        """
        raise NotImplementedError

    def returning(self) -> None:
        """The user gets records now: max.poll.interval.ms counts from here."""
        raise NotImplementedError

    def stale(self, code: int) -> None:
        """A commit was refused with this code (22, 25, 27, 82): the machine draws its conclusions."""
        raise NotImplementedError

    async def close(self, reason: str, *, before_leaving: Callable[[], Awaitable[None]], timeout_ms: int) -> None:
        """Finish what is under way, run `before_leaving` (the last commit), revoke, send LeaveGroup with the reason.

        A static member (group_instance_id) does not leave (KIP-345). Never raises for a broker's sake.
        """
        raise NotImplementedError
