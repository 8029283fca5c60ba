"""Idempotent producers: no duplicates, in order. The Java producer's defaults are in test_java.py."""

from __future__ import annotations

import aiokafka
import confluent_kafka
import kafka
import pytest
from tests.interop.conftest import Join
from tests.interop.kit import PATIENCE_S, create_topic, until

VALUES = [b"%d" % number for number in range(2_000)]


async def by_confluent(bootstrap: str, topic: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 50, "linger.ms": 0}
    )
    for value in VALUES:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0


async def by_kafka_python(bootstrap: str, topic: str) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, batch_size=1_000, metrics_enabled=False
    )
    try:
        sent = [producer.send(topic, value, partition=0) for value in VALUES]
        for record in sent:
            record.get(PATIENCE_S)
    finally:
        producer.close()


async def by_aiokafka(bootstrap: str, topic: str) -> None:
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, max_batch_size=1_000
    ) as producer:
        for value in VALUES:
            await producer.send(topic, value, partition=0)
        await producer.flush()


@pytest.mark.parametrize("producer", [by_confluent, by_kafka_python, by_aiokafka])
async def test_every_record_once_and_in_order(bootstrap: str, join: Join, group: str, producer: object) -> None:
    topic = create_topic(bootstrap, 1)
    await producer(bootstrap, topic)  # type: ignore[operator]
    reader = join("confluent-kafka", group=group, topics=[topic])
    until(lambda: len(reader.values) >= len(VALUES), "all records")
    assert reader.values == VALUES
