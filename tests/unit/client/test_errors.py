import inspect

import pytest

from rota.client import errors
from rota.client.errors import (
    FAILURES_IN_MESSAGE_MAX,
    AdminFailed,
    BrokerError,
    BufferFull,
    CommitFailed,
    CommitOutcomeUnknown,
    ConfigError,
    DeliveryFailed,
    IllegalUse,
    KafkaError,
    LogTruncated,
    NoOffset,
    OffsetOutOfRange,
    RebalanceInProgress,
    RecordTooLarge,
    TimedOut,
    TransactionAbortable,
    Unreachable,
)
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode

P = TopicPartition("t", 1)
ALL = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, Exception)]


@pytest.mark.parametrize("kind", ALL)
def test_one_root(kind: type[Exception]) -> None:
    assert issubclass(kind, KafkaError)
    assert kind.__doc__, "what it means and what to do"


@pytest.mark.parametrize(
    ("kind", "python"),
    [
        (ConfigError, ValueError),
        (RecordTooLarge, ValueError),
        (IllegalUse, RuntimeError),
        (Unreachable, ConnectionError),
        (TimedOut, TimeoutError),
        (BufferFull, TimeoutError),
    ],
)
def test_errors_are_subclasses_of_the_matching_builtin(kind: type[Exception], python: type[Exception]) -> None:
    assert issubclass(kind, python)


def test_the_retriable_errors() -> None:
    assert {item for item in ALL if item.retriable} == {
        Unreachable,
        TimedOut,
        BufferFull,
        RebalanceInProgress,
        TransactionAbortable,
        CommitOutcomeUnknown,
    }


def test_a_broker_error_names_operation_partition_and_remedy() -> None:
    error = BrokerError(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "fetching",
        topic="t",
        partition=1,
        group="g",
        broker="3 (h:1)",
        remedy="Ask for the right to read it.",
    )
    assert str(error) == (
        "fetching (t-1, group g, broker 3 (h:1)): TOPIC_AUTHORIZATION_FAILED (29): not allowed on this topic. "
        "Ask for the right to read it."
    )
    assert (error.code, error.topic, error.partition, error.group) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "t",
        1,
        "g",
    )
    assert not error.is_retriable


def test_the_message_of_the_broker_replaces_the_default_text() -> None:
    error = BrokerError(40, "creating", topic="t", detail="retention.ms is no number")
    assert str(error) == "creating (t): INVALID_CONFIG (40): retention.ms is no number"


def test_a_code_of_the_future_is_an_error_all_the_same() -> None:
    error = BrokerError(9_999, "asking")
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert str(error).startswith("asking: UNKNOWN_SERVER_ERROR (-1)")
    assert BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "asking").is_retriable


def test_errors_have_their_partitions_and_positions() -> None:
    assert CommitFailed("gone", [P]).partitions == (P,)
    assert CommitFailed("gone").partitions == ()
    assert NoOffset("none", [P]).partitions == (P,)
    assert OffsetOutOfRange("beyond", {P: 9}).positions == {P: 9}
    assert OffsetOutOfRange("beyond", {P: 9}).partitions == (P,)
    assert LogTruncated("cut", {P: 4}).offsets == {P: 4}


def test_a_failed_delivery_has_its_cause() -> None:
    cause = TimedOut("no answer")
    error = DeliveryFailed("not written", P, maybe_written=True, cause=cause)
    assert error.__cause__ is error.cause is cause
    assert error.maybe_written
    assert error.partition == P


def test_ad8_of_many_failures_only_those_that_are_shown_become_text() -> None:
    read: list[object] = []

    class Counted(KafkaError):
        def __str__(self) -> str:
            read.append(self)
            return "refused"

    failure = AdminFailed("deleting topics", {}, {f"t{number}": Counted() for number in range(1_000)})
    assert len(read) == FAILURES_IN_MESSAGE_MAX
    assert str(failure).startswith("deleting topics: 1000 of 1000 failed: t0: refused; t1: refused")
    assert str(failure).endswith("; …")
