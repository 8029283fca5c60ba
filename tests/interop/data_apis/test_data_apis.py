"""Issue points 7 and 8: a long conversation about data is answered as Apache Kafka answered it, field by field.

Kafka's side is a recording, so that this runs without Java; with ROTA_PEER=HOST:PORT a live Kafka is asked as well.
"""

from __future__ import annotations

import os

import pytest
from tests.interop.data_apis.recording import recorded
from tests.interop.data_apis.scenario import Line, run_scenario

from rota.protocol.errors import ErrorCode

PEER = os.environ.get("ROTA_PEER")


def compare(kafka: list[Line], rota: list[Line]) -> None:
    assert [(line["chapter"], line["step"], line["version"]) for line in rota] == [
        (line["chapter"], line["step"], line["version"]) for line in kafka
    ]
    differ = [
        f"{theirs['chapter']}, {theirs['step']} (v{theirs['version']}):"
        f"\n  kafka {theirs['answer']}\n  rota  {ours['answer']}"
        for theirs, ours in zip(kafka, rota, strict=True)
        if theirs != ours
    ]
    assert not differ, "\n".join(differ)


def test_rota_answers_as_the_recorded_kafka(bootstrap: str) -> None:
    compare(recorded(), list(run_scenario(bootstrap)))


def test_the_recording_is_worth_comparing() -> None:
    lines = recorded()
    assert len(lines) > 250
    text = str(lines)
    for code in (
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ):
        assert f"'error_code': {int(code)}," in text, code


@pytest.mark.peer
@pytest.mark.skipif(PEER is None, reason="ROTA_PEER names no running Apache Kafka")
def test_rota_answers_as_the_living_kafka(bootstrap: str) -> None:
    assert PEER is not None
    compare(list(run_scenario(PEER)), list(run_scenario(bootstrap)))
