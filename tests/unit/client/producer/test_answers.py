"""What each code means for a batch."""

from __future__ import annotations

import pytest
from tests.unit.client.producer.kit import answer, batch

from rota.client.producer.answers import BatchAction, batch_action, is_possibly_written, refusal, refused, written
from rota.client.producer.batch import Written
from rota.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "then"),
    [
        (ErrorCode.NONE, BatchAction.DELIVERED),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, BatchAction.DELIVERED),
        (ErrorCode.MESSAGE_TOO_LARGE, BatchAction.SPLIT),
        (ErrorCode.NOT_ENOUGH_REPLICAS, BatchAction.RETRY),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, BatchAction.RETRY),
        (ErrorCode.CORRUPT_MESSAGE, BatchAction.RETRY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, BatchAction.REFRESH),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, BatchAction.REFRESH),
        (ErrorCode.UNKNOWN_TOPIC_ID, BatchAction.REFRESH),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, BatchAction.GIVE_UP),
        (ErrorCode.INVALID_RECORD, BatchAction.GIVE_UP),
        (ErrorCode.INVALID_REQUIRED_ACKS, BatchAction.GIVE_UP),
    ],
)
def test_each_code_leads_somewhere(code: ErrorCode, then: BatchAction) -> None:
    assert batch_action(code, 2) is then


def test_a_single_record_that_is_too_large_is_not_split() -> None:
    assert batch_action(ErrorCode.MESSAGE_TOO_LARGE, 1) is BatchAction.GIVE_UP


def test_a_duplicate_has_no_offset() -> None:
    assert written(answer(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, offset=7)) == Written(-1)
    assert written(answer(offset=7, log_append_time_ms=9)) == Written(7, 9)


def test_error_codes_after_which_the_batch_may_be_written() -> None:
    assert is_possibly_written(ErrorCode.REQUEST_TIMED_OUT)
    assert not is_possibly_written(ErrorCode.NOT_ENOUGH_REPLICAS)


def test_a_refusal_names_partition_broker_and_the_message_of_the_broker() -> None:
    text = str(refusal(batch(b"1"), answer(ErrorCode.INVALID_RECORD, message="no key"), "3 (host:9092)"))
    assert "t-0" in text
    assert "3 (host:9092)" in text
    assert "no key" in text


def test_the_records_that_were_refused_are_named() -> None:
    failed = refused(
        batch(b"1", b"2", b"3"),
        answer(ErrorCode.INVALID_TIMESTAMP, refused={0: "too old", 2: None}, message="bad"),
        "1",
    )
    assert "too old" in str(failed.records[0])
    assert "bad" in str(failed.records[2])
    assert "was in a batch with 2" in str(failed.records[1])


def test_one_refused_record_has_the_answers_code() -> None:
    failed = refused(batch(b"1", b"2"), answer(ErrorCode.INVALID_TIMESTAMP, refused={1: "too old"}), "1")
    assert "INVALID_TIMESTAMP" in str(failed.records[1])
    assert "INVALID_RECORD" in str(failed.records[0])
