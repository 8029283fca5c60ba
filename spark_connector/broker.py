"""The driver's questions to the brokers, asked and answered in turn: a synchronous face over the asyncio client.

Laws
    One loop and one client for each reader, made when they are first needed, so that a reader can be pickled before.
    Nothing runs between two questions.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from rota.client.config import ConsumerConfig
from rota.client.errors import UnknownTopic
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import Metadata
from rota.client.offsets.list_offsets import EARLIEST, LATEST, list_offsets
from rota.client.offsets.offset_commit import commit
from rota.client.offsets.offset_fetch import committed
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.spark_connector.high_watermark import HighWatermarkWait, lagging
from rota.spark_connector.offsets import Offsets
from rota.spark_connector.options import Topics

T = TypeVar("T")
COMMIT_MS: Final = 5_000  # no query waits longer to tell its group


class Brokers:
    """`client` are the client's settings by Kafka's names. `close()` when the query is over."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = dict(client)
        self._runner: asyncio.Runner | None = None
        self._cluster: Cluster | None = None
        self._config = ConsumerConfig.from_properties(self._client)

    def __getstate__(self) -> dict[str, str]:
        return self._client

    def __setstate__(self, client: dict[str, str]) -> None:
        Brokers.__init__(self, client)

    def partitions(self, topics: Topics) -> tuple[TopicPartition, ...]:
        """Every partition that the query reads now. Raises UnknownTopic, TimedOut, Unreachable."""
        return self._run(self._partitions(topics))

    def present(self, topics: Topics) -> tuple[TopicPartition, ...]:
        """Those that there are: what is not there is left out. Raises TimedOut, Unreachable."""
        return self._run(self._present(topics))

    def existing(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Those of the partitions that there are."""
        return self.present(Topics(assigned=tuple(sorted(partitions))))

    def require(self, topics: Topics) -> None:
        """Look at what the last question has told. Raises UnknownTopic for what is named and is not there."""
        assert self._cluster is not None
        _require(topics, self._cluster.metadata)

    def ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        """Of topics that the last question was about; those that have none, and are not there, are left out."""
        known = self._cluster.metadata if self._cluster is not None else Metadata()
        return {one: found for one in topics if (found := known.topic_id(one)) is not None}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Where the logs begin."""
        return self._listed(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Where they end, for this isolation level."""
        return self._listed(dict.fromkeys(partitions, LATEST))

    def latest_at_least(self, ends: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]) -> Offsets:
        """Where the logs end for this isolation level. Waits while a high watermark is below `ends` and the log is not:
        a result below `ends` means that the records are lost. Raises HighWatermarkBehind, KafkaError."""
        return self._run(self._latest_at_least(ends, tuple(partitions)))

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time in ms; None when there is none."""
        found = self._run(self._list(times))
        return {one: None if at is None else at.offset for one, at in found.items()}

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Where the group stands; None where it has committed nothing."""
        found = self._run(self._committed(group, tuple(partitions)))
        return {one: None if at is None else at.offset for one, at in found.items()}

    def commit(self, group: str, offsets: Mapping[TopicPartition, int], note: str = "") -> None:
        """As a simple consumer, within COMMIT_MS. Raises KafkaError: the group may have members."""
        self._run(self._commit(group, {one: OffsetAndMetadata(at, note) for one, at in offsets.items()}))

    def close(self) -> None:
        """Let go of connections and loop; a question asked later opens them again."""
        runner, cluster, self._runner, self._cluster = self._runner, self._cluster, None, None
        if runner is not None:
            with runner:
                if cluster is not None:
                    runner.run(cluster.close())

    def _run(self, question: Coroutine[Any, Any, T]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(question)

    async def _asked(self) -> Cluster:
        if self._cluster is None:
            cluster = Cluster(self._config)
            await cluster.start()
            self._cluster = cluster
        return self._cluster

    async def _partitions(self, topics: Topics) -> tuple[TopicPartition, ...]:
        found = await self._present(topics)
        _require(topics, (await self._asked()).metadata)
        return found

    async def _present(self, topics: Topics) -> tuple[TopicPartition, ...]:
        cluster = await self._asked()
        cluster.set_topics(
            None
            if topics.pattern is not None
            else {one.topic for one in topics.assigned or ()} | set(topics.names or ())
        )
        metadata = await _fresh(cluster)
        if topics.assigned is not None:
            return tuple(one for one in topics.assigned if metadata.info(one) is not None)
        return tuple(
            TopicPartition(name, number)
            for name in sorted(_names(topics, metadata))
            for number in metadata.partitions(name) or ()
        )

    async def _list(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        return await list_offsets(await self._asked(), times, isolation_level=self._config.isolation_level)

    async def _latest_at_least(
        self, ends: Mapping[TopicPartition, int], partitions: tuple[TopicPartition, ...]
    ) -> Offsets:
        wait = HighWatermarkWait(self._config)
        while True:
            listed = await self._list(dict.fromkeys(partitions, LATEST))
            marks = {partition: found.offset for partition, found in listed.items() if found is not None}
            behind = await lagging(self._config, marks, ends)
            if not behind:
                return marks
            partition, mark = min(behind.items())
            await wait.pause(partition, mark, ends[partition])

    def _listed(self, times: Mapping[TopicPartition, int]) -> Offsets:
        return {one: at.offset for one, at in self._run(self._list(times)).items() if at is not None}

    async def _committed(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Any]:
        return await committed(await self._asked(), GroupMetadata(group), partitions)

    async def _commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        await commit(await self._asked(), GroupMetadata(group), offsets, timeout_ms=COMMIT_MS)


async def _fresh(cluster: Cluster) -> Metadata:
    """What the brokers say now: also when they come back only after a while. Raises TimedOut, Unreachable."""
    known_before = iter((None,))
    return await cluster.until(lambda known: next(known_before, known), what="reading metadata")


def _names(topics: Topics, metadata: Metadata) -> Iterable[str]:
    if topics.names is not None:
        return topics.names
    pattern = re.compile(topics.pattern or "")
    return [one for one, info in metadata.topics.items() if not info.is_internal and pattern.fullmatch(one)]


def _require(topics: Topics, metadata: Metadata) -> None:
    """Raises UnknownTopic for what is named and is not there."""
    for one in topics.assigned or ():
        if metadata.info(one) is None:
            raise _unknown(one.topic, one.partition)
    for name in topics.names or ():
        if metadata.partitions(name) is None:
            raise _unknown(name)


def _unknown(topic: str, partition: int | None = None) -> UnknownTopic:
    return UnknownTopic(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "looking for partitions",
        topic=topic,
        partition=partition,
        remedy="Create it first.",
    )
