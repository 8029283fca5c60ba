"""`kafka-transactions` of Apache Kafka, unmodified: lists, describes, and aborts a transaction that hangs."""

from __future__ import annotations

from confluent_kafka import Producer
from tests.interop.java_kit import needs_java, run_java
from tests.interop.kit import PATIENCE_S, create_topic, unique, until
from tests.interop.test_transactions import values

pytestmark = needs_java
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


def transactional(bootstrap: str, transactional_id: str) -> Producer:
    """librdkafka's producer."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(PATIENCE_S)
    return producer


def begin(producer: Producer, topic: str, value: bytes) -> None:
    """Begin a transaction with one record in partition 0."""
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def tool(bootstrap: str, *arguments: str) -> list[list[str]]:
    return [line.split() for line in run_java(TRANSACTIONS, "--bootstrap-server", bootstrap, *arguments).splitlines()]


def test_kafka_transactions_shows_a_transaction_and_aborts_one_that_hangs(bootstrap: str) -> None:
    topic, transactional_id = create_topic(bootstrap, 1), unique("tx")
    producer = transactional(bootstrap, transactional_id)
    begin(producer, topic, b"x")
    (row,) = [row for row in tool(bootstrap, "list") if row and row[0] == transactional_id]
    assert row[3] == "Ongoing"
    for pattern, is_listed in ((transactional_id[:2] + ".*", True), (transactional_id[:2], False)):
        listed = tool(bootstrap, "list", "--transactional-id-pattern", pattern)
        assert (transactional_id in [row[0] for row in listed if row]) is is_listed, pattern
    described = str(tool(bootstrap, "describe", "--transactional-id", transactional_id))
    assert "Ongoing" in described
    assert f"{topic}-0" in described
    header, row = tool(bootstrap, "describe-producers", "--topic", topic, "--partition", "0")
    assert dict(zip(header, row, strict=True))["CurrentTransactionStartOffset"] == "0"
    assert all(transactional_id not in row for row in tool(bootstrap, "find-hanging", "--broker-id", "0"))
    tool(bootstrap, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    until(lambda: values(bootstrap, topic, "read_uncommitted") == [b"x"], "the marker")
    header, row = tool(bootstrap, "describe-producers", "--topic", topic, "--partition", "0")
    assert dict(zip(header, row, strict=True))["CurrentTransactionStartOffset"] == "None"
