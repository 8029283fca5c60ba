"""Decisions as records."""

from __future__ import annotations

import pytest

from rota.client.producer.prepared import PreparedTransaction
from rota.spark_connector.two_phase.decision import Decision, UnknownDecision, decode, encode

DECISION = Decision(7, (PreparedTransaction("id-0", 12, 3, 2), PreparedTransaction("id-1", 13, 0, 1)))
DISCARDING = Decision(7, (), is_complete=True, discarded=DECISION.transactions)


def test_a_record_is_the_whole_decision() -> None:
    assert decode(encode(DECISION)) == DECISION
    assert decode(encode(DECISION.completed())) == Decision(7, (), is_complete=True)
    assert decode(encode(DISCARDING)) == DISCARDING
    assert encode(DECISION) == (
        b'{"format":1,"batch":7,"state":"committing","transactions":[["id-0",12,3,2],["id-1",13,0,1]]}'
    )


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format":2,"batch":7,"state":"committing","transactions":[]}',
        b'{"format":1,"batch":7,"state":"aborted","transactions":[]}',
        b'{"format":1,"batch":7,"state":"committing","transactions":[["id",1]]}',
        b'{"format":1,"batch":Infinity,"state":"committing","transactions":[]}',
        b"[" * 100_000,
        b'{"format":1,"batch":7,"state":"committing","transactions":[],"discarded":[["id"]]}',
        b'{"format":1,"batch":"x","state":"committing","transactions":[]}',
        b'{"format":1,"batch":7,"state":"committing","transactions":null}',
    ],
)
def test_another_record_is_an_error(value: bytes) -> None:
    with pytest.raises(UnknownDecision, match="decisionTopic"):
        decode(value)
