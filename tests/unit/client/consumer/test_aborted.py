"""Which batches belong to aborted transactions."""

from __future__ import annotations

from tests.unit.client.consumer.kit import batch, marker, transactional

from rota.client.consumer.aborted import Aborted
from rota.protocol.messages.fetch import AbortedTransaction
from rota.protocol.records.batch import read_header


def hidden(transactions: list[tuple[int, int]], *batches: bytes) -> list[bool]:
    """For each data batch in turn; `transactions` are (producer, first offset)."""
    aborted = Aborted(tuple(AbortedTransaction(producer_id=item, first_offset=first) for item, first in transactions))
    found = []
    for raw in batches:
        header = read_header(raw)
        if header.is_control:
            aborted.marked(header, raw)
        else:
            found.append(aborted.is_aborted(header))
    return found


def test_a_transaction_is_hidden_until_its_marker() -> None:
    log = [transactional(0, 2), transactional(2, 2), marker(4, 0), transactional(5, 2), marker(7, 1)]
    assert hidden([(7, 0)], *log) == [True, True, False]


def test_only_records_of_the_aborted_producer_are_hidden() -> None:
    log = [transactional(0, 2, 7), transactional(2, 2, 8), batch(4, 1), marker(5, 0, 7), marker(6, 1, 8)]
    assert hidden([(7, 0)], *log) == [True, False, False]


def test_a_marker_of_another_producer_ends_nothing() -> None:
    log = [transactional(0, 2, 7), marker(2, 0, 8), transactional(3, 2, 7)]
    assert hidden([(7, 0)], *log) == [True, True]


def test_aborted_transactions_may_be_in_any_order() -> None:
    log = [transactional(0, 1), marker(1, 0), transactional(2, 1), marker(3, 1), transactional(4, 1), marker(5, 0)]
    assert hidden([(7, 4), (7, 0)], *log) == [True, False, True]


def test_an_answer_may_begin_in_the_middle_of_a_transaction() -> None:
    assert hidden([(7, 3)], transactional(10, 2), marker(12, 0), transactional(13, 1)) == [True, False]


def test_non_transactional_batches_are_never_hidden() -> None:
    assert hidden([(7, 0)], batch(0, 2, producer_id=7, producer_epoch=0)) == [False]
