"""Transactions a second: ten records of one partition and the commit, by raw requests of KIP-890's second version.

A transaction is a Produce v12, which adds the partition by itself, and an EndTxn v5, whose response has the epoch of
the next one. CONCURRENT_TRANSACTIONS, while the markers of the last one are written, is retried after a millisecond.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.groups import RETRIES, RETRY_S
from benchmarks.joining import RETRIABLE
from benchmarks.rows import Row, create, settings, unique
from benchmarks.wire import Wire
from rota.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from rota.protocol.records.record import Record, write_batch

INIT_VERSION, PRODUCE_VERSION, END_VERSION = 4, 12, 5
TRANSACTION, CONCURRENT, NO_PARTITION = 1, 51, {3, 6}
RECORDS, VALUE = 10, bytes(100)
PAUSE_S = 0.001


@dataclass(slots=True)
class TransactionalProducer:
    """A producer with a connection of its own, and a partition of its own."""

    name: str
    topic: str
    partition: int
    wire: Wire
    producer_id: int = -1
    epoch: int = -1
    count: int = 0

    def begin(self) -> None:
        """Find the coordinator and get a producer id."""
        request = FindCoordinatorRequest(key=self.name, key_type=TRANSACTION)
        self._until(lambda: self.wire.send_request(request, 3, FindCoordinatorResponse).error_code)

        def initialised() -> int:
            init = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
            answer = self.wire.send_request(init, INIT_VERSION, InitProducerIdResponse)
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            return answer.error_code

        self._until(initialised)
        self._until(self._produce)
        self._until(self._commit)

    def run(self, end_s: float) -> None:
        """Commit transactions until that time; `count` them."""
        while time.perf_counter() < end_s:
            self._until(self._produce)
            self._until(self._commit)
            self.count += 1

    def _produce(self) -> int:
        records = [Record(n, 0, None, VALUE) for n in range(RECORDS)]
        batch = write_batch(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=0,
            is_transactional=True,
        )
        part = PartitionProduceData(index=self.partition, records=batch)
        topic = TopicProduceData(name=self.topic, partition_data=(part,))
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=10_000, topic_data=(topic,))
        answer = self.wire.send_request(request, PRODUCE_VERSION, ProduceResponse)
        return answer.responses[0].partition_responses[0].error_code

    def _commit(self) -> int:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=True
        )
        answer = self.wire.send_request(request, END_VERSION, EndTxnResponse)
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer.error_code

    def _until(self, send_request: Callable[[], int]) -> None:
        """Ask until the error is 0. Raises for an error that is not of passing."""
        for _ in range(RETRIES):
            code = send_request()
            if not code:
                return
            assert code in {*RETRIABLE, *NO_PARTITION, CONCURRENT}, f"{self.name}: error {code}"
            time.sleep(PAUSE_S if code == CONCURRENT else RETRY_S)
        raise TimeoutError(f"{self.name}: no answer without an error")


def transactions(count: int) -> Callable[[str], float]:
    """Transactions a second of so many producers, each with a partition of its own."""

    def measure(address: str) -> float:
        topic = unique("transactional")
        create(address, topic, count)
        producers = [TransactionalProducer(unique("txn"), topic, n, Wire(address)) for n in range(count)]
        for producer in producers:
            producer.begin()
        began = time.perf_counter()
        end_s = began + settings.seconds
        threads = [threading.Thread(target=producer.run, args=(end_s,)) for producer in producers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        for producer in producers:
            producer.wire.close()
        return sum(producer.count for producer in producers) / took

    return measure


TRANSACTION_ROWS = (
    Row("transactions of 10 records, 1 producer", "1/s", True, 1, transactions(1)),
    Row("transactions of 10 records, 16 producers", "1/s", True, 1, transactions(16)),
)
