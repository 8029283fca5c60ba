"""Commits of a consumer: those that the user requests, and the automatic ones.

Laws
    Without a group nothing is committed. Partitions that a group assigned are not committed without a membership.
    C1: an automatic commit has the offsets of `committable`, which includes only processed records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from rota.client.checks import offsets_to_commit
from rota.client.config import ConsumerConfig
from rota.client.consumer.commit_queue import CommitQueue, now_ms
from rota.client.consumer.delivered_records import Committable, DeliveredRecords
from rota.client.errors import ConfigError, FencedInstance, RebalanceInProgress
from rota.client.group.membership import Membership
from rota.client.network.cluster import Cluster
from rota.client.offsets.offset_errors import commit_failed
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode

Offsets = Mapping[TopicPartition, "int | OffsetAndMetadata"]
MEMBERSHIP_CODES: Final[dict[int, int]] = {  # codes of newer brokers, and the older code that a member knows
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.STALE_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION,
}
JOINING: Final = ("DISCOVERING", "JOINING", "SYNCING")


class OffsetCommitter:
    """`membership` is the consumer's, None without one. `is_subscribed`: the group assigns the partitions.
    `left`: the last membership, until partitions are assigned by hand.
    `committable()`: the offsets that a commit without offsets takes. `wake()` is called after an automatic commit."""

    def __init__(
        self, cluster: Cluster, config: ConsumerConfig, delivered: DeliveredRecords, wake: Callable[[], None]
    ) -> None:
        self._config, self._delivered = config, delivered
        self.queue = CommitQueue(cluster, config, self._refused, wake)
        self.committable: Callable[[], Committable] = delivered.done
        self.membership: Membership | None = None
        self.left: GroupMetadata | None = None
        self.is_subscribed = False

    @property
    def group(self) -> GroupMetadata:
        """The membership as commits carry it. Raises ConfigError without a group_id."""
        config = self._config
        if config.group_id is None:
            raise ConfigError("this consumer has no group, so nothing can be committed: set group_id (group.id)")
        if self.membership is not None:
            return self.membership.group
        return GroupMetadata(config.group_id, group_instance_id=config.group_instance_id)

    @property
    def transaction_group(self) -> GroupMetadata:
        """EO2. The same for the transaction of a producer: of a member that was thrown out, or has left, the membership
        that it had.

        As in Java. Without a generation and a member id the coordinator would take the commit for one of no member, and
        accept it. Raises ConfigError without a group_id.
        """
        group = self.group if self.membership is None else self.membership.last_group
        return group if group.generation_id >= 0 else self.left or group

    @property
    def group_or_none(self) -> GroupMetadata | None:
        """The same; None without a group_id."""
        return None if self._config.group_id is None else self.group

    # commits of the user

    async def commit(self, offsets: Offsets | None, timeout_ms: int | None) -> None:
        """Commit and wait. Raises as `Consumer.commit`."""
        group, committable = self._checked(offsets)
        await self.queue.commit(group, committable, timeout_ms)

    def commit_soon(self, offsets: Offsets | None) -> asyncio.Task[None]:
        """Commit in a task; a failure is logged."""
        group, committable = self._checked(offsets)
        task = self.queue.soon(group, committable)
        task.add_done_callback(self.queue.log_failure)
        return task

    def _checked(self, offsets: Offsets | None) -> tuple[GroupMetadata, Committable]:
        """The membership that commits, and the offsets. Raises CommitFailed when there is no membership, FencedInstance
        when another member with its group_instance_id ended it."""
        group = self.group
        committable = self.committable() if offsets is None else offsets_to_commit(offsets)
        if committable and self.is_subscribed and group.generation_id < 0:
            if self.membership is not None and isinstance(self.membership.failure, FencedInstance):
                raise self.membership.failure
            raise commit_failed(group, committable, f"it has not joined or was thrown out; state {self._state}")
        if committable and not self._is_commit_allowed:
            raise RebalanceInProgress(
                f"offsets of group {group.group_id} for {', '.join(map(str, sorted(committable)))} were not committed: "
                f"the member is joining (state {self._state}). Poll until it has joined, then commit again"
            )
        return group, committable

    @property
    def _state(self) -> str:
        return "UNSUBSCRIBED" if self.membership is None else self.membership.state

    @property
    def _is_commit_allowed(self) -> bool:
        """Return False while a JoinGroup is in flight: the coordinator may have begun a new generation already, and
        would refuse a commit of the old one as that of a removed member."""
        return not self.is_subscribed or (self.group.generation_id >= 0 and self._state not in JOINING)

    def _refused(self, group: GroupMetadata, code: int) -> None:
        if self.membership is not None:
            self.membership.commit_refused(MEMBERSHIP_CODES.get(code, code), group.generation_id)

    # automatic commits

    def commit_if_due(self, is_first: bool) -> None:
        """Begin the automatic commit if it is due. `is_first`: a poll-like call begins; while a call waits, only
        offsets that are not committed yet are committed."""
        if self.queue.auto.is_due(now_ms()) and self._is_commit_allowed:
            offsets = self._delivered.done()
            if is_first or offsets != self.queue.last_committed:
                self.queue.automatic(self.group, offsets)

    def commit_replaced(self) -> None:
        """Begin the automatic commit of a replaced manual assignment, without the records of the last call."""
        if self._config.has_automatic_commits:
            self.queue.automatic(self.group, self._delivered.before_last())

    async def commit_last(self, timeout_ms: Callable[[], int]) -> None:
        """Wait for the commits in flight, then make the automatic commit. Never raises."""
        await self.queue.wait_until_answered(timeout_ms())
        await self._commit_now(timeout_ms())

    async def commit_before_rejoin(self) -> None:
        """Do the same, for no longer than a rebalance waits for a member."""
        await self.commit_last(lambda: self._rebalance_ms)

    async def commit_before_revoking(self) -> None:
        """Commit the records that a cooperative member has read since it began to join."""
        if self.committable() != self.queue.last_committed:
            await self._commit_now(self._rebalance_ms)

    async def wait_until_answered(self) -> None:
        """Wait for the commits in flight, for no longer than a rebalance waits for a member. Never raises."""
        await self.queue.wait_until_answered(self._rebalance_ms)

    async def close(self) -> None:
        """Cancel what is still under way."""
        await self.queue.close()

    async def _commit_now(self, timeout_ms: int) -> None:
        if self._config.has_automatic_commits and self._is_commit_allowed:
            await self.queue.automatic_now(self.group, self.committable(), timeout_ms)

    @property
    def _rebalance_ms(self) -> int:
        return min(self._config.default_api_timeout_ms, self._config.session_timeout_ms)
