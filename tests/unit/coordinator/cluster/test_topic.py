from __future__ import annotations

from rota.coordinator.cluster.topic import CONSUMER_OFFSETS, PartitionState, Topic


def topic(name: str) -> Topic:
    state = PartitionState(index=0, leader=1, replicas=(1, 2), isr=(1,))
    return Topic(name=name, topic_id=bytes(16), partitions=(state,))


def test_topics_of_the_system_are_internal() -> None:
    assert topic(CONSUMER_OFFSETS).is_internal
    assert topic("__transaction_state").is_internal
    assert not topic("consumer_offsets").is_internal


def test_the_replication_factor_counts_replicas_and_not_the_isr() -> None:
    assert topic("t").replication_factor == 2
