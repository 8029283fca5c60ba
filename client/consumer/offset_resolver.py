"""Finds the missing positions: the group's committed offset, else what `auto_offset_reset` says; and seeks to an end.

Laws
    An offset is taken only for the position epoch that it was looked up for: a position that was sought or revoked
    meanwhile does not change.
    A partition that cannot be found, or that this client may not read, delays no other.
    The look-up goes on when its caller is cancelled; its failure is raised once, by the next poll. The same look-up
    begins again after a pause that grows: polls that fail in a row do not make as many requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from rota.client.config import ConsumerConfig, reset_after_ms
from rota.client.consumer.positions import Positions
from rota.client.errors import BrokerError, KafkaError, NoOffset, TimedOut, UnknownTopic, Unreachable
from rota.client.log import logger
from rota.client.network.cluster import Cluster
from rota.client.offsets.list_offsets import EARLIEST, LATEST, Found, each_offset
from rota.client.offsets.offset_errors import Codes
from rota.client.offsets.offset_fetch import committed_or_refused, fetch_refused
from rota.client.types import GroupMetadata, TopicPartition

PositionEpochs = dict[TopicPartition, int]
_log = logger("rota.client.consumer")


class OffsetResolver:
    """`begin()` whenever positions may be missing. `group()`: the group whose committed offsets count, or None.
    `on_progress()` is called when a position was found and at the end."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: Positions,
        group: Callable[[], GroupMetadata | None],
        on_progress: Callable[[], None],
    ) -> None:
        self._cluster, self._config, self._positions = cluster, config, positions
        self._group, self._on_progress = group, on_progress
        self._wakeup = asyncio.Event()
        self._failure: BaseException | None = None
        self._sought: PositionEpochs = {}  # the partitions that the task looks for
        self._failed: PositionEpochs = {}  # those of the last search that failed
        self._failures = 0  # of it, in a row
        self.task: asyncio.Task[None] | None = None

    def begin(self) -> bool:
        """Begin to look for missing positions that are not looked for yet. Returns whether any is missing."""
        missing = self._positions.without_offset()
        if not missing:
            return False
        position_epochs = {partition: self._positions.of(partition).position_epoch for partition in missing}
        if self.task is not None and not position_epochs.items() <= self._sought.items():
            self.task.cancel()  # the missing partitions have changed
            self.task = None
        if self.task is None:
            self._sought = position_epochs
            self.task = asyncio.create_task(self._find(position_epochs), name="rota-positions")
            self.task.add_done_callback(self._ended)
        return True

    async def until(self, partition: TopicPartition) -> int:
        """The position of one partition; waits until it is found."""
        while (offset := self._positions.of(partition).offset) is None:
            self.begin()
            self._wakeup.clear()
            await self._wakeup.wait()
            if self._positions.of(partition).offset is None:
                self.raise_failure()
        return offset

    def raise_failure(self) -> None:
        """Raise the failure of the last search, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})

    def _progress(self) -> None:
        self._wakeup.set()
        self._on_progress()

    def _ended(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if self.task is task:
            self.task = None
            self._count(failure)
        if failure is not None and _is_retriable(failure):
            _log.warning("positions were not found yet", partitions=_listed(self._sought), error=str(failure))
        elif failure is not None:
            self._failure = failure
        self._progress()

    def _count(self, failure: BaseException | None) -> None:
        if failure is None:
            self._failed, self._failures = {}, 0
        elif self._sought.items() <= self._failed.items():
            self._failures += 1
        else:
            self._failed, self._failures = self._sought, 1

    async def _find(self, position_epochs: PositionEpochs) -> None:
        if position_epochs.items() <= self._failed.items():
            await asyncio.sleep(self._cluster.backoff_seconds(self._failures))
        await self._look_up(position_epochs)

    async def _look_up(self, position_epochs: PositionEpochs) -> None:
        never_read = [
            partition
            for partition in position_epochs
            if (at := self._positions.find(partition)) is not None and at.reset is None
        ]
        known, refused = await self._committed(never_read, position_epochs)
        unresolved = [partition for partition in position_epochs if partition not in known | refused.keys()]
        policy = self._config.auto_offset_reset
        policies = {
            partition: position.reset or policy
            for partition in unresolved
            if (position := self._positions.find(partition)) is not None
        }
        without_policy = sorted(partition for partition, policy in policies.items() if policy == "none")
        failure = self._failure_of(refused, without_policy)
        try:
            await self._reset(
                {partition: policy for partition, policy in policies.items() if policy != "none"}, position_epochs
            )
        except KafkaError as late:
            if failure is None or _is_retriable(failure):
                raise
            raise failure from late
        if failure is not None:
            raise failure

    def _failure_of(self, refused: Codes, without_policy: list[TopicPartition]) -> KafkaError | None:
        """Return the error for the partitions that have no position whatever ListOffsets answers."""
        if refused:
            return fetch_refused(self._config.group_id or "", refused)
        if not without_policy:
            return None
        group = "" if self._config.group_id is None else f" of group {self._config.group_id}"
        return NoOffset(
            f"no committed offset{group} for {_listed(without_policy)} and auto_offset_reset is none: seek, commit "
            f"an offset, or choose earliest, latest or by_duration",
            without_policy,
        )

    async def _committed(
        self, never_read: list[TopicPartition], position_epochs: PositionEpochs
    ) -> tuple[set[TopicPartition], Codes]:
        """Take the committed offsets of the group. Returns the partitions that have one, and the refused ones."""
        group = self._group()
        if group is None or not never_read:
            return set(), {}
        offsets, refused = await committed_or_refused(self._cluster, group, never_read)
        known = {partition: at for partition, at in offsets.items() if at is not None}
        for partition, at in known.items():
            if self._set(partition, position_epochs, at.offset, at.leader_epoch):
                _log.info(
                    f"Setting offset for partition {partition} to the committed offset {at.offset}",
                    group=group.group_id,
                    partition=str(partition),
                    offset=at.offset,
                )
        return set(known), refused

    async def _reset(self, policies: dict[TopicPartition, str], position_epochs: PositionEpochs) -> None:
        def on_found(partition: TopicPartition, found: Found) -> None:
            if found is not None and self._set(partition, position_epochs, found.offset, found.leader_epoch):
                _log.info(
                    f"Resetting offset for partition {partition} to position {found.offset}",
                    group=self._config.group_id,
                    partition=str(partition),
                    offset=found.offset,
                    by=policies[partition],
                )

        await each_offset(
            self._cluster,
            {partition: time_of(policy) for partition, policy in policies.items()},
            on_found,
            isolation_level=self._config.isolation_level,
            otherwise=LATEST,  # nothing so late: what comes next is later
        )

    def _set(self, partition: TopicPartition, position_epochs: PositionEpochs, offset: int, leader_epoch: int) -> bool:
        position = self._positions.find(partition)
        if position is None or position.position_epoch != position_epochs[partition]:
            return False
        self._positions.seek(partition, offset, leader_epoch)
        self._progress()
        return True


def _is_retriable(failure: BaseException) -> bool:
    """Whether the next poll may find them. A topic that does not exist is an error for the user."""
    if isinstance(failure, BrokerError):
        return failure.is_retriable and not isinstance(failure, UnknownTopic)
    return isinstance(failure, TimedOut | Unreachable)


def time_of(policy: str) -> int:
    """The time in a ListOffsets request for `earliest`, `latest`, `by_duration:PT1H`."""
    if policy == "earliest":
        return EARLIEST
    if policy == "latest":
        return LATEST
    after_ms = reset_after_ms(policy)
    assert after_ms is not None, policy
    return max(0, int(time.time() * 1000) - after_ms)


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
