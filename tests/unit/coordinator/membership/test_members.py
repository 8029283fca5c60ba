"""FD1, FD2: claims."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples

from rota.coordinator.membership.datagrams import Claim, Status
from rota.coordinator.membership.members import TRANSITIONS, Member

ALIVE, SUSPECT, DEAD = Status
# status, status of the claim -> how much higher the incarnation of the claim has to be, at least
INCARNATION_AHEAD_MIN = {
    (ALIVE, ALIVE): 1,
    (ALIVE, SUSPECT): 0,
    (ALIVE, DEAD): 0,
    (SUSPECT, ALIVE): 1,
    (SUSPECT, SUSPECT): 1,
    (SUSPECT, DEAD): 0,
    (DEAD, ALIVE): 1,
    (DEAD, SUSPECT): 1,
    (DEAD, DEAD): 1,
}


def a_member(status: Status = ALIVE, incarnation: int = 0) -> Member:
    return Member(1, 11, ("127.0.0.1", 1), status, incarnation)


@pytest.mark.parametrize(("status", "claimed"), list(product(Status, Status)))
@pytest.mark.parametrize("ahead", [-1, 0, 1, 2])
def test_the_table_of_claims_is_whole(status: Status, claimed: Status, ahead: int) -> None:
    member = a_member(status, 5)
    is_merged = member.merge(Claim(broker_id=1, epoch=11, incarnation=5 + ahead, status=claimed))
    assert is_merged == (ahead >= INCARNATION_AHEAD_MIN[status, claimed])
    assert (member.status, member.incarnation) == ((claimed, 5 + ahead) if is_merged else (status, 5))
    assert member.status is status or (status, member.status) in TRANSITIONS


def test_every_transition_is_one_that_a_claim_makes() -> None:
    assert set(TRANSITIONS) == {(status, claimed) for status, claimed in INCARNATION_AHEAD_MIN if status is not claimed}


CLAIMS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(Status)), max_size=6)


@given(CLAIMS, st.randoms(use_true_random=False))
@settings(max_examples=examples(100))
def test_members_that_received_the_same_claims_agree(claims: list[tuple[int, Status]], random: st.DataObject) -> None:
    """Whatever the order, and however often."""
    first, second = a_member(), a_member()
    again = [*claims, *claims]
    random.shuffle(again)  # type: ignore[attr-defined]
    for member, received in ((first, claims), (second, again)):
        for incarnation, status in received:
            member.merge(Claim(broker_id=1, epoch=11, incarnation=incarnation, status=status))
    assert first == second or (first.status, first.incarnation) == (second.status, second.incarnation)
    assert (first.incarnation, first.status) == max([(0, ALIVE), *claims])


def test_a_claim_has_the_status_and_incarnation_of_the_member() -> None:
    assert a_member(SUSPECT, 3).claim() == Claim(broker_id=1, epoch=11, incarnation=3, status=SUSPECT)
    assert a_member(ALIVE, 3).claim(DEAD) == Claim(broker_id=1, epoch=11, incarnation=3, status=DEAD)
    assert a_member().claim(ALIVE, 4) == Claim(broker_id=1, epoch=11, incarnation=4, status=ALIVE)


def test_a_suspect_has_time_to_object() -> None:
    member = a_member(SUSPECT)
    member.suspected_ms, member.suspicion_ms, member.resend_ms = 1000, 300, None
    assert (member.refutation_ms(1), member.refutation_ms(2)) == (1300, 1600)
    member.postpone(50)
    assert (member.refutation_ms(1), member.resend_ms) == (1350, None)
    member.resend_ms = 1010
    member.postpone(50)
    assert (member.refutation_ms(1), member.resend_ms) == (1400, 1060)


def test_a_suspect_that_answers_has_more_time() -> None:
    """FD4."""
    member = a_member(SUSPECT)
    member.suspected_ms, member.suspicion_ms, member.last_received_ms = 1000, 300, 900
    assert member.refutation_ms(1) == 1300
    member.last_received_ms = 1200
    assert member.refutation_ms(2) == 1800
