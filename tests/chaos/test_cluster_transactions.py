"""Three brokers as processes; kill -9 of the brokers that a transaction needs, while it is open (XS1, XL3).

Its records and the offsets in it become visible together, or never; a read_committed reader reaches the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.chaos.cluster_clients import HEALED_SECONDS, TOPIC, until
from tests.chaos.running_cluster import running_cluster
from tests.soak import SOAK
from tools.cluster import Cluster

pytestmark = pytest.mark.java

SMALL = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
PARTITIONS, RECORDS, GROUP, ID = 3, 6, "g", "tx"
KILLS_OF_EACH = 2 if SOAK else 1  # in a transaction that is committed, and in one that is aborted
OFFSETS, STATES = "__consumer_offsets", "__transaction_state"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path, PARTITIONS, SMALL) as cluster:
        yield cluster


def begin(producer: Producer, bootstrap: str, number: int) -> None:
    """A transaction with RECORDS records on all partitions and the offset `number`."""
    producer.begin_transaction()
    for index in range(RECORDS):
        producer.produce(TOPIC, f"{number}".encode(), partition=index % PARTITIONS)
    assert producer.flush(HEALED_SECONDS) == 0
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    position = TopicPartition(TOPIC, 0, number)
    producer.send_offsets_to_transaction([position], reader.consumer_group_metadata(), HEALED_SECONDS)
    reader.close()


def end(call: Callable[[float], None]) -> None:
    """Repeat the call as a program does, while its error says so."""
    deadline = time.monotonic() + HEALED_SECONDS
    while True:
        try:
            return call(HEALED_SECONDS)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


def visible(bootstrap: str) -> list[int]:
    """The transactions of the records that a read_committed reader gets up to the ends of all partitions, sorted."""
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True, "log_level": 0}
    )
    reader.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found, ends = list[int](), set[int]()
    while len(ends) < PARTITIONS:
        message = reader.poll(HEALED_SECONDS)
        assert message is not None, "the last stable offset does not reach the end"
        if message.error():
            ends.add(message.partition())
        else:
            found.append(int(message.value()))
    reader.close()
    return sorted(found)


def committed(bootstrap: str) -> int:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    (found,) = reader.committed([TopicPartition(TOPIC, 0)], timeout=HEALED_SECONDS)
    reader.close()
    assert found.error is None
    return int(found.offset)


def is_whole(cluster: Cluster) -> bool:
    topics = [(TOPIC, PARTITIONS), (OFFSETS, 3), (STATES, 3)]
    return all(len(cluster.isr(topic, index)) == 3 for topic, count in topics for index in range(count))


def test_a_transaction_is_whole_when_the_brokers_that_it_needs_are_killed(cluster: Cluster) -> None:
    """The coordinator of the transactional id, a partition's leader and the group's coordinator, each in the middle."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": ID, "log_level": 0})
    producer.init_transactions(HEALED_SECONDS)
    victims: dict[str, Callable[[], int]] = {
        "transaction coordinator": lambda: cluster.transaction_coordinator(ID),
        "leader": lambda: cluster.leader(TOPIC, 0),
        "group coordinator": lambda: cluster.coordinator(GROUP),
    }
    kept = list[int]()
    kills = (item for item in victims.items() for _ in range(KILLS_OF_EACH))
    for number, (name, victim) in enumerate(kills, start=1):
        is_commit = number % 2 == 1
        begin(producer, cluster.bootstrap, number)
        until(lambda: is_whole(cluster), f"ISR small before the kill of the {name}")
        broker = victim()
        cluster.kill(broker)
        end(producer.commit_transaction if is_commit else producer.abort_transaction)
        if is_commit:
            kept.extend([number] * RECORDS)
        # as in Kafka, a commit is answered before the partitions have its markers: a new leader gets its own later
        until(lambda: visible(cluster.bootstrap) == kept, f"records missing after the kill of the {name}")
        assert committed(cluster.bootstrap) == kept[-1], f"after the kill of the {name}"
        cluster.start(broker)
