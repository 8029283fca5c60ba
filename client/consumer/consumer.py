"""The high-level consumer: a member of a group, or a reader of partitions that the user chooses.

    async with Consumer(ConsumerConfig(bootstrap_servers="localhost:9092", group_id="billing")) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

Laws
    Partitions come and go only within poll-like calls (`getmany`, `getone`, `async for`) and the end; heartbeats run by
    themselves.
    C1: an automatic commit never passes what an earlier poll-like call returned. `close` commits everything that was
    handed out; leaving `async with` by an exception, what was handed out before the last call.
    A call that is cancelled loses no record: they are taken in its last step.
    One poll-like call at a time; everything else may be called meanwhile, also from callbacks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rota.client.checks import several
from rota.client.config import ConsumerConfig
from rota.client.consumer.autocommit import NEVER
from rota.client.consumer.commits import now_ms
from rota.client.consumer.committing import Committing
from rota.client.consumer.delivered_records import Batch, Committable, these
from rota.client.consumer.listener import Callback, Listener
from rota.client.consumer.reading import Several
from rota.client.consumer.rebalancing import Committer, Rebalancing
from rota.client.errors import ConfigError, IllegalUse, KafkaError
from rota.client.group.assignors import resolve
from rota.client.group.member import Member
from rota.client.group.subscription import topics_of
from rota.client.types import ConsumerRecord, OffsetAndMetadata, TopicPartition

T = TypeVar("T")

LOOK_EVERY_S: Final = 0.005  # at the latest: is there a rebalance, a commit to do, somebody else who wants the loop
MISSING_LOOK_S: Final = 0.02  # while some positions are not found, others are read
IDLE_COMMIT_S: Final = 0.1  # while nothing comes, automatic commits are no nearer than that
CLOSE_MS: Final = 30_000
Offsets = Mapping[TopicPartition, "int | OffsetAndMetadata"]


class Consumer(Committing):
    """`Consumer(ConsumerConfig(...))` in `async with`, or `start` and `close`. Belongs to one loop.

    Commits: see Committing; positions, seeks and offsets: see Reading. Every time is in milliseconds.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        resolve(config.partition_assignment_strategy)  # what is wrong with it is told at once
        committer = Committer(self._commit_before_rejoin, self._commit_before_revoking, self._settle_commits)
        self._hooks = Rebalancing(self._positions, self._handed, committer, self._notice)
        self._assigned_by_hand = False
        self._poller: asyncio.Task[Any] | None = None  # who is in a poll-like call
        self._patience: asyncio.Timeout | None = None  # that call's
        self._time: Callable[[], float] = float  # the loop's, once there is one
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_closing = False
        self._end = asyncio.Event()  # it is closed

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """From Kafka's dotted names: `{"bootstrap.servers": …, "group.id": …}`. Raises ConfigError."""
        return cls(ConsumerConfig.from_properties(properties))

    # beginning and end

    async def start(self) -> Self:
        """Connect to the cluster; returns this Consumer. Raises Unreachable after default_api_timeout_ms, IllegalUse
        the second time."""
        self._open()
        if self._is_started:
            raise IllegalUse(f"{self!r} was started already")
        self._time = asyncio.get_running_loop().time
        await self._cluster.start()
        self._is_started = True
        self._fetcher.start()
        if self._topics is not None:
            self._join(self._topics)
        return self

    async def close(self, *, timeout_ms: int = CLOSE_MS) -> None:
        """Commit what was handed out (if the consumer commits by itself), tell `on_revoked`, leave the group, close the
        connections. A poll-like call of another task ends without records. Raises what `on_revoked` raises."""
        await self._close(self._handed.done, timeout_ms)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(self._handed.done if kind is None else self._handed.before_last, CLOSE_MS)

    async def _close(self, committable: Callable[[], Committable], timeout_ms: int) -> None:
        if self._is_closed or self._is_closing:
            return
        if self._hooks.task is not None and self._hooks.task is asyncio.current_task():
            raise IllegalUse("close() within a callback of this consumer: return first, then close")
        self._is_closing = True
        self._committable = committable
        ends_ms = now_ms() + timeout_ms
        async with AsyncExitStack() as ending:  # the last first, whatever fails or is cancelled
            ending.push_async_callback(self._cluster.close)
            ending.push_async_callback(self._fetcher.close)
            ending.push_async_callback(self._starting.close)
            ending.push_async_callback(self._commits.close)
            ending.callback(self._closed)
            if self._patience is not None and not self._patience.expired():
                self._patience.reschedule(asyncio.get_running_loop().time())
            await _within(self._idle.wait(), _left(ends_ms))
            self._look_at = 0.0  # what waits is not handed out any more
            if self._is_started:
                await self._leave("the consumer is being closed", ends_ms)

    def _closed(self) -> None:
        self._is_closed = True
        self._end.set()

    async def _leave(self, reason: str, ends_ms: float) -> None:
        async def last() -> None:
            await self._commits.settle(_left(ends_ms))
            await self._commit_now(_left(ends_ms))

        if self._member is None:
            await last()
            return
        try:
            await self._member.close(reason, before_leaving=last, timeout_ms=_left(ends_ms))
        finally:
            self._member = None

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
        self._open()
        if self._config.group_id is None:
            raise ConfigError("subscribe() needs a group: set group_id (group.id), or assign() partitions instead")
        if self._assigned_by_hand:
            raise IllegalUse("partitions were assigned by hand: `await consumer.unsubscribe()` before subscribe()")
        self._topics = topics if isinstance(topics, re.Pattern) else _names(topics)
        self._hooks.listener = Listener(on_assigned, on_revoked, on_lost)
        if self._is_started:
            self._join(self._topics)

    def assign(self, partitions: Several) -> None:
        """Read these partitions, whoever else reads them; replaces an earlier assignment. Committed offsets of the
        group, if there is one, are where it starts. Raises IllegalUse after subscribe()."""
        self._open()
        if self._topics is not None:
            raise IllegalUse("topics are subscribed to: `await consumer.unsubscribe()` before assign()")
        chosen = these(partitions)
        if self._config.commits_by_itself and self._is_started:
            self._commits.automatic(self.group, self._handed.before_last())
        self._handed.forget(self._positions.assigned - set(chosen))
        self._positions.assign(chosen)
        self._cluster.set_topics({partition.topic for partition in chosen})
        self._cluster.request_refresh()
        self._assigned_by_hand = True
        self._notice()

    async def unsubscribe(self, *, timeout_ms: int = CLOSE_MS) -> None:
        """Leave the group, with all that `close` does for it, or give up what was assigned by hand."""
        self._started()
        with self._polling():
            await self._leave("the consumer unsubscribed from all topics", now_ms() + timeout_ms)
            self._topics, self._assigned_by_hand = None, False
            self._handed.forget(self._positions.assigned)
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

    # records

    def __aiter__(self) -> Self:
        """One record after the other, until the consumer is closed."""
        return self

    async def __anext__(self) -> ConsumerRecord:
        handed = self._handed
        if handed.left and self._time() < self._look_at:
            record = handed.in_hand = handed.left.pop()
            return record
        if self._is_closed or self._is_closing:
            raise StopAsyncIteration
        found = await self._poll(self._take_one, None)
        if found is None:
            raise StopAsyncIteration
        return found

    async def getone(self) -> ConsumerRecord:
        """The next record; waits for it."""
        found = await self._poll(self._take_one, None)
        if found is None:
            raise IllegalUse(f"{self!r} was closed while getone() waited")
        return found

    async def getmany(
        self, max_records: int | None = None, timeout_ms: int = 0
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records by partition, at most `max_records` (max_poll_records unless given): as soon as there are any;
        nothing when the time passes first. Raises what makes reading impossible (NoOffset, OffsetOutOfRange,
        CorruptRecords, LogTruncated, UnknownTopic) or being a member (FencedInstance, AssignmentFailed, BrokerError),
        and what callbacks raise."""
        limit = self._config.max_poll_records if max_records is None else max_records
        if limit < 1:
            raise IllegalUse(f"max_records is {limit}; at least one record has to be asked for")
        handed = self._handed
        if not handed.left and self._time() < self._look_at:
            handed.begin()
            taken = self._fetcher.take(limit)
            if taken:
                return handed.all_of(taken)

        def take() -> Batch | None:
            if handed.left:
                return handed.many(limit)
            taken = self._fetcher.take(limit)
            return handed.all_of(taken) if taken else None

        return await self._poll(take, timeout_ms) or {}

    def _take_one(self) -> ConsumerRecord | None:
        if not self._handed.left:
            self._handed.put(self._fetcher.take(self._config.max_poll_records))
        return self._handed.one() if self._handed.left else None

    async def _poll(self, take: Callable[[], T | None], timeout_ms: int | None) -> T | None:
        """Everything that is due, then what `take` gives, as soon as it gives anything; None when the time passes."""
        self._started()
        if self._topics is None and not self._assigned_by_hand:
            raise IllegalUse("nothing to read: subscribe() to topics or assign() partitions first")
        if self._is_closing:
            await self._until_closed(timeout_ms or 0)
            return None
        with self._polling():
            self._handed.begin()
            ends = None if timeout_ms is None else self._time() + timeout_ms / 1000
            await asyncio.sleep(0)  # records may come for ever without a wait; others want the loop too
            try:
                async with asyncio.timeout_at(ends) as self._patience:
                    entering = True
                    while not self._is_closing:
                        await self._due(entering)
                        entering = False
                        found = take()
                        if found is not None:
                            return found
                        await self._wait()
            except TimeoutError as late:
                if isinstance(late, KafkaError) or self._patience is None or not self._patience.expired():
                    raise
            return None

    async def _until_closed(self, timeout_ms: int) -> None:
        """A call that begins while another task closes the consumer: no records come any more, and a loop around
        `getmany` must not spin."""
        if self._hooks.task is None or self._hooks.task is not asyncio.current_task():  # that would wait for itself
            await _within(self._end.wait(), timeout_ms)

    async def _due(self, entering: bool) -> None:
        """Commits, membership, positions."""
        self._attention = False
        try:
            self._commit_if_due(entering)
            if self._member is not None:
                await self._member.poll()
            self._starting.raise_failure()
            self._starting.begin()
        except BaseException:
            self._attention = True  # it is still due: no record before that, a callback may be running
            raise

    async def _wait(self) -> None:
        """Until there may be something to take, or something is due."""
        loop, next_ms = asyncio.get_running_loop(), self._commits.auto.next_ms
        at = max(next_ms / 1000, loop.time() + IDLE_COMMIT_S)
        timer = loop.call_at(at, self._notice) if next_ms != NEVER else None
        try:
            if self._starting.task is not None:
                await asyncio.wait({self._starting.task}, timeout=MISSING_LOOK_S)
            else:
                await self._fetcher.wait()
        finally:
            if timer is not None:
                timer.cancel()

    @contextmanager
    def _polling(self) -> Iterator[None]:
        """One poll-like call; nobody else's meanwhile."""
        if self._poller is not None:
            raise IllegalUse(
                f"{self!r} is being polled already, by task {self._poller.get_name()!r} or by the call that runs this "
                f"callback: a consumer has one reader; hand the records on through a queue, or use several consumers"
            )
        self._poller = asyncio.current_task()
        self._look_at = 0.0  # nobody takes a short cut meanwhile
        self._idle.clear()
        try:
            yield
        finally:
            self._poller = self._patience = None
            self._look_at = min(self._time() + LOOK_EVERY_S, self._commits.auto.next_ms / 1000)
            if self._attention or self._is_closing:
                self._look_at = 0.0
            if self._member is not None:
                self._member.returning()
            self._idle.set()

    # who it is

    def enforce_rebalance(self, reason: str = "rebalance enforced by user") -> None:
        """Have the group assign anew, with the next poll-like call. Raises IllegalUse when nothing is subscribed to."""
        self._started()
        if self._member is None:
            raise IllegalUse("there is nothing to rebalance: subscribe() first")
        self._member.rejoin(reason)

    @property
    def state(self) -> str:
        """NEW, CLOSED, UNSUBSCRIBED, ASSIGNED (by hand), or the membership's state: see docs/CLIENT_STATES.md."""
        if self._is_closed:
            return "CLOSED"
        if self._member is not None:
            return self._member.state
        if not self._is_started:
            return "NEW"
        return "ASSIGNED" if self._assigned_by_hand else "UNSUBSCRIBED"

    def __repr__(self) -> str:
        group = "" if self._config.group_id is None else f" group={self._config.group_id!r}"
        several = ", ".join(map(str, sorted(self.assignment)))
        return f"<Consumer client_id={self._config.client_id!r}{group} {self.state} [{several}]>"

    def _join(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        if self._member is None:
            assignors = resolve(self._config.partition_assignment_strategy)
            self._member = Member(self._cluster, self._config, assignors, self._hooks, wake=self._notice)
        self._member.subscribe(topics)
        self._notice()


def _names(topics: Iterable[str]) -> frozenset[str]:
    names = frozenset(several("topics", topics, "topic names"))
    if not names or not all(isinstance(name, str) and name for name in names):
        raise IllegalUse(f"subscribe() takes names of topics, not {sorted(map(repr, names))}; unsubscribe() ends it")
    return names


async def _within(wait: Awaitable[object], ms: float) -> None:
    """Wait for so long at most."""
    limit = asyncio.timeout(ms / 1000)
    try:
        async with limit:
            await wait
    except TimeoutError:
        if not limit.expired():
            raise


def _left(ends_ms: float) -> int:
    return max(1, int(ends_ms - now_ms()))
