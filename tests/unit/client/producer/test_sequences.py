"""Idempotence, case by case; tests/property/test_producer.py tries all the others."""

from __future__ import annotations

import pytest
from tests.unit.client.producer.kit import batch

from rota.client.producer.sequences import EPOCH_MAX, NUMBERED_MAX, Advice, Numbering, Sequences
from rota.protocol.errors import ErrorCode

OUT_OF_ORDER, UNKNOWN = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID


def begun(epoch: int = 0) -> tuple[Sequences, Numbering]:
    sequences = Sequences()
    sequences.producer = (7, epoch)
    return sequences, Numbering()


def numbered(sequences: Sequences, numbering: Numbering, *counts: int) -> list:
    made = [batch(*[b"x"] * count) for count in counts]
    for one in made:
        assert sequences.may_send(numbering, one)
        sequences.number(numbering, one)
        numbering.known = True  # as if the broker had something of it already
    return made


def test_nothing_is_sent_without_an_identity() -> None:
    assert not Sequences().may_send(Numbering(), batch(b"1"))


def test_sequences_have_no_gap() -> None:
    sequences, numbering = begun()
    made = numbered(sequences, numbering, 3, 1, 2)
    assert [(one.producer, one.sequence) for one in made] == [((7, 0), 0), ((7, 0), 3), ((7, 0), 4)]


def test_a_broker_remembers_five() -> None:
    sequences, numbering = begun()
    numbered(sequences, numbering, *[1] * NUMBERED_MAX)
    assert not sequences.may_send(numbering, batch(b"1"))


def test_until_the_broker_has_one_the_next_one_waits() -> None:
    sequences, numbering = begun()
    first, second = batch(b"1"), batch(b"2")
    sequences.number(numbering, first)
    assert not sequences.may_send(numbering, second)
    sequences.delivered(numbering, first)
    sequences.number(numbering, second)
    assert sequences.may_send(numbering, batch(b"3"))


def test_only_the_first_incomplete_batch_is_sent() -> None:
    sequences, numbering = begun()
    first, second = numbered(sequences, numbering, 1, 1)
    assert sequences.may_send(numbering, first)
    assert not sequences.may_send(numbering, second)
    sequences.delivered(numbering, first)
    assert sequences.may_send(numbering, second)


def test_out_of_order_behind_another_one_waits() -> None:
    sequences, numbering = begun()
    _, second = numbered(sequences, numbering, 1, 1)
    assert sequences.advise(numbering, second, OUT_OF_ORDER) is Advice.RETRY
    assert not numbering.renumbers


@pytest.mark.parametrize("code", [OUT_OF_ORDER, UNKNOWN])
def test_the_first_one_refused_begins_a_new_epoch(code: ErrorCode) -> None:
    sequences, numbering = begun()
    first, second, third = numbered(sequences, numbering, 2, 3, 1)
    sequences.delivered(numbering, first)
    assert sequences.advise(numbering, second, code) is Advice.RENUMBER
    assert not sequences.may_send(numbering, second)  # the third is on the wire
    sequences.settle(numbering)
    assert [(one.producer, one.sequence) for one in (second, third)] == [((7, 1), 0), ((7, 1), 3)]
    assert sequences.may_send(numbering, second)


def test_unknown_producer_id_for_a_batch_that_may_be_written_fails_it() -> None:
    sequences, numbering = begun()
    (first,) = numbered(sequences, numbering, 1)
    first.maybe_written = True
    assert sequences.advise(numbering, first, UNKNOWN) is Advice.GIVE_UP


def test_other_errors_are_not_the_sequences() -> None:
    sequences, numbering = begun()
    (first,) = numbered(sequences, numbering, 1)
    assert sequences.advise(numbering, first, ErrorCode.NOT_ENOUGH_REPLICAS) is None


def test_after_an_ambiguous_batch_no_new_batch_is_sent_until_it_is_resolved() -> None:
    sequences, numbering = begun()
    first, second = numbered(sequences, numbering, 1, 1)
    sequences.given_up(numbering, first, maybe_written=True)
    assert not sequences.may_send(numbering, batch(b"new"))
    sequences.delivered(numbering, second)  # so the first one was written too
    sequences.settle(numbering)
    assert sequences.may_send(numbering, batch(b"new"))
    assert sequences.producer == (7, 0)


def test_an_unresolved_batch_bumps_the_producer_epoch() -> None:
    sequences, numbering = begun()
    (first,) = numbered(sequences, numbering, 4)
    sequences.given_up(numbering, first, maybe_written=True)
    sequences.settle(numbering)
    assert sequences.producer == (7, 1)
    (again,) = numbered(sequences, numbering, 1)
    assert (again.producer, again.sequence) == ((7, 1), 0)


def test_a_late_response_resolves_an_ambiguous_batch() -> None:
    sequences, numbering = begun()
    (first,) = numbered(sequences, numbering, 4)
    sequences.given_up(numbering, first, maybe_written=True)
    sequences.delivered(numbering, first)
    sequences.settle(numbering)
    assert sequences.producer == (7, 0)
    assert numbered(sequences, numbering, 1)[0].sequence == 4


def test_another_partition_moves_to_the_new_epoch_when_it_is_done() -> None:
    sequences, one = begun()
    other = Numbering()
    (refused,) = numbered(sequences, one, 1)
    (under_way,) = numbered(sequences, other, 2)
    sequences.advise(one, refused, OUT_OF_ORDER)
    sequences.settle(one)
    assert not sequences.may_send(other, batch(b"new"))
    assert under_way.producer == (7, 0)
    sequences.delivered(other, under_way)
    assert numbered(sequences, other, 1)[0].producer == (7, 1)


def test_one_bump_serves_all_partitions_that_need_it() -> None:
    sequences, one = begun()
    other = Numbering()
    for numbering in (one, other):
        (refused,) = numbered(sequences, numbering, 1)
        sequences.advise(numbering, refused, OUT_OF_ORDER)
    sequences.settle(one)
    sequences.settle(other)
    assert sequences.producer == (7, 1)
    assert other.producer == (7, 1)


def test_when_the_epochs_are_used_up_a_new_identity_is_needed() -> None:
    sequences, numbering = begun(EPOCH_MAX)
    (refused,) = numbered(sequences, numbering, 1)
    sequences.advise(numbering, refused, OUT_OF_ORDER)
    sequences.settle(numbering)
    assert sequences.producer is None
    assert not sequences.may_send(numbering, refused)
    sequences.producer = (8, 0)
    sequences.settle(numbering)
    assert (refused.producer, refused.sequence) == ((8, 0), 0)


def test_parts_of_a_split_batch_share_its_sequence_numbers() -> None:
    sequences, numbering = begun()
    before, whole, after = numbered(sequences, numbering, 2, 3, 1)
    parts = (batch(b"1", b"2"), batch(b"3"))
    numbering.replace(whole, parts)
    assert numbering.numbered == [before, *parts, after]
    assert [part.sequence for part in parts] == [2, 4]


def test_a_part_of_an_ambiguous_batch_is_not_renumbered() -> None:
    sequences, numbering = begun()
    (part,) = numbered(sequences, numbering, 1)
    part.maybe_written = part.split_when_ambiguous = True
    assert sequences.advise(numbering, part, OUT_OF_ORDER) is Advice.GIVE_UP
