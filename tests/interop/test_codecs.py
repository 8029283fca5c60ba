"""Records in every codec, from each client to each client."""

from __future__ import annotations

import aiokafka
import confluent_kafka
import kafka
import pytest
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.kit import PATIENCE_S, create_topic, unique, until

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
# long enough and alike enough that every client does compress, and different enough to tell them apart
VALUES = [f"{number:05d} ".encode() + b"the quick brown fox jumps over the lazy dog " * 10 for number in range(200)]


async def by_confluent(bootstrap: str, topic: str, codec: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20, "client.id": "codecs"}
    )
    for value in VALUES:
        producer.produce(topic, value, value[:5], partition=0, headers=[("codec", codec.encode())])
    assert producer.flush(PATIENCE_S) == 0


async def by_kafka_python(bootstrap: str, topic: str, codec: str) -> None:
    chosen = None if codec == "none" else codec
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type=chosen, linger_ms=20)
    try:
        sent = [producer.send(topic, value, value[:5], [("codec", codec.encode())], partition=0) for value in VALUES]
        for record in sent:
            record.get(PATIENCE_S)
    finally:
        producer.close()


async def by_aiokafka(bootstrap: str, topic: str, codec: str) -> None:
    chosen = None if codec == "none" else codec
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type=chosen, linger_ms=20
    ) as producer:
        for value in VALUES:
            await producer.send(topic, value, value[:5], partition=0, headers=[("codec", codec.encode())])
        await producer.flush()


PRODUCERS = {"confluent-kafka": by_confluent, "kafka-python": by_kafka_python, "aiokafka": by_aiokafka}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("producer", PRODUCERS)
async def test_every_client_reads_the_batches_of_each_producer(
    bootstrap: str, join: Join, producer: str, codec: str
) -> None:
    topic = create_topic(bootstrap, 1)
    await PRODUCERS[producer](bootstrap, topic, codec)
    for member in [join(client, group=unique("group"), topics=[topic]) for client in CLIENTS]:
        until(lambda member=member: len(member.values) >= len(VALUES), f"all records at {member.settings.client_id}")
        assert member.values == VALUES
        assert [record.offset for record in member.records] == list(range(len(VALUES)))
