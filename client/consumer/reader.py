"""The low-level consumer (R16): partitions, leaders, offsets and single fetches; no group, no background work.

    async with PartitionReader(ClientConfig(bootstrap_servers="127.0.0.1:9092")) as reader:
        start = await reader.offset_at(partition, EARLIEST)
        async for record in reader.read(partition, start, stop=start + 100):
            ...

Laws
    A reader keeps nothing between calls but metadata: the same call gives the same records each time.
    A new leader is followed; retriable errors are retried for default_api_timeout_ms.
    Records begin at the requested offset, or after it where the log has a gap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rota.client.checks import INT32, topic_name, whole_number
from rota.client.config import ClientConfig
from rota.client.consumer.completed_fetch import CompletedFetch, outline
from rota.client.errors import BrokerError, CorruptRecords, IllegalUse, OffsetOutOfRange, TimedOut, UnknownTopic
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import BrokerInfo, Metadata
from rota.client.network.targets import Leader
from rota.client.offsets.list_offsets import EARLIEST, LATEST, list_offsets
from rota.client.types import ConsumerRecord, PartitionInfo, TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from rota.protocol.wire import UUID_ZERO

NAMES_UNTIL: Final = 12  # the last version that names topics by their names
LANE: Final = "fetch"
ISOLATION: Final = {"read_uncommitted": 0, "read_committed": 1}
NO_SESSION_EPOCH: Final = -1
NO_LIMIT: Final = 1 << 62
MAX_BYTES: Final = 1 << 20
NO_SUCH_TOPIC: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of one fetch. `next_offset`: where the next fetch begins, after the records and after batches without
    records for a consumer. Offsets are -1 when the broker did not send them. `leader` is the node that answered."""

    records: list[ConsumerRecord]
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class FetchedRaw:
    """As `Fetched`, with the bytes of whole batches as they lie in the log, the first of which may begin before the
    offset that was asked for; `aborted` are the transactions in them whose records are hidden."""

    batches: memoryview
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    leader: int
    leader_epoch: int
    aborted: tuple[AbortedTransaction, ...]


class PartitionReader:
    """Use it in `async with`. `isolation_level` read_committed hides open and aborted transactions; `check_crcs`
    checks each batch's checksum."""

    def __init__(
        self, config: ClientConfig, *, isolation_level: str = "read_uncommitted", check_crcs: bool = True
    ) -> None:
        if isolation_level not in ISOLATION:
            raise IllegalUse(f"isolation_level is {isolation_level!r}; it must be one of {', '.join(ISOLATION)}")
        self._config, self._isolation, self._check_crcs = config, isolation_level, check_crcs
        self._cluster = Cluster(config)
        self._topics: set[str] = set()

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Create it from Kafka's dotted names. Raises ConfigError."""
        return cls(ClientConfig.from_properties(properties))

    async def __aenter__(self) -> Self:
        await self._cluster.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._cluster.close()

    # who has what

    @property
    def brokers(self) -> tuple[BrokerInfo, ...]:
        """The brokers in the current metadata."""
        return tuple(self._cluster.metadata.brokers.values())

    async def partitions(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions in order, with leaders and replicas. Raises UnknownTopic, BrokerError, TimedOut."""
        self._follow_topic(topic_name(topic))

        def partitions(metadata: Metadata) -> list[PartitionInfo] | None:
            info = metadata.topics.get(topic)
            return [info.partitions[number] for number in sorted(info.partitions)] or None if info else None

        return await self._wait_for(partitions, topic, f"looking for the partitions of {topic}")

    async def leader(self, partition: TopicPartition) -> BrokerInfo:
        """The leader of the partition. Raises UnknownTopic, BrokerError, TimedOut."""
        self._follow_topic(partition.topic)

        def broker(metadata: Metadata) -> BrokerInfo | None:
            leader = metadata.leader(partition)
            return None if leader is None else metadata.brokers[leader]

        return await self._wait_for(broker, partition.topic, f"looking for the leader of {partition}")

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of a topic that this reader has requested; None when the broker has no topic ids."""
        return self._cluster.metadata.topic_id(topic)

    async def offset_at(self, partition: TopicPartition, time: int) -> int:
        """The offset at EARLIEST, at LATEST, or of the first record at or after a time in milliseconds; the end of the
        log when there is none. Raises UnknownTopic, TimedOut, BrokerError."""
        for at in (whole_number("time", time), LATEST):
            offsets = await list_offsets(self._cluster, {partition: at}, isolation_level=self._isolation)
            offset = offsets.get(partition)
            if offset is not None:
                return offset.offset
        raise TimedOut(f"{partition} has no end")  # no broker says so

    # records

    async def fetch(
        self,
        partition: TopicPartition,
        offset: int,
        *,
        max_bytes: int = MAX_BYTES,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
    ) -> Fetched:
        """The records from `offset` on, about `max_bytes` of them but at least a batch; none when none came within
        `max_wait_ms`. Raises OffsetOutOfRange, UnknownTopic, CorruptRecords, BrokerError, TimedOut."""
        node, data = await self._data(partition, offset, max_bytes, max_wait_ms, min_bytes)
        fetch = CompletedFetch(
            partition,
            offset,
            data.records or b"",
            aborted=(data.aborted_transactions or ()) if ISOLATION[self._isolation] else None,
            check_crcs=self._check_crcs,
        )
        records = fetch.take(NO_LIMIT)
        return Fetched(records, fetch.next_offset, *_offsets_of(data), node, fetch.leader_epoch)

    async def fetch_raw(
        self,
        partition: TopicPartition,
        offset: int,
        *,
        max_bytes: int = MAX_BYTES,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
    ) -> FetchedRaw:
        """As `fetch`, undecoded. Checksums are not checked."""
        node, data = await self._data(partition, offset, max_bytes, max_wait_ms, min_bytes)
        records = memoryview(data.records or b"")
        size, end = outline(records, offset)
        if end is None and len(records):
            raise CorruptRecords(f"{partition} at offset {offset}: no whole batch was answered", partition, offset)
        next_offset, epoch = end if end is not None else (offset, -1)
        aborted = tuple(data.aborted_transactions or ())
        return FetchedRaw(records[:size], next_offset, *_offsets_of(data), node, epoch, aborted)

    async def read(
        self, partition: TopicPartition, start: int, stop: int | None = None
    ) -> AsyncIterator[ConsumerRecord]:
        """Record after record from offset `start` (or EARLIEST, LATEST) to before `stop`; LATEST: what is there now;
        None: for ever, waiting for what is written. Raises as `fetch`."""
        offset = whole_number("start", start)
        if offset < 0:
            offset = await self.offset_at(partition, offset)
        if stop is not None and whole_number("stop", stop) < 0:
            stop = await self.offset_at(partition, stop)
        while stop is None or offset < stop:
            fetched = await self.fetch(partition, offset)
            for record in fetched.records:
                if stop is not None and record.offset >= stop:
                    return
                yield record
            offset = fetched.next_offset

    # asking

    def _follow_topic(self, topic: str) -> None:
        if topic not in self._topics:
            self._topics.add(topic)
            self._cluster.set_topics(self._topics)

    async def _wait_for(self, look: Callable[[Metadata], T | None], topic: str, what: str) -> T:
        def look_or_raise(metadata: Metadata) -> T | None:
            info = metadata.topics.get(topic)
            if info is not None and info.is_refused:
                kind = UnknownTopic if info.error in NO_SUCH_TOPIC else BrokerError
                raise kind(info.error, what, topic=topic)
            return look(metadata)

        try:
            return await self._cluster.until(look_or_raise, what=what)
        except TimedOut as late:
            known = self._cluster.metadata.topics.get(topic)
            if known is not None and known.error in NO_SUCH_TOPIC:
                raise UnknownTopic(known.error, what, topic=topic) from late
            raise

    async def _data(
        self, partition: TopicPartition, offset: int, max_bytes: int, max_wait_ms: int, min_bytes: int
    ) -> tuple[int, PartitionData]:
        """The node that answered, and its response without an error. Raises IllegalArgument for what is no integer,
        IllegalUse for one that is out of range."""
        whole_number("offset", offset)
        for parameter, number in {"max_bytes": max_bytes, "max_wait_ms": max_wait_ms, "min_bytes": min_bytes}.items():
            whole_number(parameter, number, INT32)
        await self.leader(partition)
        by_id = self._cluster.metadata.topic_id(partition.topic) is not None
        leader_id = -1

        def request(node: int) -> FetchRequest:
            nonlocal leader_id
            leader_id = node
            return self._request(partition, offset, max_bytes, max_wait_ms, min_bytes)

        answer = await self._cluster.send_request_until(
            Leader(partition),
            request,
            _codes,
            what=f"fetching {partition} at offset {offset}",
            version_max=None if by_id else NAMES_UNTIL,
            lane=LANE,
        )
        code = next((code for code in _codes(answer) if code), 0)
        if code:
            raise await self._error_for(partition, offset, code, leader_id)
        return leader_id, answer.responses[0].partitions[0]

    def _request(
        self, partition: TopicPartition, offset: int, max_bytes: int, max_wait_ms: int, min_bytes: int
    ) -> FetchRequest:
        metadata = self._cluster.metadata
        info = metadata.info(partition)
        requested = FetchPartition(
            partition=partition.partition,
            current_leader_epoch=-1 if info is None else info.leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
        )
        topic_id = metadata.topic_id(partition.topic) or UUID_ZERO
        return FetchRequest(
            max_wait_ms=min(max_wait_ms, self._config.request_timeout_ms // 2),
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=ISOLATION[self._isolation],
            session_epoch=NO_SESSION_EPOCH,
            topics=(FetchTopic(topic=partition.topic, topic_id=topic_id, partitions=(requested,)),),
            rack_id="",  # with a rack the leader may send elsewhere instead of answering
        )

    async def _error_for(self, partition: TopicPartition, offset: int, code: int, node: int) -> Exception:
        what = f"fetching at offset {offset}"
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start, end = await self.offset_at(partition, EARLIEST), await self.offset_at(partition, LATEST)
            message = f"offset {offset} of {partition} is not in its log, which begins at {start} and ends at {end}"
            return OffsetOutOfRange(message, {partition: offset})
        kind = UnknownTopic if code in NO_SUCH_TOPIC else BrokerError
        return kind(code, what, topic=partition.topic, partition=partition.partition, broker=str(node))


def _codes(answer: FetchResponse) -> list[int]:
    return [answer.error_code, *(data.error_code for topic in answer.responses for data in topic.partitions)]


def _offsets_of(data: PartitionData) -> tuple[int, int, int]:
    return data.high_watermark, data.last_stable_offset, data.log_start_offset
