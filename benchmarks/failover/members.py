"""Members of a group: one that commits again and again, and one whose leader keeps the others waiting for SyncGroup."""

from __future__ import annotations

import threading
import time
from typing import Any, ClassVar, Final

import kafka
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from tools.broker_processes import BrokerProcesses

from benchmarks.failover.writers import WAIT_S, longest_gap

POLL_S: Final = 0.005


class Committer:
    """A member of a group that commits again and again; counts how often it was assigned. `errors` are its commits'."""

    def __init__(self, cluster: BrokerProcesses, topic: str, group: str) -> None:
        self.assignments = 0
        self.committed: list[tuple[float, float]] = []  # sent, answered
        self.errors: list[str] = []
        self._topic = topic
        config = {"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False}
        self._consumer = Consumer({**config, "log_level": 2})
        self._consumer.subscribe([topic], on_assign=self._assigned)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _assigned(self, consumer: Any, partitions: Any) -> None:
        self.assignments += 1

    def _run(self) -> None:
        offset = 0
        while not self._stopping.is_set():
            self._consumer.poll(POLL_S)
            if not self.assignments:
                continue
            offset, began = offset + 1, time.perf_counter()
            try:
                self._consumer.commit(offsets=[TopicPartition(self._topic, 0, offset)], asynchronous=False)
            except KafkaException as error:
                self.errors.append(f"commit after {time.perf_counter() - began:.1f} s: {error}")
                continue
            self.committed.append((began, time.perf_counter()))

    def first_after(self, at: float) -> float:
        """Seconds from `at` until a commit that was sent later is answered. Raises TimeoutError."""
        deadline = time.perf_counter() + WAIT_S
        while time.perf_counter() < deadline:
            if self.committed and self.committed[-1][0] > at:
                return next(done for sent, done in self.committed if sent > at) - at
            time.sleep(0.002)
        raise TimeoutError("nothing was committed any more")

    def longest_silence(self) -> float:
        return longest_gap([done for _, done in self.committed])

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()


class HeldAssignor(RangePartitionAssignor):  # type: ignore[misc]
    """Kafka's range assignor, that assigns to more than one member when `released` is set: they wait for SyncGroup."""

    waiting: ClassVar = threading.Event()
    released: ClassVar = threading.Event()

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        if len(members) > 1:
            cls.waiting.set()
            cls.released.wait(WAIT_S)
        return super().assign(cluster, members)


class SyncingMember(ConsumerRebalanceListener):  # type: ignore[misc]
    """A kafka-python member with a HeldAssignor; `assigned` is when it was assigned last, and what."""

    def __init__(self, cluster: BrokerProcesses, topic: str, group: str) -> None:
        self.assigned: tuple[float, frozenset[int]] = (0.0, frozenset())
        self._arguments = (cluster.bootstrap.split(","), topic, group)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.assigned = (time.perf_counter(), frozenset(each.partition for each in assigned))

    def on_partitions_revoked(self, revoked: Any) -> None: ...

    def _run(self) -> None:
        bootstrap, topic, group = self._arguments
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            partition_assignment_strategy=[HeldAssignor],
        )
        consumer.subscribe([topic], listener=self)
        while not self._stopping.is_set():
            consumer.poll(timeout_ms=100)
        consumer.close()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
