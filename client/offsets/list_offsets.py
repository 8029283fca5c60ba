"""ListOffsets, key 2: the first and the last offset of partitions, and the offset of a time.

Laws
    Leaders get their requests concurrently, one for each. A partition whose leader moved is requested again at the new
    leader, the others are not.
    Each offset is reported as soon as it is known: a partition that has no response delays no other.
    The call ends by its deadline, whatever the number of requests.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from rota.client.errors import BrokerError, KafkaError, TimedOut, UnknownTopic, Unreachable
from rota.client.network.backoff import wait_ms
from rota.client.network.cluster import Cluster
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.network.metadata import REFUSED
from rota.client.network.targets import AnyNode
from rota.client.types import OffsetAndTimestamp, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3  # as ListOffsets says them
MAX_TIMESTAMP_SINCE: Final = 7  # KIP-734
ISOLATION: Final = {"read_uncommitted": 0, "read_committed": 1}
WHAT: Final = "listing offsets"
FAILS_AT_ONCE: Final = (ErrorAction.FATAL, ErrorAction.REJOIN, ErrorAction.RESET)

Found = OffsetAndTimestamp | None
OnFound = Callable[[TopicPartition, Found], None]


class OffsetLookup:
    """One call of `each_offset`. `pending`: the partitions without an offset yet, with the requested time. `failure`:
    the last error. `has_another_time`: the last round has found that there is nothing at the time of a partition."""

    def __init__(
        self,
        cluster: Cluster,
        times: Mapping[TopicPartition, int],
        isolation_level: str,
        on_found: OnFound,
        otherwise: int | None = None,
    ) -> None:
        self.cluster, self.pending, self._on_found = cluster, dict(times), on_found
        self._isolation, self._otherwise, self.has_another_time = ISOLATION[isolation_level], otherwise, False
        self._leaders: dict[TopicPartition, int] = {}  # of topics that the cluster's metadata do not follow
        self.failure: KafkaError | None = None
        self._refused: BrokerError | None = None  # that is not retriable, of a topic or a partition

    async def round(self, left_ms: int) -> None:
        """Send one request to each leader. Raises the errors that are not retriable."""
        self._begin()
        await self._find_leaders(left_ms)
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in self.pending:
            leader = self._leader(partition)
            if leader is not None:
                by_leader.setdefault(leader, []).append(partition)
        await _all([self._send_request(node, partitions, left_ms) for node, partitions in by_leader.items()])
        if self._refused is not None and not self.has_another_time:
            raise self._refused

    def _begin(self) -> None:
        self._refused, self.has_another_time = None, False

    def _leader(self, partition: TopicPartition) -> int | None:
        known = self.cluster.metadata.leader(partition)
        return self._leaders.get(partition) if known is None else known

    async def _find_leaders(self, left_ms: int) -> None:
        """Look up the unknown leaders, also of topics that are not in the cluster's metadata."""
        unknown = {partition for partition in self.pending if self.cluster.metadata.leader(partition) is None}
        if not unknown:
            return
        self._leaders.clear()
        names = sorted({partition.topic for partition in unknown})
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in names), allow_auto_topic_creation=False
        )
        try:
            response = await self.cluster.send_request_until(
                AnyNode(), request, lambda _: (), what=WHAT, timeout_ms=left_ms
            )
        except (Unreachable, TimedOut) as failure:
            self.failure = self.failure or failure
            return
        self._leaders = leaders_in(response)
        for partition in unknown - set(self._leaders):
            self.failure = error = _no_leader(partition, response)
            if error.code in REFUSED:
                self._refused = error

    async def _send_request(self, node: int, partitions: Collection[TopicPartition], left_ms: int) -> None:
        since = MAX_TIMESTAMP_SINCE if any(self.pending[partition] == MAX_TIMESTAMP for partition in partitions) else 0
        timeout_ms = min(left_ms, self.cluster.config.request_timeout_ms)
        try:
            response = await self.cluster.send_request_within(
                timeout_ms, node, self._request(partitions, timeout_ms), version_min=since
            )
        except (Unreachable, TimedOut) as failure:
            self.failure = self.failure or failure
            self.cluster.request_refresh()
            self._leaders = {partition: leader for partition, leader in self._leaders.items() if leader != node}
            return
        self._take(response)

    def _request(self, partitions: Collection[TopicPartition], timeout_ms: int) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for partition in partitions:
            info = self.cluster.metadata.info(partition)
            epoch = -1 if info is None else info.leader_epoch
            request_partition = ListOffsetsPartition(
                partition_index=partition.partition, current_leader_epoch=epoch, timestamp=self.pending[partition]
            )
            topics.setdefault(partition.topic, []).append(request_partition)
        request_topics = tuple(
            ListOffsetsTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items()
        )
        return ListOffsetsRequest(isolation_level=self._isolation, topics=request_topics, timeout_ms=timeout_ms)

    def _take(self, response: ListOffsetsResponse) -> None:
        for topic in response.topics:
            for data in topic.partitions:
                self._take_partition(TopicPartition(topic.name, data.partition_index), data)

    def _take_partition(self, partition: TopicPartition, data: ListOffsetsPartitionResponse) -> None:
        if data.error_code == ErrorCode.NONE:
            if partition in self.pending:
                self._answered(partition, data)
            return
        self.failure = error = partition_error(partition, data.error_code)
        action = error_action(ListOffsetsRequest.KEY, data.error_code)
        if action in FAILS_AT_ONCE:
            self._refused = error  # raised when the other partitions of this round have their offsets
        if action is ErrorAction.REFRESH:
            self.cluster.request_refresh()
            self._leaders.pop(partition, None)

    def _answered(self, partition: TopicPartition, data: ListOffsetsPartitionResponse) -> None:
        requested = self.pending.pop(partition)
        if data.offset >= 0:
            self._on_found(partition, OffsetAndTimestamp(data.offset, data.timestamp, data.leader_epoch))
        elif self._otherwise is None or self._otherwise == requested:
            self._on_found(partition, None)
        else:
            self.pending[partition], self.has_another_time = self._otherwise, True


async def each_offset(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    on_found: OnFound,
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int | None = None,
    otherwise: int | None = None,
) -> None:
    """As `list_offsets`; calls `on_found(partition, offset)` as each offset arrives. `otherwise`: the time whose offset
    a partition gets that has none at its own."""
    loop, config = asyncio.get_running_loop(), cluster.config
    ends = loop.time() + (config.default_api_timeout_ms if timeout_ms is None else timeout_ms) / 1000
    lookup, rounds = OffsetLookup(cluster, times, isolation_level, on_found, otherwise), 0
    while lookup.pending:
        left_ms = int((ends - loop.time()) * 1000)
        if left_ms <= 0:
            raise _given_up(lookup)
        await lookup.round(left_ms)
        if lookup.pending and not lookup.has_another_time:
            rounds += 1
            pause_ms = wait_ms(rounds, config.retry_backoff_ms, config.retry_backoff_max_ms, random.random())
            await asyncio.sleep(min(pause_ms / 1000, max(0.0, ends - loop.time())))


async def list_offsets(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Return for each partition the offset at EARLIEST, LATEST or MAX_TIMESTAMP, or the first offset at or after a time
    in ms; None if there is none. Sends one request to each leader, concurrently, and follows moved leaders. Raises
    TimedOut, UnknownTopic, BrokerError, Unsupported."""
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    await each_offset(cluster, times, found.__setitem__, isolation_level=isolation_level, timeout_ms=timeout_ms)
    return found


def leaders_in(response: MetadataResponse) -> dict[TopicPartition, int]:
    """Return the leader of each partition in the response, without partitions that have none."""
    return {
        TopicPartition(topic.name or "", partition.partition_index): partition.leader_id
        for topic in response.topics
        for partition in topic.partitions
        if partition.leader_id >= 0
    }


def partition_error(partition: TopicPartition, code: int) -> BrokerError:
    """The exception for the error code of a partition."""
    kind = UnknownTopic if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else BrokerError
    return kind(code, WHAT, topic=partition.topic, partition=partition.partition)


def _no_leader(partition: TopicPartition, response: MetadataResponse) -> BrokerError:
    for topic in response.topics:
        if topic.name == partition.topic:
            exists = any(known.partition_index == partition.partition for known in topic.partitions)
            unknown = ErrorCode.LEADER_NOT_AVAILABLE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return partition_error(partition, topic.error_code or unknown)
    return partition_error(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _given_up(lookup: OffsetLookup) -> KafkaError:
    if isinstance(lookup.failure, UnknownTopic):
        return lookup.failure
    pending = ", ".join(map(str, sorted(lookup.pending)))
    error = TimedOut(f"{WHAT} of {pending}: no answer in time; last: {lookup.failure or 'nothing was answered'}")
    error.__cause__ = lookup.failure
    return error


async def _all(works: Collection[Any]) -> None:
    """Run the coroutines concurrently. When one fails, cancel the others and raise its error."""
    if len(works) == 1:
        await next(iter(works))
        return
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
