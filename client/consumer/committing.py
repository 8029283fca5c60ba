"""Committing: what the user asks for, and what the consumer does by itself.

The part of `Consumer` that knows the group and nothing of polling: reading.py has what knows no group, consumer.py the
rest.

Laws
    Without a group nothing is committed; without a membership nothing is committed for what a group assigned.
    C1: what commits by itself asks `_committable`, which never passes what the user is done with.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Final

from rota.client.config import ConsumerConfig
from rota.client.consumer.commits import Commits, now_ms
from rota.client.consumer.delivered_records import Committable
from rota.client.consumer.reading import Reading, Several
from rota.client.errors import ConfigError, IllegalUse, RebalanceInProgress
from rota.client.group.member import Member
from rota.client.offsets.offset_errors import commit_failed
from rota.client.offsets.offset_fetch import committed
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode

Offsets = Mapping[TopicPartition, "int | OffsetAndMetadata"]
_STALE: Final[dict[int, int]] = {  # what newer brokers say, in the words that a member knows
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.STALE_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION,
}

JOINING: Final = ("DISCOVERING", "JOINING", "SYNCING")


class Committing(Reading):
    """`group`, `commit`, `commit_soon`, `committed`."""

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self._commits = Commits(self._cluster, config, self._commit_refused, self._notice)
        self._committable: Callable[[], Committable] = self._handed.done
        self._member: Member | None = None
        self._topics: frozenset[str] | re.Pattern[str] | None = None  # that are subscribed to

    @property
    def state(self) -> str:
        """For messages."""
        raise NotImplementedError

    @property
    def group(self) -> GroupMetadata:
        """The membership as commits carry it. Raises ConfigError without a group_id."""
        config = self._config
        if config.group_id is None:
            raise ConfigError("this consumer has no group, so nothing can be committed: set group_id (group.id)")
        if self._member is not None:
            return self._member.group
        return GroupMetadata(config.group_id, group_instance_id=config.group_instance_id)

    async def commit(self, offsets: Offsets | None = None, *, timeout_ms: int | None = None) -> None:
        """Commit these offsets, each the next one to read, or (None) everything that was handed out. Raises
        CommitFailed and RebalanceInProgress after a rebalance, FencedInstance, BrokerError, TimedOut, ConfigError
        without a group."""
        group, several = self._commits_of(offsets)
        await self._commits.commit(group, several, timeout_ms)

    def commit_soon(self, offsets: Offsets | None = None) -> asyncio.Task[None]:
        """The same without waiting: a task that may be awaited. Commits keep their order; what fails and is not awaited
        is logged."""
        group, several = self._commits_of(offsets)
        task = self._commits.soon(group, several)
        task.add_done_callback(self._commits.tell_failure)
        return task

    async def committed(
        self, partitions: Several | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these (None: the assigned ones); None where nothing is."""
        self._started()
        return await committed(self._cluster, self.group, self._chosen(partitions), timeout_ms=timeout_ms)

    def _commits_of(self, offsets: Offsets | None) -> tuple[GroupMetadata, Committable]:
        """In whose name, and what. Raises CommitFailed when there is no membership to speak for."""
        self._started()
        group = self.group
        several = self._committable() if offsets is None else _committable(offsets)
        if several and self._topics is not None and group.generation_id < 0:
            raise commit_failed(group, several, f"it has not joined or was thrown out; state {self.state}")
        if several and not self._may_commit:
            raise RebalanceInProgress(
                f"offsets of group {group.group_id} for {', '.join(map(str, sorted(several)))} were not committed: the "
                f"member is joining (state {self.state}). Poll until it has joined, then commit again"
            )
        return group, several

    @property
    def _may_commit(self) -> bool:
        """Once JoinGroup is on its way the coordinator may have gone on to a generation that we do not know yet, and
        would take a commit of the old one for that of somebody who was thrown out."""
        return self._topics is None or (self.group.generation_id >= 0 and self.state not in JOINING)

    def _commit_if_due(self, entering: bool) -> None:
        """In a poll-like call; while it waits, only what has not landed yet."""
        if self._commits.auto.due(now_ms()) and self._may_commit:
            offsets = self._handed.done()
            if entering or offsets != self._commits.landed:
                self._commits.automatic(self.group, offsets)

    async def _commit_now(self, timeout_ms: int) -> None:
        if self._config.commits_by_itself and self._may_commit:
            await self._commits.automatic_now(self.group, self._committable(), timeout_ms)

    @property
    def _rejoin_ms(self) -> int:
        """A rebalance waits for our commits no longer."""
        return min(self._config.default_api_timeout_ms, self._config.session_timeout_ms)

    async def _commit_before_rejoin(self) -> None:
        await self._commits.settle(self._rejoin_ms)
        await self._commit_now(self._rejoin_ms)

    async def _commit_before_revoking(self) -> None:
        """A cooperative member has read on since it began to join."""
        if self._committable() != self._commits.landed:
            await self._commit_now(self._rejoin_ms)

    async def _settle_commits(self) -> None:
        await self._commits.settle(self._rejoin_ms)

    def _commit_refused(self, group: GroupMetadata, code: int) -> None:
        if self._member is not None:
            self._member.stale(_STALE.get(code, code), group.generation_id)

    def _speaks(self) -> GroupMetadata | None:
        return None if self._config.group_id is None else self.group


def _committable(offsets: Offsets) -> Committable:
    several = {
        TopicPartition(*one): at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at)
        for one, at in offsets.items()
    }
    wrong = next((f"{one} at {at.offset}" for one, at in several.items() if at.offset < 0), None)
    if wrong is not None:
        raise IllegalUse(f"an offset below 0 cannot be committed: {wrong}")
    return several
