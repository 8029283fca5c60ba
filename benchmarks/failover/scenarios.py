"""The scenarios: what is done to a cluster, and how long its clients wait.

Each returns its figures by name: seconds, or a number where the name ends in `(count)`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tools.broker_processes import BrokerProcesses, send_request

from benchmarks.failover.members import Committer, HeldAssignor, SyncingMember
from benchmarks.failover.writers import RECORD, WAIT_S, WRITERS, Writer
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from rota.protocol.records.record import Record, write_batch

PARTITIONS: Final = 3
BACKLOG_BYTES: Final = 50 << 20
JOINING_S: Final = 0.3  # a member's first connections, and its first JoinGroup
FROZEN_S, PAUSED_S, AFTER_PAUSE_S = 3.0, 15.0, 5.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster whose brokers all run, and an unused topic and group."""

    cluster: BrokerProcesses
    topic: str
    group: str

    def create_topic(self) -> None:
        """Three replicas, min.insync.replicas=2. Returns when all are in the ISRs."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 2})
        new = NewTopic(self.topic, PARTITIONS, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([new])[self.topic].result(WAIT_S)
        until(self.is_in_sync)
        until(lambda: self.cluster.coordinator(self.group) >= 0)

    def is_in_sync(self) -> bool:
        """Whether every broker that runs has all replicas in the ISRs."""
        seen = [(index, broker) for index in range(PARTITIONS) for broker in self.cluster.running]
        return all(len(self.cluster.isr(self.topic, index, seen_by=broker)) == 3 for index, broker in seen)

    def restore(self) -> None:
        """Start the brokers that do not run, and wait for their replicas."""
        for broker in set(self.cluster.brokers) - self.cluster.running:
            self.cluster.start(broker)
        until(self.is_in_sync)


def until(condition: Callable[[], bool]) -> None:
    """Raises TimeoutError."""
    deadline = time.perf_counter() + WAIT_S
    while True:
        try:
            if condition():
                return
        except ConnectionError:
            pass  # no broker answers yet
        if time.perf_counter() > deadline:
            raise TimeoutError("it did not come to that")
        time.sleep(0.02)


def acknowledged_after(stage: Stage, without: int, at: float) -> float:
    """Seconds from `at` until one of the other brokers acknowledges a record, for clients that ask anew."""
    records = write_batch([Record(0, int(time.time() * 1000), None, RECORD, ())])
    data = (PartitionProduceData(index=0, records=records),)
    topics = (TopicProduceData(name=stage.topic, partition_data=data),)
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=topics)
    while time.perf_counter() < at + WAIT_S:
        for broker in set(stage.cluster.brokers) - {without}:
            address = ("127.0.0.1", stage.cluster.ports[broker])
            try:
                response = send_request(address, request, 9, ProduceResponse).responses[0].partition_responses[0]
            except TimeoutError:
                continue
            if response.error_code == 0:
                return time.perf_counter() - at
        time.sleep(0.005)
    raise TimeoutError("nothing was acknowledged any more")


def killed_leader(stage: Stage) -> dict[str, float]:
    """kill -9 of a partition's leader, until acks=all goes on."""
    writers = {name: writer(stage.cluster, stage.topic) for name, writer in WRITERS.items()}
    until(lambda: all(len(writer.acknowledged) > 100 for writer in writers.values()))
    leader = stage.cluster.leader(stage.topic)
    at = time.perf_counter()
    stage.cluster.kill(leader)
    seconds = {name: writer.first_after(at) for name, writer in writers.items()}
    for writer in writers.values():
        writer.stop()
    return {**seconds, "errors (count)": sum(len(writer.errors) for writer in writers.values())}


def frozen_leader(stage: Stage) -> dict[str, float]:
    """SIGSTOP of a partition's leader, until acks=all goes on for a client that asks anew; then it wakes up again.

    A client that waits for an answer of the frozen leader waits for its own request timeout, whatever the brokers do.
    """
    leader = stage.cluster.leader(stage.topic)
    at = time.perf_counter()
    stage.cluster.freeze(leader)
    try:
        seconds = acknowledged_after(stage, leader, at)
        time.sleep(FROZEN_S)
    finally:
        stage.cluster.thaw(leader)
    woken = time.perf_counter()
    until(stage.is_in_sync)
    return {"acks=all goes on": seconds, "in the ISRs again after it woke": time.perf_counter() - woken}


def killed_coordinator(stage: Stage) -> dict[str, float]:
    """kill -9 of a group's coordinator, until commits go on; members are not assigned again."""
    member = Committer(stage.cluster, stage.topic, stage.group)
    until(lambda: len(member.committed) > 50)
    coordinator = stage.cluster.coordinator(stage.group)
    at = time.perf_counter()
    stage.cluster.kill(coordinator)
    seconds = member.first_after(at)
    rejoined = member.assignments - 1
    member.stop()
    return {"commits go on": seconds, "rejoined (count)": rejoined}


def killed_while_joining(stage: Stage) -> dict[str, float]:
    """kill -9 of a group's coordinator while a member waits for its JoinGroup, until the last member commits again."""
    members = [Committer(stage.cluster, stage.topic, stage.group)]
    until(lambda: len(members[0].committed) > 50)
    coordinator = stage.cluster.coordinator(stage.group)
    members.append(Committer(stage.cluster, stage.topic, stage.group))
    time.sleep(JOINING_S)
    at = time.perf_counter()
    stage.cluster.kill(coordinator)
    seconds = max(member.first_after(at) for member in members)
    for member in members:
        member.stop()
    return {"the last member commits again": seconds}


def killed_while_syncing(stage: Stage) -> dict[str, float]:
    """kill -9 of a group's coordinator while a member waits for its SyncGroup, until both members have partitions."""
    HeldAssignor.waiting.clear()
    HeldAssignor.released.clear()
    with ExitStack() as stack:
        members = [SyncingMember(stage.cluster, stage.topic, stage.group)]
        stack.callback(members[0].stop)
        until(lambda: len(members[0].assigned[1]) == PARTITIONS)
        coordinator = stage.cluster.coordinator(stage.group)
        members.append(SyncingMember(stage.cluster, stage.topic, stage.group))
        stack.callback(members[1].stop)
        stack.callback(HeldAssignor.released.set)
        until(HeldAssignor.waiting.is_set)
        time.sleep(JOINING_S)  # the other one's SyncGroup is under way
        at = time.perf_counter()
        stage.cluster.kill(coordinator)
        HeldAssignor.released.set()
        until(lambda: _share(members, at))
        return {"both have their partitions": max(member.assigned[0] for member in members) - at}


def _share(members: list[SyncingMember], since: float) -> bool:
    """Whether both were assigned since then, all partitions between them."""
    owned = [partitions for when, partitions in (member.assigned for member in members) if when > since]
    return len(owned) == len(members) and all(owned) and sum(map(len, owned)) == PARTITIONS


def rolling_restart(stage: Stage) -> dict[str, float]:
    """SIGTERM and start of each broker, one after the other, under load."""
    writers = [Writer(stage.cluster, stage.topic, partition) for partition in range(PARTITIONS)]
    until(lambda: all(len(writer.acknowledged) > 200 for writer in writers))
    stops = []
    for broker in stage.cluster.brokers:
        began = time.perf_counter()
        stage.cluster.stop(broker)
        stops.append(time.perf_counter() - began)
        stage.cluster.start(broker)
        until(stage.is_in_sync)
    for writer in writers:
        writer.stop()
    errors = sum(len(writer.errors) for writer in writers)
    silence = max(writer.longest_silence() for writer in writers)
    return {"longest silence of a partition": silence, "longest stop": max(stops), "errors (count)": errors}


def all_killed(stage: Stage) -> dict[str, float]:
    """All brokers killed at once and started again, until acks=all goes on."""
    writer = Writer(stage.cluster, stage.topic)
    until(lambda: len(writer.acknowledged) > 200)
    at = time.perf_counter()
    for broker in stage.cluster.brokers:
        stage.cluster.kill(broker)
    for broker in stage.cluster.brokers:
        stage.cluster.start(broker, wait=False)
    seconds = writer.first_after(at)
    writer.stop()
    return {"acks=all goes on": seconds}


def follower_behind(stage: Stage) -> dict[str, float]:
    """A follower that missed 50 MB, from its start until it is in the ISR again."""
    leader = stage.cluster.leader(stage.topic)
    follower = next(broker for broker in stage.cluster.brokers if broker != leader)
    stage.cluster.stop(follower)
    producer = Producer({"bootstrap.servers": stage.cluster.bootstrap, "linger.ms": 5, "acks": 1, "log_level": 2})
    for _ in range(BACKLOG_BYTES // 1000):
        producer.produce(stage.topic, bytes(1000), partition=0)
        producer.poll(0)
        if len(producer) > 50_000:
            producer.flush(1)
    producer.flush(WAIT_S)
    began = time.perf_counter()
    stage.cluster.start(follower, wait=False)
    until(lambda: follower in stage.cluster.isr(stage.topic))
    return {"in the ISR again": time.perf_counter() - began}


def paused_metadata(stage: Stage) -> dict[str, float]:
    """ZooKeeper or the KRaft controller stands still for 15 seconds."""
    writer, member = Writer(stage.cluster, stage.topic), Committer(stage.cluster, stage.topic, stage.group)
    until(lambda: len(writer.acknowledged) > 200 and len(member.committed) > 50)
    stage.cluster.pause_metadata()
    try:
        time.sleep(PAUSED_S)
    finally:
        stage.cluster.resume_metadata()
    time.sleep(AFTER_PAUSE_S)
    member.stop()
    writer.stop()
    return {
        "longest silence of a producer": writer.longest_silence(),
        "longest silence of commits": member.longest_silence(),
        "errors (count)": len(writer.errors),
    }


Scenario = Callable[[Stage], dict[str, float]]
PLAIN: Final[dict[str, Scenario]] = {  # those that Apache Kafka runs, too
    "leader": killed_leader,
    "coordinator": killed_coordinator,
    "joining": killed_while_joining,
    "syncing": killed_while_syncing,
    "frozen": frozen_leader,
    "rolling": rolling_restart,
    "all": all_killed,
    "behind": follower_behind,
    "metadata": paused_metadata,
}
