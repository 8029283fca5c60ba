"""A committed offset is where to go on, the next record. Who commits the offset of the record that was read reads it
again after every restart.

Repair: commit offset + 1, or let the client do it (`commit()` without arguments).
"""

from __future__ import annotations

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from tests.gallery.kit import kafka_python, produce

from rota.testing import RunningBroker


def read_one(broker: RunningBroker, topic: str, *, step: int) -> bytes:
    """One run of the application: read a record, commit its offset and `step`."""
    consumer = KafkaConsumer(topic, **kafka_python(broker, topic))
    record = next(consumer)
    offset = OffsetAndMetadata(record.offset + step, "", -1)
    consumer.commit({TopicPartition(record.topic, record.partition): offset})
    consumer.close()
    return bytes(record.value)


def test_the_record_is_read_again_after_each_restart(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "a", "b")
    assert [read_one(rota_broker, rota_topic, step=0) for _ in range(2)] == [b"a", b"a"]
    assert rota_broker.group(rota_topic).committed() == {(rota_topic, 0): 0}


def test_with_the_fix_reading_continues_after_the_last_record(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "a", "b")
    assert [read_one(rota_broker, rota_topic, step=1) for _ in range(2)] == [b"a", b"b"]
    assert rota_broker.group(rota_topic).committed() == {(rota_topic, 0): 2}
