"""Transactions of other clients: commit, abort, fencing, timeout."""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka import Producer, TopicPartition
from tests.interop.kit import PATIENCE_S, create_topic, unique, until


def transactional(bootstrap: str, transactional_id: str, **settings: object) -> Producer:
    config: dict[str, object] = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **settings}
    producer = Producer({name.replace("_", "."): value for name, value in config.items()})
    producer.init_transactions(PATIENCE_S)
    return producer


def begin(producer: Producer, topic: str, *values: bytes) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def values(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique("reader"),
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while (message := consumer.poll(PATIENCE_S)) is not None and not message.error():
        found.append(message.value())
    consumer.close()
    return found


def test_committed_records_are_seen_and_aborted_ones_are_not(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    producer = transactional(bootstrap, unique("tx"))
    begin(producer, topic, b"a", b"b")
    assert values(bootstrap, topic) == []
    producer.commit_transaction(PATIENCE_S)
    begin(producer, topic, b"lost")
    producer.abort_transaction(PATIENCE_S)
    begin(producer, topic, b"c")
    producer.commit_transaction(PATIENCE_S)
    until(lambda: values(bootstrap, topic) == [b"a", b"b", b"c"], "the committed records")
    assert values(bootstrap, topic, "read_uncommitted") == [b"a", b"b", b"lost", b"c"]


def test_a_second_producer_of_an_id_fences_the_first(bootstrap: str) -> None:
    topic, transactional_id = create_topic(bootstrap, 1), unique("tx")
    first = transactional(bootstrap, transactional_id)
    begin(first, topic, b"zombie")
    second = transactional(bootstrap, transactional_id)
    with pytest.raises(confluent_kafka.KafkaException) as fenced:
        first.commit_transaction(PATIENCE_S)
    assert fenced.value.args[0].fatal()
    begin(second, topic, b"x")
    second.commit_transaction(PATIENCE_S)
    until(lambda: values(bootstrap, topic) == [b"x"], "the record of the second producer")


def test_a_transaction_that_takes_too_long_is_aborted(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    producer = transactional(bootstrap, unique("tx"), transaction_timeout_ms=1_000)
    begin(producer, topic, b"late")
    other = transactional(bootstrap, unique("tx"))
    begin(other, topic, b"x")
    other.commit_transaction(PATIENCE_S)
    until(lambda: values(bootstrap, topic) == [b"x"], "the end of the transaction before")
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(PATIENCE_S)
