"""The member was removed while it worked. Its commit is refused for ever: trying the same commit again never helps.

Repair: give up the uncommitted work and poll, which joins again and delivers it to whoever owns the partition now.
"""

from __future__ import annotations

import pytest
from kafka import KafkaConsumer
from kafka.errors import CommitFailedError
from tests.gallery.kit import kafka_python, produce

from rota.testing import RunningBroker


def removed_member(broker: RunningBroker, topic: str) -> KafkaConsumer:
    """A member that the broker has removed after it read a record."""
    consumer = KafkaConsumer(topic, client_id="app", **kafka_python(broker, topic))
    assert next(consumer).value == b"a"
    broker.group(topic).expire("app")
    return consumer


def test_the_commit_is_refused_again_and_again(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "a")
    consumer = removed_member(rota_broker, rota_topic)
    for _ in range(3):
        with pytest.raises(CommitFailedError):
            consumer.commit()
    consumer.close()
    assert rota_broker.group(rota_topic).committed() == {}


def test_repaired_the_record_is_delivered_again_and_committed(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "a")
    consumer = removed_member(rota_broker, rota_topic)
    with pytest.raises(CommitFailedError):
        consumer.commit()
    assert next(consumer).value == b"a"
    consumer.commit()
    consumer.close()
    assert rota_broker.group(rota_topic).committed() == {(rota_topic, 0): 1}
