"""The table of transitions, whole, and the picture of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from tests.unit.coordinator.transaction.script import Script

from rota.coordinator.transaction.state import Step
from rota.coordinator.transaction.transitions import (
    CAUSES,
    CODES,
    OF_CODE,
    TRANSITIONS,
    UNUSED_NAMES,
    TransactionState,
    document,
    mermaid,
)

DOCUMENT = Path(__file__).parents[4] / "docs" / "TRANSACTION_STATES.md"
S = TransactionState
# Kafka's own words: the states from which each may come
PREVIOUS = {
    S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_COMMIT: {S.ONGOING},
    S.PREPARE_ABORT: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
    S.COMPLETE_ABORT: {S.PREPARE_ABORT},
}


@pytest.mark.parametrize(("old", "new"), list(product(S, S)))
def test_every_pair_of_states_is_decided(old: S, new: S) -> None:
    script = Script()
    script.init()
    machine = script.machine
    machine.hard = replace(script.value, state=old)
    value = replace(machine.hard, state=new)
    if old in PREVIOUS[new]:
        machine.write(value, Step(0, 0))
        assert machine.hard is value
    else:
        with pytest.raises(AssertionError):
            machine.write(value, Step(0, 0))


def test_every_transition_has_its_cause() -> None:
    assert CAUSES.keys() == {(old, new) for old, targets in TRANSITIONS.items() for new in targets}
    assert mermaid().count("-->") == len(CAUSES) + 4


def test_the_codes_are_those_of_kafka() -> None:
    assert {state.value: code for state, code in CODES.items()} == {
        "Empty": 0,
        "Ongoing": 1,
        "PrepareCommit": 2,
        "PrepareAbort": 3,
        "CompleteCommit": 4,
        "CompleteAbort": 5,
    }
    assert {code: state for state, code in CODES.items()} == OF_CODE
    assert {"Dead", "PrepareEpochFence"} == UNUSED_NAMES


def test_the_picture_is_fresh() -> None:
    assert DOCUMENT.read_text() == document()
