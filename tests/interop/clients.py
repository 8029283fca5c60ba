"""The three Python clients as group members."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from tests.interop.kit import Record
from tests.interop.members import BlockingMember, Member, Partition

KAFKA_PYTHON_ASSIGNORS: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
AIOKAFKA_ASSIGNORS: dict[str, Any] = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}

POLL_S = 0.02  # librdkafka's consume() waits that long even when records are there
# kafka-python forgets a join that completes just when poll() runs out of time, so its polls are long; records end them
LONG_POLL_S = 0.4
# with a pattern its poll() reads the metadata before it looks at a join under way, and forgets one that completes then
PATTERN_POLL_S = 2.0


def named(partitions: Any) -> frozenset[Partition]:
    """A client's partitions as (topic, number)."""
    return frozenset((p.topic, p.partition) for p in partitions)


class Confluent(BlockingMember):
    """librdkafka."""

    def _open(self) -> confluent_kafka.Consumer:
        given = self.settings
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": given.group,
            "client.id": given.client_id,
            "partition.assignment.strategy": ",".join(given.assignors),
            "session.timeout.ms": given.session_ms,
            "heartbeat.interval.ms": given.heartbeat_ms,
            "max.poll.interval.ms": given.poll_interval_ms,
            "topic.metadata.refresh.interval.ms": given.metadata_age_ms,
            "auto.offset.reset": given.reset,
            "enable.auto.commit": given.auto_commit,
            "auto.commit.interval.ms": 100,
            "fetch.wait.max.ms": 50,
        }
        if given.instance is not None:
            config["group.instance.id"] = given.instance
        consumer = confluent_kafka.Consumer(config)
        topics = [given.pattern] if given.pattern else list(given.topics)
        if topics:
            self._subscribe(consumer, topics)
        return consumer

    def _subscribe(self, consumer: confluent_kafka.Consumer, topics: list[str]) -> None:
        consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def subscribe(self, topics: Sequence[str]) -> None:
        self.run_in_thread(lambda consumer: self._subscribe(consumer, list(topics)))

    def commit(self, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        position = confluent_kafka.TopicPartition(topic, partition, offset, metadata)
        (result,) = self.run_in_thread(lambda consumer: consumer.commit(offsets=[position], asynchronous=False))
        if result.error:
            raise confluent_kafka.KafkaException(result.error)

    def committed(self, topic: str, partition: int) -> int | None:
        position = confluent_kafka.TopicPartition(topic, partition)
        (found,) = self.run_in_thread(lambda consumer: consumer.committed([position], timeout=10))
        return found.offset if found.offset >= 0 else None

    def position(self, topic: str, partition: int) -> int | None:
        if (topic, partition) not in self.owned:
            return None
        position = confluent_kafka.TopicPartition(topic, partition)
        (found,) = self.run_in_thread(lambda consumer: consumer.position([position]))
        # librdkafka has no position before the first record: a reset has been done when the end is known
        low_high = self.run_in_thread(lambda consumer: consumer.get_watermark_offsets(position, cached=True))
        return found.offset if found.offset >= 0 else max(low_high[1], -1)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.run_in_thread(lambda consumer: consumer.seek(confluent_kafka.TopicPartition(topic, partition, offset)))

    def _assigned(self, _consumer: Any, partitions: list[Any]) -> None:
        self._gained(named(partitions))

    def _revoked(self, _consumer: Any, partitions: list[Any]) -> None:
        self._gave_up(named(partitions))

    def _poll(self, consumer: confluent_kafka.Consumer) -> list[Record]:
        records = []
        for message in consumer.consume(500, POLL_S):
            if message.error() is None:
                records.append(
                    Record(message.topic(), message.partition(), message.offset(), message.key(), message.value())
                )
        return records


class _Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._member._gained(named(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._member._gave_up(named(revoked))


class KafkaPython(BlockingMember):
    """kafka-python."""

    def _open(self) -> kafka.KafkaConsumer:
        given = self.settings
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=given.group,
            client_id=given.client_id,
            group_instance_id=given.instance,
            partition_assignment_strategy=[KAFKA_PYTHON_ASSIGNORS[name] for name in given.assignors],
            session_timeout_ms=given.session_ms,
            heartbeat_interval_ms=given.heartbeat_ms,
            max_poll_interval_ms=given.poll_interval_ms,
            metadata_max_age_ms=given.metadata_age_ms,
            auto_offset_reset=given.reset,
            enable_auto_commit=given.auto_commit,
            auto_commit_interval_ms=100,
            fetch_max_wait_ms=50,
            retry_backoff_ms=20,
            metrics_enabled=False,
        )
        if given.pattern or given.topics:
            consumer.subscribe(topics=list(given.topics), pattern=given.pattern, listener=_Listener(self))
        return consumer

    def subscribe(self, topics: Sequence[str]) -> None:
        self.run_in_thread(lambda consumer: consumer.subscribe(topics=list(topics), listener=_Listener(self)))

    def commit(self, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        position = {kafka.TopicPartition(topic, partition): kafka.OffsetAndMetadata(offset, metadata, -1)}
        self.run_in_thread(lambda consumer: consumer.commit(position, timeout_ms=10_000))

    def committed(self, topic: str, partition: int) -> int | None:
        return self.run_in_thread(lambda consumer: consumer.committed(kafka.TopicPartition(topic, partition)))

    def position(self, topic: str, partition: int) -> int | None:
        if (topic, partition) not in self.owned:
            return None
        return self.run_in_thread(
            lambda consumer: consumer.position(kafka.TopicPartition(topic, partition), timeout_ms=5_000)
        )

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.run_in_thread(lambda consumer: consumer.seek(kafka.TopicPartition(topic, partition), offset))

    def _poll(self, consumer: kafka.KafkaConsumer) -> list[Record]:
        seconds = PATTERN_POLL_S if self.settings.pattern else LONG_POLL_S
        return [
            Record(record.topic, record.partition, record.offset, record.key, record.value)
            for records in consumer.poll(int(seconds * 1000)).values()
            for record in records
        ]


class _AioListener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: Member) -> None:
        self._member = member

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self._member._gained(named(assigned))

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self._member._gave_up(named(revoked))


class Aiokafka(Member):
    """aiokafka, with an event loop of its own."""

    def _live(self) -> None:
        try:
            asyncio.run(self._consume())
        except BaseException as failure:  # noqa: BLE001 - told to the test by check()
            self.failure = failure

    async def _consume(self) -> None:
        consumer = self._open()
        try:
            await consumer.start()
            while not self._stop.is_set():
                if self._paused.is_set():
                    await asyncio.sleep(POLL_S)
                    continue
                await self._answer(consumer)
                for records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).values():
                    self.records.extend(Record(r.topic, r.partition, r.offset, r.key, r.value) for r in records)
        finally:
            await self._end(consumer)

    async def _end(self, consumer: Any) -> None:
        """Stop it. aiokafka's fetcher fails (AssertionError) if a rebalance ends what it has just been assigned."""
        try:
            await consumer.stop()
        except AssertionError:
            await consumer._client.close()  # the last step of `stop`

    async def _answer(self, consumer: Any) -> None:
        for function, answer in self._pending():
            try:
                result = function(consumer)
                answer.set_result(await result if inspect.isawaitable(result) else result)
            except Exception as error:  # noqa: BLE001 - raised where the question was asked
                answer.set_exception(error)

    def _open(self) -> aiokafka.AIOKafkaConsumer:
        given = self.settings
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=given.group,
            client_id=given.client_id,
            group_instance_id=given.instance,
            partition_assignment_strategy=tuple(AIOKAFKA_ASSIGNORS[name] for name in given.assignors),
            session_timeout_ms=given.session_ms,
            heartbeat_interval_ms=given.heartbeat_ms,
            max_poll_interval_ms=given.poll_interval_ms,
            metadata_max_age_ms=given.metadata_age_ms,
            auto_offset_reset=given.reset,
            enable_auto_commit=given.auto_commit,
            auto_commit_interval_ms=100,
            fetch_max_wait_ms=50,
            retry_backoff_ms=20,
        )
        if given.pattern or given.topics:
            consumer.subscribe(topics=list(given.topics), pattern=given.pattern, listener=_AioListener(self))
        return consumer

    def subscribe(self, topics: Sequence[str]) -> None:
        self.run_in_thread(lambda consumer: consumer.subscribe(topics=list(topics), listener=_AioListener(self)))

    def commit(self, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        position = {aiokafka.TopicPartition(topic, partition): (offset, metadata)}
        self.run_in_thread(lambda consumer: consumer.commit(position))

    def committed(self, topic: str, partition: int) -> int | None:
        return self.run_in_thread(lambda consumer: consumer.committed(aiokafka.TopicPartition(topic, partition)))

    def position(self, topic: str, partition: int) -> int | None:
        if (topic, partition) not in self.owned:
            return None
        return self.run_in_thread(lambda consumer: consumer.position(aiokafka.TopicPartition(topic, partition)))

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.run_in_thread(lambda consumer: consumer.seek(aiokafka.TopicPartition(topic, partition), offset))


CLIENTS: dict[str, type[Member]] = {"confluent-kafka": Confluent, "kafka-python": KafkaPython, "aiokafka": Aiokafka}
