"""The table of transitions, whole, and the picture of it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from tests.unit.client.group.script import Script

from rota.client.group.states import CAUSES, TRANSITIONS, MemberState, document, mermaid

DOCUMENT = Path(__file__).parents[4] / "docs" / "CLIENT_STATES.md"
S = MemberState
# where each may lead, beside LEAVING, to which all lead but the last two
NEXT = {
    S.DOWN: {S.DISCOVERING, S.REVOKING, S.JOINING},
    S.DISCOVERING: {S.DOWN, S.JOINING},
    S.REVOKING: {S.DOWN, S.DISCOVERING, S.JOINING},
    S.JOINING: {S.DOWN, S.DISCOVERING, S.SYNCING},
    S.SYNCING: {S.DOWN, S.DISCOVERING, S.JOINING, S.ASSIGNING},
    S.ASSIGNING: {S.DOWN, S.STABLE},
    S.STABLE: {S.DOWN, S.REVOKING, S.JOINING, S.REDISCOVERING},
    S.REDISCOVERING: {S.DOWN, S.DISCOVERING, S.REVOKING, S.JOINING, S.STABLE},
    S.LEAVING: {S.CLOSED},
    S.CLOSED: set(),
}


@pytest.mark.parametrize(("old", "new"), list(product(MemberState, MemberState)))
def test_every_pair_of_states_is_decided(old: MemberState, new: MemberState) -> None:
    m = Script().m
    m.state = old
    if new in NEXT[old] or (new is S.LEAVING and old not in (S.LEAVING, S.CLOSED)):
        m.move(new)
        assert m.state is new
    else:
        with pytest.raises(AssertionError):
            m.move(new)


def reachable(start: MemberState) -> set[MemberState]:
    seen, edge = {start}, {start}
    while edge:
        edge = {new for old in edge for new in TRANSITIONS[old]} - seen
        seen |= edge
    return seen


def test_every_state_can_reach_stable_and_closed() -> None:
    for state in set(MemberState) - {S.LEAVING, S.CLOSED}:
        assert {S.STABLE, S.CLOSED} <= reachable(state)
    assert reachable(S.LEAVING) == {S.LEAVING, S.CLOSED}


def test_every_transition_is_drawn_and_has_its_cause() -> None:
    assert all(CAUSES.values())
    assert mermaid().count("-->") == len(CAUSES) + 2


def test_the_page_is_fresh() -> None:
    assert DOCUMENT.read_text() == document()
