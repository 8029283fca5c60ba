"""A broker without sockets for the data APIs: real topics, partitions, logs in memory; a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import count, groupby
from typing import Any

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.write_txn_markers import write_markers
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.topic import TopicConfig
from rota.coordinator.hosted_topic import HostedTopic, TopicSettings
from rota.coordinator.log.contract import Log, LogConfig
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.dynamic_broker_config import DynamicBrokerConfig
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.placement import Assignment
from rota.coordinator.metadata.producer_ids import ProducerIds
from rota.coordinator.metadata.store import Store
from rota.coordinator.metadata.topic import TRANSACTION_STATE, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.replica.durability import Durability
from rota.coordinator.replica.fetch_sessions import FetchSessions
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.timers import Timers
from rota.coordinator.transaction_coordinator import TransactionCoordinator
from rota.coordinator.transaction_service.marker_sender import TransactionMarkers
from rota.coordinator.transaction_service.verification import Verification
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rota.protocol.records.record import Record, write_batch
from rota.transport.errors import Unreachable

NOW_MS = 1_700_000_000_000


class StillLoop:
    """A loop on which no time passes: a test says when timers fire."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> StillLoop:
        return self

    def call_soon(self, callback: Callable[[], None]) -> StillLoop:
        return self

    def cancel(self) -> None:
        pass

    def call_exception_handler(self, context: dict[str, object]) -> None:
        raise AssertionError(context)


class World:
    """`node` is what the APIs get."""

    def __init__(
        self,
        properties: dict[str, str] | None = None,
        log: Callable[[LogConfig], Log] = MemoryLog,
        flush_executor: Executor | None = None,
        store: Store | None = None,
    ) -> None:
        config = BrokerConfig(properties)
        ids = count(1)
        store = EmbeddedStore() if store is None else store
        topics = Topics(store, broker_id=config.node_id, fresh_uuid=lambda: next(ids).to_bytes(16, "big"))
        dynamic_config = DynamicBrokerConfig(config, topics)
        eager_tasks.run_eagerly(topics.load())
        self.now_ms = NOW_MS
        timers, durability = Timers(lambda: self.now_ms, StillLoop()), Durability(flush_executor)
        partitions = Partitions(
            topics,
            open_log=lambda topic, index, log_config: log(log_config),
            config_of=lambda topic: TopicConfig(dict(topic.configs), config).log_config(),
            timers=timers,
            flush_worker=durability,
        )
        dynamic_config.on_change(partitions.reconfigure)
        self.tick_queue: list[Callable[[], None]] = []
        producer_ids = ProducerIds(store, broker_id=config.node_id)
        transactions = self._transactions(topics, partitions, timers, producer_ids)
        self.node = Node(
            config=config,
            topics=topics,
            partitions=partitions,
            groups=None,  # type: ignore[arg-type]  # no data API asks for groups
            transactions=transactions,
            verify_transaction=Verification(
                transactions,
                broker_id=config.node_id,
                send_request=self._send_request_to,
                timers=timers,
                now_ms=lambda: self.now_ms,
            ).verify,
            producer_ids=producer_ids,
            fetch_sessions=FetchSessions(draw_id=count(7).__next__),
            timers=timers,
            durability=durability,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
        )

    def _transactions(
        self, topics: Topics, partitions: Partitions, timers: Timers, producer_ids: ProducerIds
    ) -> TransactionCoordinator:
        self.transaction_topic = HostedTopic(
            TRANSACTION_STATE,
            TopicSettings(partitions=4, replication_factor=1, segment_bytes=1 << 20),
            topics,
            partitions,
            node_id=topics.broker_id,
            replicas_for=lambda configured: configured,
            now_ms=lambda: self.now_ms,
        )
        coordinator = TransactionCoordinator(
            shards=4,
            partition=self.transaction_topic.partition,
            timers=timers,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
            tick_queue=self.tick_queue.append,
            ensure_topic=self.transaction_topic.ensure,
            leader=lambda index: topics.broker_id,
            take_producer_id=producer_ids.take,
            sender=TransactionMarkers(
                topics,
                broker_id=topics.broker_id,
                write=lambda request: write_markers(self.node, request),
                send_request=self._send_request_to,
                timers=timers,
                now_ms=lambda: self.now_ms,
                tick_queue=self.tick_queue.append,
            ),
        )
        self.transaction_topic.host(coordinator)
        topics.on_change(self.transaction_topic.changed)
        return coordinator

    async def _send_request_to(self, broker: int, request: Any) -> Any:
        raise Unreachable(f"{broker} is not of this world")

    def end_turn(self) -> None:
        """Do what was queued for the end of the turn of the loop."""
        while self.tick_queue:
            tick_queue, self.tick_queue[:] = list(self.tick_queue), []
            for call in tick_queue:
                call()

    def register(self, *brokers: int) -> None:
        """The live brokers from now on, registered with the epochs 100 + id."""
        registrations = {broker: BrokerRegistration(broker_id=broker, epoch=100 + broker) for broker in brokers}
        self.node.topics.apply_brokers(registrations)

    def topic(
        self, name: str = "t", partitions: int = 1, assignment: Assignment | None = None, **configs: str
    ) -> Topic:
        """Config names with underscores for dots."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        topic = eager_tasks.run_eagerly(self.node.topics.create(name, partitions, assignment=assignment, configs=named))
        assert isinstance(topic, Topic)
        return topic

    def partition(self, name: str = "t", index: int = 0) -> Partition:
        partition = self.node.partitions.get(name, index)
        assert partition is not None
        return partition

    def append(self, *values: bytes, name: str = "t", index: int = 0, timestamp: int = NOW_MS) -> bytes:
        """One batch into a log; the batch as it lies there."""
        partition = self.partition(name, index)
        end = partition.high_watermark
        partition.append(batch(*values, timestamp=timestamp), self.now_ms)
        return partition.read(end, 1)

    def after(self, ms: int) -> None:
        self.now_ms += ms
        self.node.timers.fire()

    def serve(self, api: Callable[..., Any], request: Any, version: int, client_id: str = "test") -> Any:
        call = Call(version, client_id, "/127.0.0.1", "127.0.0.1", 9092, listener="PLAINTEXT")
        return api(self.node, call, request)


def batch(*values: bytes, key: bytes | None = b"k", timestamp: int = NOW_MS, step_ms: int = 0, **how: Any) -> bytes:
    """A producer's batch; `how` is of `write_batch`."""
    records = [Record(index, timestamp + index * step_ms, key, value, ()) for index, value in enumerate(values)]
    return write_batch(records, **how)


def answered(reply: Any) -> Any:
    """The value of a parked reply that must be there."""
    assert isinstance(reply, DelayedReply)
    assert reply.answered
    return reply.value


def produce_request(
    records: bytes | None, topic: str | bytes = "t", index: int = 0, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    """One batch for one partition."""
    return produces([(topic, index, records)], acks, transactional_id)


def produces(
    batches: Sequence[tuple[str | bytes, int, bytes | None]], acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    topics = tuple(
        TopicProduceData(
            **_named(topic, "name"),
            partition_data=tuple(PartitionProduceData(index=index, records=records) for _, index, records in group),
        )
        for topic, group in groupby(batches, key=lambda batch: batch[0])
    )
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=topics)


OF_EACH_PARTITION = {
    "partition_max_bytes",
    "current_leader_epoch",
    "last_fetched_epoch",
    "high_watermark",
    "log_start_offset",
}


def fetch_request(*partitions: tuple[str | bytes, int, int], **how: Any) -> FetchRequest:
    """`partitions` are (topic, partition, offset) each; `how` is of FetchRequest, and of each FetchPartition."""
    partition = {name: how.pop(name) for name in how.keys() & OF_EACH_PARTITION}
    forgotten = tuple(
        ForgottenTopic(**_named(topic, "topic"), partitions=(index,)) for topic, index in how.pop("forgotten", ())
    )
    topics = tuple(
        FetchTopic(
            **_named(topic, "topic"),
            partitions=(
                FetchPartition(partition=index, fetch_offset=offset, **{"partition_max_bytes": 1 << 20, **partition}),
            ),
        )
        for topic, index, offset in partitions
    )
    return FetchRequest(topics=topics, forgotten_topics_data=forgotten, **{"max_wait_ms": 0, "min_bytes": 1, **how})


def _named(topic: str | bytes, field: str) -> dict[str, Any]:
    return {field: topic} if isinstance(topic, str) else {"topic_id": topic}
