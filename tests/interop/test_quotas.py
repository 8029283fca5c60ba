"""Quotas of client ids, seen by librdkafka: each test has a client id of its own, and a quota that it just exceeds."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer
from tests.interop.differential.wire import Wire
from tests.interop.kit import PATIENCE_S, create_topic, unique, until

from rota.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData

BURST_WINDOWS = 10  # quota.window.num is 11
VALUE_BYTES = 60_000


@pytest.fixture
def client_id(bootstrap: str) -> str:
    """A client id whose rates allow a record and a half in all windows."""
    name, wire = unique("limited"), Wire(bootstrap, "admin")
    rate = 1.5 * VALUE_BYTES / BURST_WINDOWS
    ops = tuple(OpData(key=key, value=rate) for key in ("producer_byte_rate", "consumer_byte_rate"))
    entity = (EntityData(entity_type="client-id", entity_name=name),)
    response = wire.ask(AlterClientQuotasRequest(entries=(EntryData(entity=entity, ops=ops),)), 1)
    assert [each.error_code for each in response.entries] == [0]
    return name


def test_a_producer_above_its_quota_is_told_the_throttle_time(bootstrap: str, client_id: str) -> None:
    topic, throttle_s = create_topic(bootstrap, 1), []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "linger.ms": 0,
            "throttle_cb": lambda event: throttle_s.append(event.throttle_time),
        }
    )
    for _ in range(2):
        producer.produce(topic, b"x" * VALUE_BYTES)
        assert producer.flush(PATIENCE_S) == 0
    until(lambda: (producer.poll(0), throttle_s)[1], "the throttle time")
    over_s = 2 * VALUE_BYTES / (1.5 * VALUE_BYTES / BURST_WINDOWS) - BURST_WINDOWS
    assert over_s - 1.1 < throttle_s[0] < over_s + 0.2


def test_a_consumer_above_its_quota_is_told_the_throttle_time(bootstrap: str, client_id: str) -> None:
    topic, throttle_s = create_topic(bootstrap, 1), []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for _ in range(2):
        producer.produce(topic, b"x" * VALUE_BYTES)
        assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": unique("group"),
            "auto.offset.reset": "earliest",
            "throttle_cb": lambda event: throttle_s.append(event.throttle_time),
        }
    )
    consumer.subscribe([topic])
    records = []

    def is_throttled() -> bool:
        record = consumer.poll(0.1)
        if record is not None and not record.error():
            records.append(record)
        return bool(throttle_s)

    until(is_throttled, "the throttle time")
    assert len(records) == 1
    consumer.close()
