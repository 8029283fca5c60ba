"""Issue point 2: a long conversation about transactions is answered as Apache Kafka answered it, field by field.

Kafka's side is a recording, so that this runs without Java; with ROTA_PEER=HOST:PORT a live Kafka is asked as well.
"""

from __future__ import annotations

import os

import pytest
from tests.interop.data_apis.test_data_apis import compare
from tests.interop.transaction_apis.recording import recorded
from tests.interop.transaction_apis.scenario import run_scenario

from rota.protocol.errors import ErrorCode

PEER = os.environ.get("ROTA_PEER")
CODES = (
    ErrorCode.NONE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.INVALID_REGULAR_EXPRESSION,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.INVALID_GROUP_ID,
)


def test_rota_answers_as_the_recorded_kafka(bootstrap: str) -> None:
    compare(recorded(), list(run_scenario(bootstrap)))


def test_the_recording_is_worth_comparing() -> None:
    lines = recorded()
    assert len(lines) > 1_600
    text = str(lines)
    for code in CODES:
        assert f"error_code': {int(code)}," in text or f"error_code': {int(code)}}}" in text, code


@pytest.mark.peer
@pytest.mark.skipif(PEER is None, reason="ROTA_PEER names no running Apache Kafka")
def test_rota_answers_as_the_living_kafka(bootstrap: str) -> None:
    assert PEER is not None
    compare(list(run_scenario(PEER)), list(run_scenario(bootstrap)))
