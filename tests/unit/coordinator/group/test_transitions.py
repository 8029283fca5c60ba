"""The table of transitions, whole, and the picture of it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from tests.unit.coordinator.group.script import GROUP, PROMPT

from rota.coordinator.group.machine import Group
from rota.coordinator.group.transitions import CAUSES, TRANSITIONS, GroupState, document, mermaid

DOCUMENT = Path(__file__).parents[4] / "docs" / "GROUP_STATES.md"
S = GroupState
# Kafka's own words: the states from which each may come
PREVIOUS = {
    S.EMPTY: {S.PREPARING},
    S.PREPARING: {S.STABLE, S.COMPLETING, S.EMPTY},
    S.COMPLETING: {S.PREPARING},
    S.STABLE: {S.COMPLETING},
    S.DEAD: {S.STABLE, S.PREPARING, S.COMPLETING, S.EMPTY, S.DEAD},
}


@pytest.mark.parametrize(("old", "new"), list(product(GroupState, GroupState)))
def test_every_pair_of_states_is_decided(old: GroupState, new: GroupState) -> None:
    group = Group(GROUP, PROMPT)
    group.state = old
    if old in PREVIOUS[new]:
        group.transition_to(new, 5)
        assert (group.state, group.state_ms) == (new, 5)
    else:
        with pytest.raises(AssertionError):
            group.transition_to(new, 5)


def test_every_transition_has_its_cause() -> None:
    assert CAUSES.keys() == {(old, new) for old, targets in TRANSITIONS.items() for new in targets}
    assert mermaid().count("-->") == len(CAUSES) + 2


def test_the_picture_is_fresh() -> None:
    assert DOCUMENT.read_text() == document()
