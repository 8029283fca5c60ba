"""The driver's connection to the brokers: a synchronous face over the asyncio client.

Laws
    Each reader has one event loop and one client, created at the first call, so that a reader can be pickled before.
    Nothing runs between two calls.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from rota.client.config import ConsumerConfig
from rota.client.consumer.reader import PartitionReader
from rota.client.errors import TimedOut, UnknownTopic
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import Metadata
from rota.client.offsets.list_offsets import EARLIEST, LATEST, list_offsets
from rota.client.offsets.offset_commit import commit
from rota.client.offsets.offset_fetch import committed
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.spark_connector.high_watermark import HighWatermarkWait, existing_ends
from rota.spark_connector.offsets import Offsets
from rota.spark_connector.options import TopicSelection
from rota.spark_connector.task_clients import SharedReader, refreshed

T = TypeVar("T")
COMMIT_TIMEOUT_MS: Final = 5_000  # a query waits no longer for a commit
EXISTENCE_CHECK_MS: Final = 2_000  # partitions without an answer for so long may have been deleted: metadata are read


class DriverClient:
    """`settings` are the client's settings by Kafka's names. Call `close()` when the query is over."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._runner: asyncio.Runner | None = None
        self._cluster: Cluster | None = None
        self._config = ConsumerConfig.from_properties(self._settings)

    def __getstate__(self) -> dict[str, str]:
        return self._settings

    def __setstate__(self, settings: dict[str, str]) -> None:
        DriverClient.__init__(self, settings)

    def partitions(self, topics: TopicSelection) -> tuple[TopicPartition, ...]:
        """The partitions that the query reads now. Raises UnknownTopic, TimedOut, Unreachable."""
        return self._run(self._partitions(topics))

    def present_partitions(self, topics: TopicSelection) -> tuple[TopicPartition, ...]:
        """As `partitions`, without the topics and partitions that do not exist. Raises TimedOut, Unreachable."""
        return self._run(self._present_partitions(topics))

    def existing(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Return those of the partitions that exist. Raises TimedOut, Unreachable."""
        return self.present_partitions(TopicSelection(assigned=tuple(sorted(partitions))))

    def require(self, topics: TopicSelection) -> None:
        """Check the metadata of the last call. Raises UnknownTopic for a named topic or partition that is missing."""
        assert self._cluster is not None
        _require(topics, self._cluster.metadata)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        """The ids of topics of the last call; a topic that is missing or has no id is left out."""
        metadata = self._cluster.metadata if self._cluster is not None else Metadata()
        ids = {topic: topic_id for topic in topics if (topic_id := metadata.topic_id(topic)) is not None}
        return {topic: topic_id for topic, topic_id in ids.items() if metadata.has_topic(topic, topic_id)}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The start offsets of the logs."""
        return self._list_existing(dict.fromkeys(partitions, EARLIEST))

    def earliest_of_existing(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """As `earliest`, without partitions that were deleted meanwhile. Raises KafkaError."""
        listed = self._run(self._list_of_existing(tuple(partitions), EARLIEST))
        return {partition: at.offset for partition, at in listed.items() if at is not None}

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The end offsets of the logs, for this isolation level."""
        return self._list_existing(dict.fromkeys(partitions, LATEST))

    def latest_at_least(self, ends: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]) -> Offsets:
        """As `latest`, without partitions that were deleted meanwhile. Waits while a high watermark is below `ends` and
        the log continues: a result below `ends` means that records are lost. Raises HighWatermarkBehind, KafkaError."""
        return self._run(self._latest_at_least(ends, tuple(partitions)))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time in ms; None where no record is that young."""
        found = self._run(self._list_offsets(times))
        return {partition: None if at is None else at.offset for partition, at in found.items()}

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """The committed offsets of the group; None where it has committed nothing."""
        found = self._run(self._committed(group, tuple(partitions)))
        return {partition: None if at is None else at.offset for partition, at in found.items()}

    def commit(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """Commit as a consumer without membership, within COMMIT_TIMEOUT_MS. Raises KafkaError, for instance when the
        group has members."""
        self._run(
            self._commit(
                group, {partition: OffsetAndMetadata(offset, metadata) for partition, offset in offsets.items()}
            )
        )

    def run(self, call: Callable[[PartitionReader], Coroutine[Any, Any, T]], topics: Iterable[str]) -> T:
        """The result of a call with a reader of topics whose metadata the last call has read."""
        return self._run(self._call(call, topics))

    def close(self) -> None:
        """Close connections and loop; a later call opens them again."""
        runner, cluster, self._runner, self._cluster = self._runner, self._cluster, None, None
        if runner is not None:
            with runner:
                if cluster is not None:
                    runner.run(cluster.close())

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(call)

    async def _connected(self) -> Cluster:
        if self._cluster is None:
            cluster = Cluster(self._config)
            await cluster.start()
            self._cluster = cluster
        return self._cluster

    async def _call(self, call: Callable[[PartitionReader], Coroutine[Any, Any, T]], topics: Iterable[str]) -> T:
        return await call(SharedReader(self._config, await self._connected(), topics))

    async def _partitions(self, topics: TopicSelection) -> tuple[TopicPartition, ...]:
        present = await self._present_partitions(topics)
        _require(topics, (await self._connected()).metadata)
        return present

    async def _present_partitions(self, topics: TopicSelection) -> tuple[TopicPartition, ...]:
        cluster = await self._connected()
        names = {partition.topic for partition in topics.assigned or ()} | set(topics.names or ())
        cluster.set_topics(None if topics.pattern is not None else names)
        metadata = await refreshed(cluster)
        if topics.assigned is not None:
            return tuple(partition for partition in topics.assigned if metadata.info(partition) is not None)
        return tuple(
            TopicPartition(topic, number)
            for topic in sorted(_topic_names(topics, metadata))
            for number in metadata.partitions(topic) or ()
        )

    async def _list_offsets(
        self, times: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Any]:
        cluster, isolation_level = await self._connected(), self._config.isolation_level
        return await list_offsets(cluster, times, isolation_level=isolation_level, timeout_ms=timeout_ms)

    def _list_existing(self, times: Mapping[TopicPartition, int]) -> Offsets:
        found = self._run(self._list_offsets(times))
        return {partition: at.offset for partition, at in found.items() if at is not None}

    async def _latest_at_least(
        self, ends: Mapping[TopicPartition, int], partitions: tuple[TopicPartition, ...]
    ) -> Offsets:
        wait = HighWatermarkWait(self._config)
        while True:
            listed = await self._list_of_existing(partitions, LATEST)
            marks = {partition: at.offset for partition, at in listed.items() if at is not None}
            ends = await existing_ends(self._config, marks, ends)
            behind = [partition for partition, mark in marks.items() if mark < ends.get(partition, mark)]
            if not behind:
                return marks
            partition = min(behind)
            await wait.pause(partition, marks[partition], ends[partition])

    async def _list_of_existing(
        self, partitions: tuple[TopicPartition, ...], time_ms: int
    ) -> dict[TopicPartition, Any]:
        """The offsets at a time, of those of the partitions that still exist. A broker that is slower than the check
        for deleted ones gets more time with each check. Raises KafkaError."""
        deadline = time.monotonic() + self._config.default_api_timeout_ms / 1000
        check_ms = EXISTENCE_CHECK_MS
        while True:
            left_ms = max(1, int((deadline - time.monotonic()) * 1000))
            try:
                times = dict.fromkeys(partitions, time_ms)
                return await self._list_offsets(times, min(left_ms, check_ms))
            except TimedOut:
                if time.monotonic() >= deadline:
                    raise
                check_ms *= 2
            except UnknownTopic:
                existing = await self._present_partitions(TopicSelection(assigned=partitions))
                if len(existing) == len(partitions) and time.monotonic() >= deadline:
                    raise
                partitions = existing

    async def _committed(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Any]:
        return await committed(await self._connected(), GroupMetadata(group), partitions)

    async def _commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        await commit(await self._connected(), GroupMetadata(group), offsets, timeout_ms=COMMIT_TIMEOUT_MS)


def _topic_names(topics: TopicSelection, metadata: Metadata) -> Iterable[str]:
    if topics.names is not None:
        return topics.names
    pattern = re.compile(topics.pattern or "")
    return [name for name, info in metadata.topics.items() if not info.is_internal and pattern.fullmatch(name)]


def _require(topics: TopicSelection, metadata: Metadata) -> None:
    """Raises UnknownTopic for a named topic or partition that is missing."""
    for partition in topics.assigned or ():
        if metadata.info(partition) is None:
            raise _unknown_topic(partition.topic, partition.partition)
    for name in topics.names or ():
        if metadata.partitions(name) is None:
            raise _unknown_topic(name)


def _unknown_topic(topic: str, partition: int | None = None) -> UnknownTopic:
    return UnknownTopic(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "looking for partitions",
        topic=topic,
        partition=partition,
        remedy="Create it first.",
    )
