"""AddPartitionsToTxn: the beginning of a transaction, its growth, and verification."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.transaction.script import CONFLICT, DATA, OTHER, WALL_MS, Script, began, ended

from rota.coordinator.transaction.events import Producer
from rota.coordinator.transaction.state import PartitionErrors
from rota.coordinator.transaction.transitions import TransactionState
from rota.protocol.errors import ErrorCode

S = TransactionState


def test_the_first_partition_begins_the_transaction() -> None:
    script = Script()
    script.init()
    script.after(10)
    assert script.add(DATA) is ErrorCode.NONE
    assert (script.state, script.value.partitions, script.value.start_ms) == (S.ONGOING, (DATA,), WALL_MS + 10)


def test_a_later_partition_joins_the_transaction() -> None:
    script = began()
    script.after(10)
    assert script.add(OTHER, DATA) is ErrorCode.NONE
    assert (script.value.partitions, script.value.start_ms) == ((DATA, OTHER), WALL_MS)
    assert script.value.update_ms == WALL_MS + 10


def test_partitions_that_are_known_write_nothing() -> None:
    script = began(DATA, OTHER)
    records = len(script.log)
    assert script.add(OTHER) is ErrorCode.NONE
    assert len(script.log) == records


def test_a_request_without_partitions_begins_a_transaction_as_in_kafka() -> None:
    script = Script()
    script.init()
    script.add()
    assert script.state is S.ONGOING


def test_a_wrong_producer_is_refused_and_changes_nothing() -> None:
    script = began()
    producer_id, epoch = script.producer
    before = script.value
    assert script.add(OTHER, producer=Producer(producer_id + 1, epoch)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert script.add(OTHER, producer=Producer(producer_id, epoch + 1)) is ErrorCode.PRODUCER_FENCED
    assert script.value == before


def test_an_unknown_transactional_id_is_refused() -> None:
    script = Script()
    assert script.add(DATA, producer=Producer(1, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert script.verify(DATA, producer=Producer(1, 0)).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert script.machine.is_vacant


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_next_transaction_waits_for_the_end_of_the_one_before(is_commit: bool) -> None:
    script = began()
    script.end(is_commit)
    assert script.add(OTHER) is CONFLICT
    assert script.verify(DATA).error is CONFLICT
    script.written(DATA)
    assert script.add(OTHER) is ErrorCode.NONE
    assert script.value.partitions == (OTHER,)


def test_verification_names_the_partitions_that_are_missing_and_adds_none() -> None:
    script = began()
    assert script.verify(DATA, OTHER) == PartitionErrors(ErrorCode.NONE, {OTHER: ErrorCode.TRANSACTION_ABORTABLE})
    assert script.value.partitions == (DATA,)
    producer_id, epoch = script.producer
    assert script.verify(DATA, producer=Producer(producer_id, epoch + 1)).error is ErrorCode.PRODUCER_FENCED


def test_verification_of_a_completed_transaction_finds_nothing() -> None:
    assert ended(is_commit=True).verify(DATA).partitions == {DATA: ErrorCode.TRANSACTION_ABORTABLE}


def test_the_version_of_the_client_is_written() -> None:
    assert began(version=2).value.client_version == 2


def test_partitions_keep_their_order_through_a_load() -> None:
    script = began(("t", 0), ("u", 0))
    script.add(("t", 1))
    before = script.value
    assert before.partitions == (("t", 0), ("t", 1), ("u", 0))
    script.crash()
    assert script.value == before


class CountedName(str):
    """A topic name that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return str(self) == other

    __hash__ = str.__hash__


def test_txc15_the_work_of_a_verification_grows_with_the_number_of_partitions_alone() -> None:
    script = Script()
    script.init()
    script.add(*((f"t{number}", 0) for number in range(300)))
    CountedName.comparisons = 0
    assert not script.verify(*((CountedName(f"t{number}"), 0) for number in range(300))).partitions
    assert CountedName.comparisons <= 600
