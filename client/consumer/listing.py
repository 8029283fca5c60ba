"""ListOffsets: where partitions begin and end, and where a time lies in them.

Laws
    Leaders are asked side by side, one request for each; a partition that has moved is asked about again where it is
    now, the others are not.
    What is found is told as soon as it is known: one partition that cannot be asked holds up no other.
    The call ends by its deadline, however often it asks.
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
Told = Callable[[TopicPartition, Found], None]


class Listing:
    """One call: what is still to be found, who leads it, what a broker said last, else what went wrong."""

    def __init__(self, cluster: Cluster, times: Mapping[TopicPartition, int], isolation_level: str, told: Told) -> None:
        self.cluster, self.pending, self._told = cluster, dict(times), told
        self._isolation = ISOLATION[isolation_level]
        self._leaders: dict[TopicPartition, int] = {}  # of topics that the cluster's metadata do not follow
        self.failure: KafkaError | None = None

    async def round(self, left_ms: int) -> None:
        """Ask every leader once. Raises what asking again does not help against."""
        await self._look(left_ms)
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in self.pending:
            leader = self._leader(partition)
            if leader is not None:
                by_leader.setdefault(leader, []).append(partition)
        await _all([self._ask(node, partitions, left_ms) for node, partitions in by_leader.items()])

    def _leader(self, partition: TopicPartition) -> int | None:
        known = self.cluster.metadata.leader(partition)
        return self._leaders.get(partition) if known is None else known

    async def _look(self, left_ms: int) -> None:
        """Find leaders that are not known, also of topics that this client does not follow."""
        unknown = {partition for partition in self.pending if self.cluster.metadata.leader(partition) is None}
        if not unknown:
            return
        self._leaders.clear()
        names = sorted({partition.topic for partition in unknown})
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in names), allow_auto_topic_creation=False
        )
        try:
            answer = await self.cluster.ask_until(AnyNode(), request, lambda _: (), what=WHAT, timeout_ms=left_ms)
        except (Unreachable, TimedOut) as failure:
            self.failure = self.failure or failure
            return
        self._leaders = led(answer)
        for partition in unknown - set(self._leaders):
            self.failure = _no_leader(partition, answer)

    async def _ask(self, node: int, partitions: Collection[TopicPartition], left_ms: int) -> None:
        since = MAX_TIMESTAMP_SINCE if any(self.pending[one] == MAX_TIMESTAMP for one in partitions) else 0
        timeout_ms = min(left_ms, self.cluster.config.request_timeout_ms)
        try:
            answer = await self.cluster.ask(
                node, self._request(partitions, timeout_ms), timeout_ms=timeout_ms, version_min=since
            )
        except (Unreachable, TimedOut) as failure:
            self.failure = self.failure or failure
            self.cluster.request_refresh()
            self._leaders = {one: leader for one, leader in self._leaders.items() if leader != node}
            return
        self._take(answer)

    def _request(self, partitions: Collection[TopicPartition], timeout_ms: int) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for one in partitions:
            info = self.cluster.metadata.info(one)
            epoch = -1 if info is None else info.leader_epoch
            said = ListOffsetsPartition(
                partition_index=one.partition, current_leader_epoch=epoch, timestamp=self.pending[one]
            )
            topics.setdefault(one.topic, []).append(said)
        asked = tuple(ListOffsetsTopic(name=name, partitions=tuple(several)) for name, several in topics.items())
        return ListOffsetsRequest(isolation_level=self._isolation, topics=asked, timeout_ms=timeout_ms)

    def _take(self, answer: ListOffsetsResponse) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                self._take_one(TopicPartition(topic.name, one.partition_index), one)

    def _take_one(self, partition: TopicPartition, one: ListOffsetsPartitionResponse) -> None:
        if one.error_code == ErrorCode.NONE:
            if self.pending.pop(partition, None) is not None:
                found = OffsetAndTimestamp(one.offset, one.timestamp, one.leader_epoch) if one.offset >= 0 else None
                self._told(partition, found)
            return
        self.failure = failed(partition, one.error_code)
        decided = error_action(ListOffsetsRequest.KEY, one.error_code)
        if decided in FAILS_AT_ONCE:
            raise self.failure
        if decided is ErrorAction.REFRESH:
            self.cluster.request_refresh()
            self._leaders.pop(partition, None)


async def each_offset(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    told: Told,
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int | None = None,
) -> None:
    """As `list_offsets`, with each result told as it comes."""
    loop, config = asyncio.get_running_loop(), cluster.config
    ends = loop.time() + (config.default_api_timeout_ms if timeout_ms is None else timeout_ms) / 1000
    listing, rounds = Listing(cluster, times, isolation_level, told), 0
    while listing.pending:
        left_ms = int((ends - loop.time()) * 1000)
        if left_ms <= 0:
            raise _given_up(listing)
        await listing.round(left_ms)
        if listing.pending:
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
    """For each partition the offset at EARLIEST, LATEST, MAX_TIMESTAMP or the first at or after a time in ms; None when
    there is none. Asks every leader once, side by side; follows leaders that move. Raises TimedOut, UnknownTopic,
    BrokerError, Unsupported."""
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    await each_offset(cluster, times, found.__setitem__, isolation_level=isolation_level, timeout_ms=timeout_ms)
    return found


def led(answer: MetadataResponse) -> dict[TopicPartition, int]:
    """Who leads the partitions in an answer; those that nobody leads are left out."""
    return {
        TopicPartition(topic.name or "", one.partition_index): one.leader_id
        for topic in answer.topics
        for one in topic.partitions
        if one.leader_id >= 0
    }


def failed(partition: TopicPartition, code: int) -> BrokerError:
    """What a code for a partition is raised as."""
    kind = UnknownTopic if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else BrokerError
    return kind(code, WHAT, topic=partition.topic, partition=partition.partition)


def _no_leader(partition: TopicPartition, answer: MetadataResponse) -> BrokerError:
    for topic in answer.topics:
        if topic.name == partition.topic:
            there = any(one.partition_index == partition.partition for one in topic.partitions)
            unknown = ErrorCode.LEADER_NOT_AVAILABLE if there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return failed(partition, topic.error_code or unknown)
    return failed(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _given_up(listing: Listing) -> KafkaError:
    if isinstance(listing.failure, UnknownTopic):
        return listing.failure
    several = ", ".join(map(str, sorted(listing.pending)))
    error = TimedOut(f"{WHAT} of {several}: no answer in time; last: {listing.failure or 'nothing was answered'}")
    error.__cause__ = listing.failure
    return error


async def _all(works: Collection[Any]) -> None:
    """Side by side; when one of them fails, the others end, and that failure is raised."""
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
