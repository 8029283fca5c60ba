"""Without idempotence a batch that is refused once is sent again behind the batches that were in flight with it.

Repair: `enable.idempotence=true` (the broker refuses what comes out of order), or one request in flight.
"""

from __future__ import annotations

from confluent_kafka import Producer
from tests.gallery.kit import WAIT_S, read_all

from rota.testing import RunningBroker


def write(broker: RunningBroker, topic: str, *, idempotent: bool) -> None:
    """Each record is a batch; the second batch is refused once, while the later ones are in flight."""
    own = {
        "client.id": topic,
        "enable.idempotence": idempotent,
        "batch.num.messages": 1,
        "linger.ms": 0,
        "log_level": 0,
    }
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **own})
    producer.produce(topic, "1")
    assert producer.flush(WAIT_S) == 0
    broker.faults.error("NOT_ENOUGH_REPLICAS", "Produce", topic, delay_ms=400)
    for value in "234":
        producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0


def test_the_refused_record_is_written_last(rota_broker: RunningBroker, rota_topic: str) -> None:
    write(rota_broker, rota_topic, idempotent=False)
    assert read_all(rota_broker, rota_topic, 4) == ["1", "3", "4", "2"]


def test_repaired_the_order_is_kept(rota_broker: RunningBroker, rota_topic: str) -> None:
    write(rota_broker, rota_topic, idempotent=True)
    assert read_all(rota_broker, rota_topic, 4) == ["1", "2", "3", "4"]
