"""The high-level consumer: a member of a group, or a reader of partitions that the user chooses.

    async with Consumer(ConsumerConfig(bootstrap_servers="localhost:9092", group_id="billing")) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

Laws
    Partitions are assigned and revoked only within poll-like calls (`getmany`, `getone`, `async for`) and `close`;
    heartbeats are sent in the background.
    C1: an automatic commit never passes what an earlier poll-like call returned. `close` commits everything that was
    delivered; leaving `async with` by an exception, what was delivered before the last call.
    A call that is cancelled loses no record: they are taken in its last step.
    One poll-like call at a time; everything else may be called meanwhile, also from callbacks.

This file is longer than others because each public method has its documentation here. It checks arguments and
delegates to user_positions.py (where to read), offset_committer.py (commits), group/membership.py (the group),
poll_loop.py (one poll-like call) and offsets/ (look-ups).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rota.client.checks import milliseconds, several, times_of_partitions, topic_name, whole_number
from rota.client.config import ConsumerConfig
from rota.client.consumer.catalog import catalog
from rota.client.consumer.commit_queue import now_ms
from rota.client.consumer.delivered_records import Batch, Committable, DeliveredRecords, as_partitions
from rota.client.consumer.fetcher import Fetcher
from rota.client.consumer.listener import Callback, Listener
from rota.client.consumer.offset_committer import OffsetCommitter, Offsets
from rota.client.consumer.offset_resolver import OffsetResolver
from rota.client.consumer.poll_loop import PollLoop
from rota.client.consumer.positions import Positions
from rota.client.consumer.rebalance_hooks import RebalanceHooks
from rota.client.consumer.topic_refusals import TopicRefusals
from rota.client.consumer.user_positions import Several, UserPositions
from rota.client.errors import ConfigError, IllegalUse
from rota.client.group.assignors import resolve
from rota.client.group.membership import Membership
from rota.client.group.subscription import topics_of
from rota.client.network.cluster import Cluster
from rota.client.offsets.list_offsets import EARLIEST, LATEST, list_offsets
from rota.client.offsets.offset_fetch import committed
from rota.client.types import (
    ConsumerRecord,
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    TopicPartition,
)

T = TypeVar("T")

CLOSE_MS: Final = 30_000


class Consumer:
    """`Consumer(ConsumerConfig(...))` in `async with`, or `start` and `close`. Belongs to one loop.

    Every time is in milliseconds. Where `partitions` may be None, it stands for all assigned ones.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        resolve(config.partition_assignment_strategy)  # raises ConfigError for a strategy that does not exist
        self._config = config
        self._cluster = Cluster(config, auto_create=config.allow_auto_create_topics)
        self._positions = Positions()
        self._delivered = DeliveredRecords(self._positions)
        self._fetcher = Fetcher(self._cluster, config, self._positions, self._delivered.forget)
        self._committer = OffsetCommitter(self._cluster, config, self._delivered, self._notice)
        self._resolver = OffsetResolver(
            self._cluster, config, self._positions, lambda: self._committer.group_or_none, self._notice
        )
        self._user_positions = UserPositions(config, self._positions, self._delivered, self._resolver, self._notice)
        self._hooks = RebalanceHooks(self._positions, self._delivered, self._committer, self._notice)
        refusals = TopicRefusals(self._cluster, self._read_topics)
        self._polls = PollLoop(self._fetcher, self._delivered, self._committer, self._resolver, refusals)
        self._membership: Membership | None = None
        self._topics: frozenset[str] | re.Pattern[str] | None = None  # subscribed to
        self._assigned_by_hand = False
        self._is_started = self._is_closed = self._is_unsubscribing = False
        self._time: Callable[[], float] = float  # the loop's, once there is one

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Create it from Kafka's dotted names: `{"bootstrap.servers": …, "group.id": …}`. Raises ConfigError."""
        return cls(ConsumerConfig.from_properties(properties))

    # start and end

    async def start(self) -> Self:
        """Connect to the cluster; returns this Consumer. Raises Unreachable after default_api_timeout_ms, IllegalUse
        the second time."""
        self._check_open()
        if self._is_started:
            raise IllegalUse(f"{self!r} was started already")
        self._time = self._polls.time = asyncio.get_running_loop().time
        await self._cluster.start()
        self._cluster.on_metadata_response(lambda _: self._notice())
        self._is_started = True
        self._fetcher.start()
        if self._topics is not None:
            self._join(self._topics)
        return self

    async def close(self, *, timeout_ms: int = CLOSE_MS) -> None:
        """Commit what was delivered (with automatic commits), call `on_revoked`, leave the group, close the
        connections. A poll-like call of another task ends without records. Raises what `on_revoked` raises."""
        await self._close(self._delivered.done, milliseconds("timeout_ms", timeout_ms))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(self._delivered.done if kind is None else self._delivered.before_last, CLOSE_MS)

    async def _close(self, committable: Callable[[], Committable], timeout_ms: int) -> None:
        if self._is_closed or self._polls.is_closing:
            return
        if self._hooks.is_called_by_current_task:
            raise IllegalUse("close() within a callback of this consumer: return first, then close")
        self._polls.is_closing = True
        self._committer.committable = committable
        ends_ms = now_ms() + timeout_ms
        async with AsyncExitStack() as stack:  # in reverse order, whatever fails or is cancelled
            stack.push_async_callback(self._cluster.close)
            stack.push_async_callback(self._fetcher.close)
            stack.push_async_callback(self._resolver.close)
            stack.push_async_callback(self._committer.close)
            stack.callback(self._closed)
            await self._polls.interrupt(_left(ends_ms))
            if self._is_started:
                await self._leave("the consumer is being closed", ends_ms)

    def _closed(self) -> None:
        self._is_closed = True
        self._polls.finish()

    def _join(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        if self._membership is None:
            assignors = resolve(self._config.partition_assignment_strategy)
            self._membership = Membership(self._cluster, self._config, assignors, self._hooks, wake=self._notice)
            self._committer.membership = self._membership
        self._membership.subscribe(topics)
        self._notice()

    async def _leave(self, reason: str, ends_ms: float) -> None:
        async def commit_last() -> None:
            await self._committer.commit_last(lambda: _left(ends_ms))

        if self._membership is None:
            await commit_last()
            return
        try:
            await self._membership.close(reason, before_leaving=commit_last, timeout_ms=_left(ends_ms))
        finally:
            self._committer.left = self._committer.transaction_group
            self._membership = self._committer.membership = None

    # what it reads

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str],
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Read these topics, or all whose whole name the pattern matches, shared with the group's other members.

        Takes effect with the next poll-like call; replaces an earlier subscription. The callbacks, async functions or
        plain ones, take a tuple of TopicPartition and run within poll-like calls and `close`: on_revoked while the
        partitions are still ours, on_lost when they are gone already (on_revoked unless given), on_assigned before
        anything is read. Raises ConfigError without a group_id, IllegalUse.
        """
        self._check_not_unsubscribing()
        if self._config.group_id is None:
            raise ConfigError("subscribe() needs a group: set group_id (group.id), or assign() partitions instead")
        if self._assigned_by_hand:
            raise IllegalUse("partitions were assigned by hand: `await consumer.unsubscribe()` before subscribe()")
        self._topics = topics if isinstance(topics, re.Pattern) else _names(topics)
        self._committer.is_subscribed = True
        self._hooks.listener = Listener(on_assigned, on_revoked, on_lost)
        if self._is_started:
            self._join(self._topics)

    def assign(self, partitions: Several) -> None:
        """Read these partitions, without group membership; replaces an earlier assignment. Reading starts at the
        committed offsets of the group, if there is one. Raises IllegalUse after subscribe()."""
        self._check_not_unsubscribing()
        if self._topics is not None:
            raise IllegalUse("topics are subscribed to: `await consumer.unsubscribe()` before assign()")
        chosen = as_partitions(partitions)
        if self._is_started:
            self._committer.commit_replaced()
        self._delivered.forget(self._positions.assigned - set(chosen))
        self._positions.assign(chosen)
        self._cluster.set_topics({partition.topic for partition in chosen})
        self._cluster.request_refresh()
        self._assigned_by_hand, self._committer.left = True, None
        self._notice()

    async def unsubscribe(self, *, timeout_ms: int = CLOSE_MS) -> None:
        """Leave the group as `close` does, or give up what was assigned by hand. Nothing is read afterwards, also when
        the call was cancelled or `on_revoked` raised. Raises what `on_revoked` raises."""
        self._check_started(timeout_ms)
        with self._polls.exclusive():
            self._is_unsubscribing = True
            try:
                await self._leave("the consumer unsubscribed from all topics", now_ms() + timeout_ms)
            finally:  # the membership has ended whatever happened: nothing may be read on without it
                self._is_unsubscribing = False
                self._topics, self._assigned_by_hand, self._committer.is_subscribed = None, False, False
                self._delivered.forget(self._positions.assigned)
                self._positions.assign(())
                self._cluster.set_topics(())
                self._notice()

    @property
    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to; of a pattern, those that are known to match it."""
        if isinstance(self._topics, re.Pattern):
            internal = self._config.exclude_internal_topics
            return topics_of(self._topics, self._cluster.metadata, exclude_internal=internal)
        return self._topics or frozenset()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer reads now."""
        return self._positions.assigned

    def _read_topics(self) -> Iterable[str]:
        """The topics that the user has named; none of a pattern, which matches what may be read."""
        if self._assigned_by_hand:
            return {partition.topic for partition in self._positions.assigned}
        return self._topics if isinstance(self._topics, frozenset) else ()

    # records

    def __aiter__(self) -> Self:
        """One record after the other, until the consumer is closed."""
        return self

    async def __anext__(self) -> ConsumerRecord:
        delivered = self._delivered
        if delivered.left and self._time() < delivered.shortcut_until:
            record = delivered.in_hand = delivered.left.pop()
            return record
        if self._is_closed or self._polls.is_closing:
            raise StopAsyncIteration
        polled = await self._poll(self._take_one, None)
        if polled is None:
            raise StopAsyncIteration
        return polled

    async def getone(self) -> ConsumerRecord:
        """The next record; waits for it."""
        record = await self._poll(self._take_one, None)
        if record is None:
            raise IllegalUse(f"{self!r} was closed while getone() waited")
        return record

    async def getmany(
        self, max_records: int | None = None, timeout_ms: int = 0
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records by partition, at most `max_records` (max_poll_records unless given): as soon as there are any;
        nothing when the time passes first. Raises what makes reading impossible (NoOffset, OffsetOutOfRange,
        CorruptRecords, LogTruncated, UnknownTopic) or being a member (FencedInstance, AssignmentFailed, BrokerError),
        and what callbacks raise."""
        limit = self._config.max_poll_records if max_records is None else whole_number("max_records", max_records)
        if limit < 1:
            raise IllegalUse(f"max_records is {limit}; it must be at least 1")
        delivered = self._delivered
        if not delivered.left and self._time() < delivered.shortcut_until:
            delivered.begin()
            records = self._fetcher.take(limit)
            if records:
                return delivered.all_of(records)

        def take() -> Batch | None:
            if delivered.left:
                return delivered.many(limit)
            records = self._fetcher.take(limit)
            return delivered.all_of(records) if records else None

        return await self._poll(take, timeout_ms) or {}

    def _take_one(self) -> ConsumerRecord | None:
        if not self._delivered.left:
            self._delivered.put(self._fetcher.take(self._config.max_poll_records))
        return self._delivered.one() if self._delivered.left else None

    async def _poll(self, take: Callable[[], T | None], timeout_ms: int | None) -> T | None:
        self._check_started(timeout_ms)
        if self._topics is None and not self._assigned_by_hand:
            raise IllegalUse("nothing to read: subscribe() to topics or assign() partitions first")
        if not self._polls.is_closing:
            return await self._polls.poll(take, timeout_ms)
        if not self._hooks.is_called_by_current_task:  # a callback of `close` would wait for itself
            await self._polls.until_finished(timeout_ms or 0)
        return None

    # positions

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The assigned partitions that give no records until they are resumed."""
        return self._positions.paused

    async def position(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """The offset of the next record of an assigned partition. Raises IllegalUse, NoOffset, TimedOut."""
        self._check_started(timeout_ms)
        return await self._user_positions.position(partition, timeout_ms)

    def lag(self, partition: TopicPartition) -> int | None:
        """Offsets between the position and the end that this consumer can read to (the high watermark, with
        read_committed the last stable offset) as of the last fetch. None while either is unknown."""
        return self._user_positions.lag(partition)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on from this offset. Raises IllegalUse when the partition is not assigned, IllegalArgument for an offset
        that is no integer."""
        self._check_open()
        self._user_positions.seek(partition, offset)

    def seek_to_beginning(self, partitions: Several | None = None) -> None:
        """Read on from the first record that there is; its offset is looked up when it is needed."""
        self._check_open()
        self._user_positions.reset(partitions, "earliest")

    def seek_to_end(self, partitions: Several | None = None) -> None:
        """Read on from the next record that is written; the offset is looked up when it is needed."""
        self._check_open()
        self._user_positions.reset(partitions, "latest")

    async def seek_to_time(
        self, timestamp_ms: int, partitions: Several | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Read on from the first record at or after that time, from the end where there is none. Returns what was
        found. Raises IllegalUse, TimedOut, BrokerError."""
        chosen = self._user_positions.chosen(partitions)
        for partition in chosen:
            self._positions.of(partition)
        found = await self.offsets_for_times(dict.fromkeys(chosen, timestamp_ms), timeout_ms=timeout_ms)
        for partition, at in found.items():
            if partition not in self._positions.assigned:
                continue  # it was revoked meanwhile
            if at is None:
                self.seek_to_end(partition)
            else:
                self.seek(partition, OffsetAndMetadata(at.offset, leader_epoch=at.leader_epoch))
        return found

    def pause(self, partitions: Several | None = None) -> None:
        """No records of these, until `resume`; the group's assignment does not change."""
        self._check_open()
        self._user_positions.pause(partitions)

    def resume(self, partitions: Several | None = None) -> None:
        """Records of these again."""
        self._check_open()
        self._user_positions.resume(partitions)

    # commits

    @property
    def group(self) -> GroupMetadata:
        """The membership for `Producer.send_offsets`. Raises ConfigError without a group_id.

        A member that was thrown out of the group, or has left it, has its last generation here, which the coordinator
        refuses.
        """
        return self._committer.transaction_group

    def delivered_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What `commit()` commits: the next offset of each assigned partition, after the records that calls returned.
        In a transaction: `await producer.send_offsets(consumer.delivered_offsets(), consumer.group)`."""
        return self._delivered.done()

    async def commit(self, offsets: Offsets | None = None, *, timeout_ms: int | None = None) -> None:
        """Commit these offsets, each the next one to read, or (None) everything that was delivered. Raises
        CommitFailed and RebalanceInProgress after a rebalance, FencedInstance, BrokerError, TimedOut, ConfigError
        without a group."""
        self._check_started(timeout_ms)
        await self._committer.commit(offsets, timeout_ms)

    def commit_soon(self, offsets: Offsets | None = None) -> asyncio.Task[None]:
        """Commit in the background: a task that may be awaited. Commits keep their order; a failure is logged."""
        self._check_started()
        return self._committer.commit_soon(offsets)

    async def committed(
        self, partitions: Several | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these; None where nothing is committed."""
        self._check_started(timeout_ms)
        chosen = self._user_positions.chosen(partitions)
        return await committed(self._cluster, self._committer.group, chosen, timeout_ms=timeout_ms)

    # offsets and topics of the cluster

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (ms since the epoch) in each partition; None where there is none. The
        partitions need not be assigned. Raises TimedOut, UnknownTopic, BrokerError."""
        self._check_started(timeout_ms)
        given, level = times_of_partitions("times", times), self._config.isolation_level
        return await list_offsets(self._cluster, given, isolation_level=level, timeout_ms=timeout_ms)

    async def beginning_offsets(
        self, partitions: Several, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record that there is, or would be, in each partition."""
        return await self._offsets_at(EARLIEST, partitions, timeout_ms)

    async def end_offsets(self, partitions: Several, *, timeout_ms: int | None = None) -> dict[TopicPartition, int]:
        """The offset of the next record that is written, in each partition; with read_committed the last stable one."""
        return await self._offsets_at(LATEST, partitions, timeout_ms)

    async def _offsets_at(self, time: int, partitions: Several, timeout_ms: int | None) -> dict[TopicPartition, int]:
        self._check_started(timeout_ms)
        times, level = dict.fromkeys(as_partitions(partitions), time), self._config.isolation_level
        found = await list_offsets(self._cluster, times, isolation_level=level, timeout_ms=timeout_ms)
        return {partition: at.offset for partition, at in found.items() if at is not None}

    async def partitions_for(self, topic: str, *, timeout_ms: int | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic, in order; nothing when there is no such topic."""
        self._check_started(timeout_ms)
        return (await catalog(self._cluster, (topic_name(topic),), timeout_ms=timeout_ms)).get(topic, ())

    async def topics(self, *, timeout_ms: int | None = None) -> dict[str, tuple[PartitionInfo, ...]]:
        """All topics that there are, internal ones too, and their partitions."""
        self._check_started(timeout_ms)
        return await catalog(self._cluster, None, timeout_ms=timeout_ms)

    # who it is

    def enforce_rebalance(self, reason: str = "rebalance enforced by user") -> None:
        """Have the group assign anew, with the next poll-like call. Raises IllegalUse when nothing is subscribed to."""
        self._check_started()
        if self._membership is None:
            raise IllegalUse("there is nothing to rebalance: subscribe() first")
        self._membership.rejoin(reason)

    @property
    def config(self) -> ConsumerConfig:
        """The settings."""
        return self._config

    @property
    def state(self) -> str:
        """NEW, CLOSED, UNSUBSCRIBED, ASSIGNED (by hand), or the membership's state: see docs/CLIENT_STATES.md."""
        if self._is_closed:
            return "CLOSED"
        if self._membership is not None:
            return self._membership.state
        if not self._is_started:
            return "NEW"
        return "ASSIGNED" if self._assigned_by_hand else "UNSUBSCRIBED"

    def __repr__(self) -> str:
        group = "" if self._config.group_id is None else f" group={self._config.group_id!r}"
        assigned = ", ".join(map(str, sorted(self.assignment)))
        return f"<Consumer client_id={self._config.client_id!r}{group} {self.state} [{assigned}]>"

    def _notice(self) -> None:
        self._polls.notice()

    def _check_open(self) -> None:
        if self._is_closed:
            raise IllegalUse(f"{self!r} is closed: make another one")

    def _check_not_unsubscribing(self) -> None:
        self._check_open()
        if self._is_unsubscribing:
            raise IllegalUse("unsubscribe() has not ended, and would undo this call: await it first")

    def _check_started(self, timeout_ms: int | None = None) -> None:
        milliseconds("timeout_ms", timeout_ms)
        self._check_open()
        if not self._is_started:
            raise IllegalUse(f"{self!r} was not started: use `async with`, or `await consumer.start()` first")


def _names(topics: Iterable[str]) -> frozenset[str]:
    names = frozenset(several("topics", topics, "topic names"))
    if not names or not all(isinstance(name, str) and name for name in names):
        raise IllegalUse(f"subscribe() takes names of topics, not {sorted(map(repr, names))}; unsubscribe() ends it")
    return names


def _left(ends_ms: float) -> int:
    return max(1, int(ends_ms - now_ms()))
