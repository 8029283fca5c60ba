"""A job runs once a fortnight. Its committed offsets expire after seven days without members
(`offsets.retention.minutes`), and `auto.offset.reset=latest` then skips everything written meanwhile.

Repair: `auto.offset.reset=earliest` and processing that tolerates repetition, or a longer retention of offsets.
"""

from __future__ import annotations

from confluent_kafka import Consumer
from tests.gallery.kit import confluent, poll, produce

from rota.testing import RunningBroker


def run(broker: RunningBroker, topic: str, reset: str) -> Consumer:
    consumer = Consumer(confluent(broker, topic, auto_offset_reset=reset, enable_auto_commit=False))
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.01)
    return consumer


def fortnight(broker: RunningBroker, topic: str, reset: str) -> bytes | None:
    """A run that commits, two weeks, a new record, and the next run: its first record that is not new afterwards."""
    first = run(broker, topic, "earliest")
    produce(broker, topic, "old")
    first.commit(poll(first), asynchronous=False)
    first.close()
    produce(broker, topic, "of the fortnight")
    broker.advance(days=14)
    broker.group(topic).committed({})
    second = run(broker, topic, reset)
    while (record := second.poll(0.05)) is None:
        produce(broker, topic, "later")
    second.close()
    value: bytes = record.value()
    return value


def test_records_written_meanwhile_are_skipped(rota_broker: RunningBroker, rota_topic: str) -> None:
    assert fortnight(rota_broker, rota_topic, "latest") == b"later"


def test_repaired_it_is_read_and_the_old_again(rota_broker: RunningBroker, rota_topic: str) -> None:
    assert fortnight(rota_broker, rota_topic, "earliest") == b"old"
