"""What the gallery shares: settings of clients, and a producer that waits for its records."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Message, Producer

from rota.testing import RunningBroker

WAIT_S = 20


def confluent(broker: RunningBroker, group: str, **settings: Any) -> dict[str, Any]:
    """Settings of a confluent-kafka consumer; names with underscores."""
    own = {name.replace("_", "."): value for name, value in settings.items()}
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 50,
        "session.timeout.ms": 6000,
        "log_level": 0,
        **own,
    }


def kafka_python(broker: RunningBroker, group: str, **settings: Any) -> dict[str, Any]:
    """Settings of a kafka-python or aiokafka consumer."""
    shared = {"bootstrap_servers": broker.bootstrap_servers, "group_id": group, "auto_offset_reset": "earliest"}
    return {**shared, "heartbeat_interval_ms": 50, "enable_auto_commit": False, **settings}


def produce(broker: RunningBroker, topic: str, *values: str, partition: int = 0) -> None:
    """Write records and wait until they are acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(WAIT_S) == 0


def poll(consumer: Consumer) -> Message:
    """The next record of a confluent-kafka consumer."""
    record = consumer.poll(WAIT_S)
    assert record is not None
    assert record.error() is None, record.error()
    return record


def read_all(broker: RunningBroker, topic: str, count: int) -> list[str]:
    """The first records of a topic, read by nobody's group."""
    consumer = Consumer(confluent(broker, f"readers of {topic}", enable_auto_commit=False))
    consumer.subscribe([topic])
    values = [poll(consumer).value().decode() for _ in range(count)]
    consumer.close()
    return values
