"""The transactional producers of three Python clients, with one set of calls.

with CLIENTS["confluent"](bootstrap, "id") as producer:
    producer.begin()
    producer.send("t", b"value")
    producer.commit()
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
from tests.interop.kit import PATIENCE_S

TIMEOUT_MS: Final = 60_000  # of a transaction, when a test does not say


class Transactional(ABC):
    """A producer with a transactional id; opening it calls InitProducerId."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS) -> None:
        self.bootstrap, self.transactional_id, self.timeout_ms = bootstrap, transactional_id, timeout_ms

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, value: bytes) -> None:
        """Write to partition 0; returns when the broker has acknowledged it."""

    @abstractmethod
    def send_offset(self, group: str, topic: str, offset: int) -> None:
        """The offset of partition 0, for a group without members."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def is_fenced(self, error: BaseException) -> bool:
        """Whether the error says that another producer has the id now."""


class Confluent(Transactional):
    """librdkafka."""

    def open(self) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": self.timeout_ms,
            }
        )
        self._producer.init_transactions(PATIENCE_S)

    def close(self) -> None:
        del self._producer

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        self._producer.produce(topic, value, partition=0)
        assert self._producer.flush(PATIENCE_S) == 0

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        metadata = confluent_kafka.Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        position = confluent_kafka.TopicPartition(topic, 0, offset)
        self._producer.send_offsets_to_transaction([position], metadata.consumer_group_metadata(), PATIENCE_S)
        metadata.close()

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE_S)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_S)

    def is_fenced(self, error: BaseException) -> bool:
        fenced = (confluent_kafka.KafkaError._FENCED, confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH)
        return isinstance(error, confluent_kafka.KafkaException) and error.args[0].code() in fenced


class KafkaPython(Transactional):
    """kafka-python."""

    def open(self) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
        )
        self._producer.init_transactions()

    def close(self) -> None:
        self._producer.close(timeout=PATIENCE_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        self._producer.send(topic, value, partition=0).get(PATIENCE_S)

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        position = {kafka.TopicPartition(topic, 0): kafka.OffsetAndMetadata(offset, "", -1)}
        self._producer.send_offsets_to_transaction(position, group)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def is_fenced(self, error: BaseException) -> bool:
        return isinstance(error, kafka.errors.ProducerFencedError | kafka.errors.InvalidProducerEpochError)


class Aiokafka(Transactional):
    """aiokafka, on a loop that runs during its calls."""

    def open(self) -> None:
        self._runner = asyncio.Runner()
        self._producer = self._run(self._made())
        self._run(self._producer.start())

    async def _made(self) -> aiokafka.AIOKafkaProducer:
        return aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
        )

    def _run(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(asyncio.wait_for(call, PATIENCE_S))

    def close(self) -> None:
        self._run(self._producer.stop())
        self._runner.close()

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes) -> None:
        self._run(self._producer.send_and_wait(topic, value, partition=0))

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        self._run(self._producer.send_offsets_to_transaction({aiokafka.TopicPartition(topic, 0): offset}, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def is_fenced(self, error: BaseException) -> bool:
        return isinstance(error, aiokafka.errors.ProducerFenced | aiokafka.errors.InvalidProducerEpoch)


CLIENTS: Final[dict[str, type[Transactional]]] = {
    "confluent": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
}
