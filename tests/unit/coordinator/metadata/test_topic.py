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


def test_members_that_leave_an_isr_below_the_minimum_are_in_the_elr_until_it_is_large_enough() -> None:
    """ELR1."""
    state = PartitionState(index=0, leader=1, replicas=(3, 1, 2), isr=(3, 1, 2))
    alone = state.with_isr((1,), 2)
    assert (alone.isr, alone.elr) == ((1,), (3, 2))
    assert state.with_isr((1, 2), 2).elr == ()
    assert alone.with_isr((1, 2), 3).elr == (3,)
    assert alone.with_isr((1, 2), 2).elr == ()
    assert state.with_isr((3, 1), 4).elr == (2,), "the minimum is capped at the number of replicas"
    assert state.with_isr((3, 1, 2), 4).elr == ()


def test_members_that_lost_records_are_not_in_the_elr() -> None:
    """ELR1."""
    state = PartitionState(index=0, leader=1, replicas=(1, 2, 3), isr=(1, 2), elr=(3,))
    assert state.with_isr((1,), 3, lacking={2}).elr == (3,)
    assert state.with_isr((1, 2), 3, lacking={3}).elr == ()
