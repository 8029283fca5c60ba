from __future__ import annotations

from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, PartitionState, Refusal, Topic
from rota.protocol.errors import MESSAGE_CHARS_MAX, ErrorCode


def topic(name: str) -> Topic:
    state = PartitionState(index=0, leader=1, replicas=(1, 2), isr=(1,))
    return Topic(name=name, topic_id=bytes(16), partitions=(state,))


def test_topics_of_the_system_are_internal() -> None:
    assert topic(CONSUMER_OFFSETS).is_internal
    assert topic("__transaction_state").is_internal
    assert not topic("consumer_offsets").is_internal


def test_the_replication_factor_counts_replicas_and_not_the_isr() -> None:
    assert topic("t").replication_factor == 2


def test_a_refusal_fits_every_answer() -> None:
    assert len(Refusal(ErrorCode.INVALID_CONFIG, "x" * 100_000).message) == MESSAGE_CHARS_MAX
