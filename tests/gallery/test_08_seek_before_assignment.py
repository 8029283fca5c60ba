"""`seek` right after `subscribe`: no partition is assigned yet, so there is nothing to seek in.

Repair: seek in the callback for assigned partitions, or use `assign` where there is no group.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from tests.gallery.kit import kafka_python, produce

from rota.testing import RunningBroker


class SeekTo(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, consumer: KafkaConsumer, offset: int) -> None:
        self._consumer, self._offset = consumer, offset

    def on_partitions_assigned(self, assigned: Any) -> None:
        for partition in assigned:
            self._consumer.seek(partition, self._offset)

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass


def test_seek_before_the_assignment_fails(rota_broker: RunningBroker, rota_topic: str) -> None:
    consumer = KafkaConsumer(**kafka_python(rota_broker, rota_topic))
    consumer.subscribe([rota_topic])
    with pytest.raises(ValueError, match="Unassigned partition"):
        consumer.seek(TopicPartition(rota_topic, 0), 1)
    consumer.close()


def test_with_the_fix_reading_starts_at_the_sought_offset(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "a", "b")
    consumer = KafkaConsumer(**kafka_python(rota_broker, rota_topic))
    consumer.subscribe([rota_topic], listener=SeekTo(consumer, 1))
    assert next(consumer).value == b"b"
    consumer.close()
