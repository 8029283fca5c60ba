"""Two processes have the same `group.instance.id` (a constant in a configuration file): each fences the other.

Repair: an id of its own for each, from the host name or the ordinal of the pod.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError
from tests.gallery.kit import WAIT_S, confluent

from rota.testing import RunningBroker


def start(broker: RunningBroker, topic: str, instance_id: str) -> Consumer:
    """A member that the group has taken in."""
    before = member_ids(broker, topic)
    consumer = Consumer(confluent(broker, topic, group_instance_id=instance_id))
    consumer.subscribe([topic])
    while member_ids(broker, topic) <= before:
        consumer.poll(0.01)
    return consumer


def member_ids(broker: RunningBroker, topic: str) -> set[str]:
    return {member["member_id"] for member in broker.group(topic).describe()["members"]}


@pytest.mark.rota_topic(partitions=2)
def test_the_second_fences_the_first(rota_broker: RunningBroker, rota_topic: str) -> None:
    first = start(rota_broker, rota_topic, "worker")
    second = start(rota_broker, rota_topic, "worker")
    record = first.poll(WAIT_S)
    assert record is not None
    assert record.error().code() == KafkaError._FATAL
    assert "Static consumer fenced" in record.error().str()
    while not second.assignment():  # a close that meets the assignment of librdkafka 2.x waits for itself for ever
        second.poll(0.01)
    second.close()
    first.close()


@pytest.mark.rota_topic(partitions=2)
def test_repaired_they_share_the_partitions(rota_broker: RunningBroker, rota_topic: str) -> None:
    consumers = [start(rota_broker, rota_topic, f"worker-{number}") for number in range(2)]
    while rota_broker.group(rota_topic).describe()["state"] != "Stable":
        for consumer in consumers:
            consumer.poll(0.01)
    assert sorted(map(len, rota_broker.group(rota_topic).settled(2).values())) == [1, 1]
    while not all(consumer.assignment() for consumer in consumers):
        for consumer in consumers:
            consumer.poll(0.01)
    for consumer in consumers:
        consumer.close()
