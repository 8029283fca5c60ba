import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.errors import (
    BrokerError,
    DeliveryFailed,
    IllegalUse,
    ProducerFenced,
    TimedOut,
    TransactionAbortable,
    TransactionFailed,
    Unsupported,
)
from rota.client.producer.transaction import (
    TransactionMachine,
    TransactionState,
    response_error,
    transaction_error,
)
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.end_txn import EndTxnRequest
from rota.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def ready(version: int = 2) -> TransactionMachine:
    machine = TransactionMachine("id")
    machine.identified((7, 0), version)
    return machine


def opened(version: int = 2) -> TransactionMachine:
    machine = ready(version)
    machine.begin()
    return machine


def test_records_are_refused_outside_of_a_transaction() -> None:
    machine = TransactionMachine("id")
    for _ in ("before start", "ready"):
        with pytest.raises(IllegalUse):
            machine.check_send()
        machine.identified((7, 0), 2)
    machine.begin()
    machine.check_send()
    machine.committing()
    with pytest.raises(IllegalUse, match="is being committed"):
        machine.check_send()


def test_a_record_that_waited_does_not_enter_the_next_transaction() -> None:
    machine = opened()
    number = machine.number
    machine.check_send(number)
    machine.aborting()
    machine.ended(None)
    machine.begin()
    with pytest.raises(IllegalUse, match="ended while"):
        machine.check_send(number)


def test_a_second_transaction_needs_the_end_of_the_first() -> None:
    machine = opened()
    with pytest.raises(IllegalUse, match="open already"):
        machine.begin()
    machine.committing()
    machine.commit_sent()
    machine.ended((7, 1))
    machine.begin()
    assert (machine.number, machine.producer) == (2, (7, 1))


def test_version_1_holds_batches_until_their_partition_is_added() -> None:
    machine = opened(1)
    machine.send(P0)
    machine.send(P1)
    assert not machine.is_sendable(P0)
    assert list(machine.pending) == [P0, P1]
    machine.partitions_added((P0,))
    assert machine.is_sendable(P0)
    assert not machine.is_sendable(P1)
    assert list(machine.pending) == [P1]
    machine.send(P0)
    assert list(machine.pending) == [P1], "a partition is added once"


def test_version_2_sends_at_once() -> None:
    machine = opened(2)
    assert not machine.is_sendable(P0)
    machine.send(P0)
    assert machine.is_sendable(P0)
    assert not machine.pending
    assert machine.is_begun_at_coordinator


def test_the_next_transaction_has_no_partitions() -> None:
    machine = opened(2)
    machine.send(P0)
    machine.aborting()
    machine.ended((7, 1))
    machine.begin()
    assert not machine.is_sendable(P0)
    assert not machine.is_begun_at_coordinator


def test_the_version_is_that_of_the_first_identity() -> None:
    machine = ready(1)
    machine.identified((7, 1), 2)
    assert machine.version == 1


def test_after_a_failure_the_transaction_can_only_be_aborted() -> None:
    machine = opened()
    assert machine.fail(TimedOut("late"))
    assert not machine.fail(TimedOut("the second failure is no news"))
    for call in (machine.check_send, machine.committing, machine.begin):
        with pytest.raises(TransactionAbortable, match="late"):
            call()
    machine.aborting()
    machine.ended(None)
    machine.begin()


def test_a_failure_while_the_commit_waits_for_deliveries_prevents_the_commit() -> None:
    machine = opened()
    machine.committing()
    machine.fail(TimedOut("late"))
    machine.reopened()
    with pytest.raises(TransactionAbortable):
        machine.commit_sent()
    assert machine.state is TransactionState.ABORTABLE


def test_a_failure_during_the_abort_changes_nothing() -> None:
    machine = opened()
    machine.aborting()
    assert not machine.fail(TimedOut("late"))
    assert machine.state is TransactionState.ABORTING


def test_after_a_fatal_failure_nothing_works() -> None:
    machine = opened()
    machine.fail(TimedOut("late"))
    assert machine.fail(BrokerError(ErrorCode.PRODUCER_FENCED, "writing")), "a fatal failure replaces another one"
    assert not machine.fail(BrokerError(ErrorCode.PRODUCER_FENCED, "writing"))
    for call in (machine.check_send, machine.committing, machine.aborting, machine.begin):
        with pytest.raises(ProducerFenced):
            call()
    machine.ended(None)
    assert machine.state is TransactionState.FAILED
    assert not machine.is_in_transaction


def test_a_commit_whose_outcome_is_unknown_can_only_be_repeated() -> None:
    machine = opened()
    machine.committing()
    machine.commit_sent()
    for call in (machine.aborting, machine.begin, machine.check_send):
        with pytest.raises(IllegalUse, match="commit_transaction"):
            call()
    machine.committing()
    assert machine.state is TransactionState.COMMIT_SENT
    machine.commit_sent()
    machine.ended(None)
    assert machine.state is TransactionState.READY


def test_a_commit_that_was_given_up_before_it_was_sent_leaves_the_transaction_open() -> None:
    machine = opened()
    machine.committing()
    machine.reopened()
    machine.aborting()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.PRODUCER_FENCED, ProducerFenced),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TransactionFailed),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, TransactionFailed),
        (ErrorCode.INVALID_PRODUCER_EPOCH, TransactionAbortable),  # the abort tells whether it was fenced
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionAbortable),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, TransactionAbortable),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TransactionAbortable),
        (ErrorCode.INVALID_TXN_STATE, TransactionAbortable),
    ],
)
def test_errors_of_produce(code: ErrorCode, kind: type[Exception]) -> None:
    refused = BrokerError(code, "writing")
    lost = DeliveryFailed("a record was not written", P0, maybe_written=False, cause=refused)
    for cause in (refused, lost):
        error = transaction_error("id", cause)
        assert type(error) is kind
        assert error.__cause__ is cause


def test_a_broker_that_does_not_know_the_request_is_fatal() -> None:
    assert type(transaction_error("id", Unsupported("no such API"))) is TransactionFailed


@pytest.mark.parametrize(
    ("api", "code", "kind"),
    [
        (EndTxnRequest, ErrorCode.PRODUCER_FENCED, ProducerFenced),
        (EndTxnRequest, ErrorCode.INVALID_PRODUCER_EPOCH, ProducerFenced),
        (EndTxnRequest, ErrorCode.INVALID_TXN_STATE, TransactionAbortable),
        (EndTxnRequest, ErrorCode.TRANSACTION_ABORTABLE, TransactionAbortable),
        (EndTxnRequest, ErrorCode.INVALID_PRODUCER_ID_MAPPING, TransactionAbortable),
        (TxnOffsetCommitRequest, ErrorCode.ILLEGAL_GENERATION, TransactionAbortable),
        (TxnOffsetCommitRequest, ErrorCode.FENCED_INSTANCE_ID, TransactionAbortable),
        (TxnOffsetCommitRequest, ErrorCode.GROUP_AUTHORIZATION_FAILED, TransactionAbortable),
    ],
)
def test_errors_of_coordinators(api: type, code: ErrorCode, kind: type[Exception]) -> None:
    failure = BrokerError(code, "ending a transaction")
    error = response_error("id", api.KEY, failure)  # type: ignore[attr-defined]
    assert type(error) is kind
    assert error.__cause__ is failure


MOVES = ["begin", "send", "fail", "fence", "commit", "reopen", "commit sent", "abort", "committed", "aborted", "added"]


@given(st.sampled_from([1, 2]), st.lists(st.sampled_from(MOVES), max_size=40))
def test_in_every_order_of_calls_a_failed_transaction_is_never_committed(version: int, moves: list[str]) -> None:
    """The machine refuses what does not fit; what it accepts keeps the laws."""
    machine = ready(version)
    has_failed = is_fenced = is_commit_sent = False
    for move in moves:
        before = machine.state
        try:
            apply(machine, move)
        except (IllegalUse, TransactionAbortable, TransactionFailed):
            assert machine.state in (before, TransactionState.OPEN), "a refused call changes nothing"
            continue
        match move:
            case "begin":
                assert not is_fenced
                has_failed = is_commit_sent = False
            case "send":
                assert machine.state is TransactionState.OPEN
                assert not has_failed
            case "fail":
                has_failed = has_failed or before in (TransactionState.OPEN, TransactionState.COMMITTING)
            case "fence":
                is_fenced = True
            case "commit sent":
                assert not has_failed, "a failed transaction was committed"
                assert not is_fenced
                is_commit_sent = True
            case "abort":
                assert not is_commit_sent, "a commit that was sent is followed by an abort"
                assert not is_fenced
        assert (machine.state is TransactionState.FAILED) == is_fenced
        assert all(not machine.is_sendable(partition) for partition in machine.pending)


def apply(machine: TransactionMachine, move: str) -> None:
    """One call. EndTxn is answered only where one was sent."""
    state = machine.state
    match move:
        case "begin":
            machine.begin()
        case "send":
            machine.check_send()
            machine.send(P0)
        case "fail" if state is not TransactionState.COMMIT_SENT:
            machine.fail(TimedOut("late"))
        case "fence":
            machine.fail(BrokerError(ErrorCode.PRODUCER_FENCED, "writing"))
        case "commit":
            machine.committing()
        case "reopen":
            machine.reopened()
        case "commit sent":
            if state in (TransactionState.READY, TransactionState.ABORTING):
                raise IllegalUse("there is no commit")
            machine.reopened()  # the deliveries have ended, some of them in a failure
            machine.commit_sent()
        case "abort":
            machine.aborting()
        case "committed" if state is TransactionState.COMMIT_SENT:
            machine.ended((7, 1))
        case "aborted" if state is TransactionState.ABORTING:
            machine.ended((7, 1))
        case "added":
            machine.partitions_added(tuple(machine.pending))
