"""The decisions of queries in a compacted topic: the last record with a query's id as key is its decision.

Laws
    A process that opens the topic for writing fences those that opened it before for the query, and then reads: a
    decision is a compare-and-set. It is written in a transaction, so a fenced process leaves none.
    The last decision is found whatever other queries write: reading ends at the high watermark of its begin, and waits
    for open transactions below it.
    All decisions are in partition 0: more partitions do not move them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import fields
from types import TracebackType
from typing import Final, Self

from rota.client.admin.admin import Admin
from rota.client.admin.topics import NewTopic
from rota.client.config import AdminConfig, ClientConfig, ProducerConfig
from rota.client.consumer.reader import PartitionReader
from rota.client.errors import AdminFailed, TimedOut
from rota.client.offsets.list_offsets import EARLIEST, LATEST
from rota.client.producer.producer import Producer
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.spark_connector.two_phase.decision import Decision, decode, encode

COMPACTED: Final = {"cleanup.policy": "compact"}
TIMEOUT_MS: Final = 10_000  # of the transaction of a decision: what a killed driver leaves open
WINDOW_RECORDS: Final = 64  # read from the end first
WINDOW_GROWTH: Final = 16


class DecisionTopic:
    """`async with`: the decisions of `query`, to write them; creates the topic. `transactional_id` is that of the
    writer, the same for each process of the query. Raises KafkaError."""

    def __init__(self, settings: Mapping[str, str], topic: str, query: str, transactional_id: str) -> None:
        self._settings, self._topic, self._query = dict(settings), topic, query
        own = {"transactional.id": transactional_id, "transaction.timeout.ms": str(TIMEOUT_MS), "linger.ms": "0"}
        self._producer = Producer(ProducerConfig.from_properties({**self._settings, **own}))

    async def __aenter__(self) -> Self:
        await create_topic(self._settings, self._topic)
        await self._producer.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._producer.__aexit__(kind, error, at)

    async def last(self) -> Decision | None:
        """The last decision; None before the first one. Raises UnknownDecision, KafkaError."""
        return await last_decision(self._settings, self._topic, self._query, is_exact=True)

    async def write(self, decision: Decision) -> None:
        """Returns when the decision is durable. Raises ProducerFenced when another process has opened the topic."""
        async with self._producer.transaction():
            await self._producer.send_and_wait(self._topic, encode(decision), self._query.encode(), partition=0)


async def last_decision(settings: Mapping[str, str], topic: str, query: str, *, is_exact: bool) -> Decision | None:
    """The last decision of the query; None when there is none. `is_exact`: wait for the transactions that are open;
    else a decision that is being written may be missed. Raises UnknownDecision, KafkaError."""
    config = ClientConfig.from_properties(client_settings(settings))
    async with PartitionReader(config, isolation_level="read_committed") as reader:
        partition = TopicPartition(topic, 0)
        begin = await reader.offset_at(partition, EARLIEST)
        end = await (_high_watermark(config, partition) if is_exact else reader.offset_at(partition, LATEST))
        window, value, stop = WINDOW_RECORDS, None, end
        while value is None and stop > begin:
            start = max(begin, end - window)
            value = await _last_value(reader, partition, query.encode(), start, stop, config.default_api_timeout_ms)
            stop, window = start, window * WINDOW_GROWTH
    return decode(value) if value else None


async def _high_watermark(config: ClientConfig, partition: TopicPartition) -> int:
    async with PartitionReader(config) as reader:
        return await reader.offset_at(partition, LATEST)


async def _last_value(
    reader: PartitionReader, partition: TopicPartition, key: bytes, start: int, stop: int, timeout_ms: int
) -> bytes | None:
    """The value of the last committed record with the key in start ≤ offset < stop; a tombstone is empty."""
    value = None
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    while start < stop:
        fetched = await reader.fetch(partition, start)
        for record in fetched.records:
            if record.key == key and record.offset < stop:
                value = record.value or b""
        start = fetched.next_offset
        if start < stop and asyncio.get_running_loop().time() >= deadline:
            raise TimedOut(
                f"{partition} has an open transaction at offset {fetched.last_stable_offset}, and what is after it "
                f"could not be read within {timeout_ms} ms; it ends by its timeout: start the query again"
            )
    return value


async def create_topic(settings: Mapping[str, str], topic: str) -> None:
    """Create the decision topic where it is missing. Raises AdminFailed."""
    async with Admin(AdminConfig.from_properties(client_settings(settings))) as admin:
        try:
            await admin.describe_topics([topic])
        except AdminFailed as error:
            if error.codes != {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
                raise
            try:
                await admin.create_topics([NewTopic(topic, 1, configs=COMPACTED)])
            except AdminFailed as refused:
                if refused.codes != {ErrorCode.TOPIC_ALREADY_EXISTS}:  # by a task of the same moment
                    raise


def client_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a producer that every client has."""
    own = {field.name for field in fields(ProducerConfig)} - {field.name for field in fields(ClientConfig)}
    return {name: value for name, value in settings.items() if name.replace(".", "_") not in own}
