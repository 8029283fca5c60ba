"""Finds the missing positions: the group's committed offset, else what `auto_offset_reset` says; and seeks to an end.

Laws
    An offset is taken only for the position epoch that it was looked up for: a position that was sought or revoked
    meanwhile does not change.
    A partition that cannot be found delays no other.
    The look-up goes on when its caller is cancelled; its failure is raised once, by the next poll.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial

from rota.client.config import ConsumerConfig, reset_after_ms
from rota.client.consumer.positions import Positions
from rota.client.errors import BrokerError, NoOffset, TimedOut, UnknownTopic, Unreachable
from rota.client.log import logger
from rota.client.network.cluster import Cluster
from rota.client.offsets.list_offsets import EARLIEST, LATEST, Found, each_offset
from rota.client.offsets.offset_fetch import committed
from rota.client.types import GroupMetadata, TopicPartition

PositionEpochs = dict[TopicPartition, int]
_log = logger("rota.client.consumer")


class OffsetResolver:
    """`begin()` whenever positions may be missing; `found` is called with each progress and at the end."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: Positions,
        group: Callable[[], GroupMetadata | None],
        found: Callable[[], None],
    ) -> None:
        self._cluster, self._config, self._positions = cluster, config, positions
        self._group, self._told = group, found
        self._news = asyncio.Event()
        self._failure: BaseException | None = None
        self._sought: PositionEpochs = {}  # what the task looks for
        self.task: asyncio.Task[None] | None = None

    def begin(self) -> bool:
        """Look for missing positions, if there are any that nobody looks for yet. Whether any is missing."""
        missing = self._positions.without_offset()
        if not missing:
            return False
        position_epochs = {one: self._positions.of(one).position_epoch for one in missing}
        if self.task is not None and not position_epochs.items() <= self._sought.items():
            self.task.cancel()  # what was asked for has changed
            self.task = None
        if self.task is None:
            self._sought = position_epochs
            self.task = asyncio.create_task(self._find(position_epochs), name="rota-positions")
            self.task.add_done_callback(self._ended)
        return True

    async def until(self, partition: TopicPartition) -> int:
        """The position of one partition, looked for if need be."""
        while (offset := self._positions.of(partition).offset) is None:
            self.begin()
            self._news.clear()
            await self._news.wait()
            if self._positions.of(partition).offset is None:
                self.raise_failure()
        return offset

    def raise_failure(self) -> None:
        """What the last search met, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})

    def _found(self) -> None:
        self._news.set()
        self._told()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self.task is task:
            self.task = None
        failure = None if task.cancelled() else task.exception()
        if failure is not None and _may_pass(failure):
            _log.warning("positions were not found yet", partitions=_listed(self._sought), error=str(failure))
        elif failure is not None:
            self._failure = failure
        self._found()

    async def _find(self, position_epochs: PositionEpochs) -> None:
        fresh = [one for one in position_epochs if (at := self._positions.find(one)) is not None and at.reset is None]
        known = await self._committed(fresh, position_epochs)
        left = [one for one in position_epochs if one not in known]
        policy = self._config.auto_offset_reset
        ways = {one: position.reset or policy for one in left if (position := self._positions.find(one)) is not None}
        lost = sorted(one for one, way in ways.items() if way == "none")
        await self._reset({one: way for one, way in ways.items() if way != "none"}, position_epochs)
        if lost:
            group = "" if self._config.group_id is None else f" of group {self._config.group_id}"
            raise NoOffset(
                f"no committed offset{group} for {_listed(lost)} and auto_offset_reset is none: seek, commit "
                f"an offset, or choose earliest, latest or by_duration",
                lost,
            )

    async def _committed(self, fresh: list[TopicPartition], position_epochs: PositionEpochs) -> set[TopicPartition]:
        """Start from what the group has committed. Which of them have something committed."""
        group = self._group()
        if group is None or not fresh:
            return set()
        known = {one: at for one, at in (await committed(self._cluster, group, fresh)).items() if at is not None}
        for one, at in known.items():
            if self._set(one, position_epochs, at.offset, at.leader_epoch):
                _log.info(
                    f"Setting offset for partition {one} to the committed offset {at.offset}",
                    group=group.group_id,
                    partition=str(one),
                    offset=at.offset,
                )
        return set(known)

    async def _reset(self, ways: dict[TopicPartition, str], position_epochs: PositionEpochs) -> None:
        ends: list[TopicPartition] = []

        def told(one: TopicPartition, found: Found) -> None:
            if found is None:
                ends.append(one)  # nothing so late: what comes next is later
            elif self._set(one, position_epochs, found.offset, found.leader_epoch):
                _log.info(
                    f"Resetting offset for partition {one} to position {found.offset}",
                    group=self._config.group_id,
                    partition=str(one),
                    offset=found.offset,
                    by=ways[one],
                )

        look = partial(each_offset, self._cluster, on_found=told, isolation_level=self._config.isolation_level)
        await look({one: time_of(way) for one, way in ways.items()})
        await look(dict.fromkeys(ends, LATEST))

    def _set(self, one: TopicPartition, position_epochs: PositionEpochs, offset: int, leader_epoch: int) -> bool:
        position = self._positions.find(one)
        if position is None or position.position_epoch != position_epochs[one]:
            return False
        self._positions.seek(one, offset, leader_epoch)
        self._found()
        return True


def _may_pass(failure: BaseException) -> bool:
    """Whether looking again, with the next poll, may find them. A topic that is not there is told."""
    if isinstance(failure, BrokerError):
        return failure.is_retriable and not isinstance(failure, UnknownTopic)
    return isinstance(failure, TimedOut | Unreachable)


def time_of(way: str) -> int:
    """What ListOffsets is asked for: `earliest`, `latest`, `by_duration:PT1H`."""
    if way == "earliest":
        return EARLIEST
    if way == "latest":
        return LATEST
    after_ms = reset_after_ms(way)
    assert after_ms is not None, way
    return max(0, int(time.time() * 1000) - after_ms)


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
