"""Idempotence, case by case; tests/property/test_producer.py tries all the others."""

from __future__ import annotations

import pytest
from tests.unit.client.producer.kit import batch

from rota.client.producer.sequences import EPOCH_MAX, NUMBERED_MAX, PartitionSequences, SequenceErrorAction, Sequences
from rota.protocol.errors import ErrorCode

OUT_OF_ORDER, UNKNOWN = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID


def begun(epoch: int = 0) -> tuple[Sequences, PartitionSequences]:
    sequences = Sequences()
    sequences.producer = (7, epoch)
    return sequences, PartitionSequences()


def numbered(sequences: Sequences, partition_sequences: PartitionSequences, *counts: int) -> list:
    made = [batch(*[b"x"] * count) for count in counts]
    for one in made:
        assert sequences.is_sendable(partition_sequences, one)
        sequences.number(partition_sequences, one)
        partition_sequences.known = True  # as if the broker had something of it already
    return made


def test_nothing_is_sent_without_an_identity() -> None:
    assert not Sequences().is_sendable(PartitionSequences(), batch(b"1"))


def test_sequences_have_no_gap() -> None:
    sequences, partition_sequences = begun()
    made = numbered(sequences, partition_sequences, 3, 1, 2)
    assert [(one.producer, one.sequence) for one in made] == [((7, 0), 0), ((7, 0), 3), ((7, 0), 4)]


def test_a_broker_remembers_five() -> None:
    sequences, partition_sequences = begun()
    numbered(sequences, partition_sequences, *[1] * NUMBERED_MAX)
    assert not sequences.is_sendable(partition_sequences, batch(b"1"))


def test_until_the_broker_has_one_the_next_one_waits() -> None:
    sequences, partition_sequences = begun()
    first, second = batch(b"1"), batch(b"2")
    sequences.number(partition_sequences, first)
    assert not sequences.is_sendable(partition_sequences, second)
    sequences.delivered(partition_sequences, first)
    sequences.number(partition_sequences, second)
    assert sequences.is_sendable(partition_sequences, batch(b"3"))


def test_only_the_first_incomplete_batch_is_sent() -> None:
    sequences, partition_sequences = begun()
    first, second = numbered(sequences, partition_sequences, 1, 1)
    assert sequences.is_sendable(partition_sequences, first)
    assert not sequences.is_sendable(partition_sequences, second)
    sequences.delivered(partition_sequences, first)
    assert sequences.is_sendable(partition_sequences, second)


def test_out_of_order_behind_another_one_waits() -> None:
    sequences, partition_sequences = begun()
    _, second = numbered(sequences, partition_sequences, 1, 1)
    assert sequences.action_after_error(partition_sequences, second, OUT_OF_ORDER) is SequenceErrorAction.RETRY
    assert not partition_sequences.renumbers


@pytest.mark.parametrize("code", [OUT_OF_ORDER, UNKNOWN])
def test_the_first_one_refused_begins_a_new_epoch(code: ErrorCode) -> None:
    sequences, partition_sequences = begun()
    first, second, third = numbered(sequences, partition_sequences, 2, 3, 1)
    sequences.delivered(partition_sequences, first)
    assert sequences.action_after_error(partition_sequences, second, code) is SequenceErrorAction.RENUMBER
    assert not sequences.is_sendable(partition_sequences, second)  # the third is on the wire
    sequences.resolve_gaps(partition_sequences)
    assert [(one.producer, one.sequence) for one in (second, third)] == [((7, 1), 0), ((7, 1), 3)]
    assert sequences.is_sendable(partition_sequences, second)


def test_unknown_producer_id_for_a_batch_that_may_be_written_fails_it() -> None:
    sequences, partition_sequences = begun()
    (first,) = numbered(sequences, partition_sequences, 1)
    first.maybe_written = True
    assert sequences.action_after_error(partition_sequences, first, UNKNOWN) is SequenceErrorAction.GIVE_UP


def test_other_errors_are_not_the_sequences() -> None:
    sequences, partition_sequences = begun()
    (first,) = numbered(sequences, partition_sequences, 1)
    assert sequences.action_after_error(partition_sequences, first, ErrorCode.NOT_ENOUGH_REPLICAS) is None


def test_after_an_ambiguous_batch_no_new_batch_is_sent_until_it_is_resolved() -> None:
    sequences, partition_sequences = begun()
    first, second = numbered(sequences, partition_sequences, 1, 1)
    sequences.given_up(partition_sequences, first, maybe_written=True)
    assert not sequences.is_sendable(partition_sequences, batch(b"new"))
    sequences.delivered(partition_sequences, second)  # so the first one was written too
    sequences.resolve_gaps(partition_sequences)
    assert sequences.is_sendable(partition_sequences, batch(b"new"))
    assert sequences.producer == (7, 0)


def test_an_unresolved_batch_bumps_the_producer_epoch() -> None:
    sequences, partition_sequences = begun()
    (first,) = numbered(sequences, partition_sequences, 4)
    sequences.given_up(partition_sequences, first, maybe_written=True)
    sequences.resolve_gaps(partition_sequences)
    assert sequences.producer == (7, 1)
    (again,) = numbered(sequences, partition_sequences, 1)
    assert (again.producer, again.sequence) == ((7, 1), 0)


def test_a_late_response_resolves_an_ambiguous_batch() -> None:
    sequences, partition_sequences = begun()
    (first,) = numbered(sequences, partition_sequences, 4)
    sequences.given_up(partition_sequences, first, maybe_written=True)
    sequences.delivered(partition_sequences, first)
    sequences.resolve_gaps(partition_sequences)
    assert sequences.producer == (7, 0)
    assert numbered(sequences, partition_sequences, 1)[0].sequence == 4


def test_another_partition_moves_to_the_new_epoch_when_it_is_done() -> None:
    sequences, one = begun()
    other = PartitionSequences()
    (refused,) = numbered(sequences, one, 1)
    (under_way,) = numbered(sequences, other, 2)
    sequences.action_after_error(one, refused, OUT_OF_ORDER)
    sequences.resolve_gaps(one)
    assert not sequences.is_sendable(other, batch(b"new"))
    assert under_way.producer == (7, 0)
    sequences.delivered(other, under_way)
    assert numbered(sequences, other, 1)[0].producer == (7, 1)


def test_one_bump_serves_all_partitions_that_need_it() -> None:
    sequences, one = begun()
    other = PartitionSequences()
    for partition_sequences in (one, other):
        (refused,) = numbered(sequences, partition_sequences, 1)
        sequences.action_after_error(partition_sequences, refused, OUT_OF_ORDER)
    sequences.resolve_gaps(one)
    sequences.resolve_gaps(other)
    assert sequences.producer == (7, 1)
    assert other.producer == (7, 1)


def test_when_the_epochs_are_used_up_a_new_identity_is_needed() -> None:
    sequences, partition_sequences = begun(EPOCH_MAX)
    (refused,) = numbered(sequences, partition_sequences, 1)
    sequences.action_after_error(partition_sequences, refused, OUT_OF_ORDER)
    sequences.resolve_gaps(partition_sequences)
    assert sequences.producer is None
    assert not sequences.is_sendable(partition_sequences, refused)
    sequences.producer = (8, 0)
    sequences.resolve_gaps(partition_sequences)
    assert (refused.producer, refused.sequence) == ((8, 0), 0)


def test_parts_of_a_split_batch_share_its_sequence_numbers() -> None:
    sequences, partition_sequences = begun()
    before, whole, after = numbered(sequences, partition_sequences, 2, 3, 1)
    parts = (batch(b"1", b"2"), batch(b"3"))
    partition_sequences.replace(whole, parts)
    assert partition_sequences.numbered == [before, *parts, after]
    assert [part.sequence for part in parts] == [2, 4]


def test_a_part_of_an_ambiguous_batch_is_not_renumbered() -> None:
    sequences, partition_sequences = begun()
    (part,) = numbered(sequences, partition_sequences, 1)
    part.maybe_written = part.split_when_ambiguous = True
    assert sequences.action_after_error(partition_sequences, part, OUT_OF_ORDER) is SequenceErrorAction.GIVE_UP
