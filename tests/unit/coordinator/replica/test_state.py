"""A leader with followers, as a conversation: an event, and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rota.coordinator.replica.state import ExpandIsr, HighWatermarkMoved, ReplicaState, Role, ShrinkIsr
from rota.coordinator.replica.waits import Complete
from rota.protocol.errors import ErrorCode

MOVED = HighWatermarkMoved()
NOW_MS = 1_000_000
LAG_MS = 30_000
ALL = (1, 2, 3)


def leader(isr: Iterable[int] = ALL, *, end: int = 0, minimum: int = 1, flushes: bool = False) -> ReplicaState[str]:
    """Broker 1 leads in epoch 4; brokers 2 and 3 follow."""
    state = ReplicaState[str](1, log_end_offset=end, min_insync_replicas=minimum, flushes=flushes)
    state.become_leader(4, ALL, isr, NOW_MS)
    return state


def fetch(state: ReplicaState[str], offset: int, *followers: int, now_ms: int = NOW_MS) -> list[object]:
    return [effect for follower in followers for effect in state.follower_fetched(follower, offset, now_ms)]


# ---- the high watermark


def test_a_leader_without_followers_commits_its_appends_at_once() -> None:
    state = ReplicaState[str](1)
    state.become_leader(0, (1,), (1,), NOW_MS)
    assert list(state.appended(5)) == [MOVED]
    assert state.high_watermark == 5


def test_a_record_is_committed_when_the_whole_isr_has_it() -> None:
    state = leader()
    assert list(state.appended(5)) == []
    assert fetch(state, 5, 2) == []
    assert fetch(state, 3, 3) == [MOVED]
    assert state.high_watermark == 3
    assert fetch(state, 5, 3) == [MOVED]
    assert state.high_watermark == 5


def test_a_follower_that_lost_committed_records_is_out_of_the_isr_until_it_has_them() -> None:
    """It restarted after a power cut, before anybody noticed. Elected now, it would cut off the others' logs."""
    state = leader(end=5)
    fetch(state, 5, 2, 3)
    assert fetch(state, 3, 3) == [ShrinkIsr(frozenset({1, 2}), lacking=frozenset({3}))]
    assert fetch(state, 4, 3) == [], "it is asked for once"
    state.isr_changed((1, 2), NOW_MS)
    assert state.high_watermark == 5
    assert fetch(state, 4, 3) == []
    assert fetch(state, 5, 3) == [ExpandIsr(frozenset(ALL))]


@pytest.mark.parametrize("written_by", ["controller", "leader"])
def test_a_follower_out_of_the_isr_does_not_delay_the_high_watermark_until_its_next_fetch(written_by: str) -> None:
    """The controller has removed a dead broker: producers wait no longer for it."""
    state = leader(end=5)
    fetch(state, 5, 2, 3)
    state.appended(7)
    fetch(state, 7, 2)
    assert state.high_watermark == 5
    effects = (
        state.become_leader(4, ALL, (1, 2), NOW_MS) if written_by == "controller" else state.isr_changed((1, 2), NOW_MS)
    )
    assert list(effects) == [MOVED]
    assert state.high_watermark == 7
    state.appended(8)
    fetch(state, 7, 3)  # it lives: it is caught up again, and about to join
    fetch(state, 8, 2)
    assert state.high_watermark == 7


def test_l3_a_follower_whose_log_fails_again_and_again_does_not_bound_the_high_watermark() -> None:
    """Its disk is full: each time its log is recovered it fetches from where it was, when it left the ISR."""
    state = leader(end=5)
    fetch(state, 5, 2, 3)
    state.appended(8)
    fetch(state, 8, 3)
    state.become_leader(4, ALL, (1, 3), NOW_MS)
    for end in (9, 10):
        assert fetch(state, 5, 2) == []
        state.appended(end)
        assert fetch(state, end, 3) == [MOVED]
    assert fetch(state, 10, 2) == [ExpandIsr(frozenset(ALL))]


def test_a_flush_is_one_more_bound() -> None:
    state = leader(isr=(1, 2), flushes=True)
    state.appended(5)
    assert fetch(state, 5, 2, now_ms=NOW_MS + 2 * LAG_MS) == []
    assert list(state.flushed(4)) == [MOVED]
    assert state.high_watermark == 4
    assert list(state.flushed(3)) == []
    assert list(state.flushed(9)) == [MOVED]
    assert state.high_watermark == 5


def test_the_high_watermark_does_not_advance_while_the_isr_is_too_small() -> None:
    state = leader(minimum=2)
    state.appended(5)
    fetch(state, 5, 2, 3)
    state.isr_changed((1,), NOW_MS)
    late_ms = NOW_MS + 2 * LAG_MS
    state.appended(9)
    assert not state.has_min_isr
    assert list(state.tick(late_ms)) == []
    assert state.high_watermark == 5
    assert fetch(state, 9, 2, now_ms=late_ms) == [ExpandIsr(frozenset({1, 2}))]
    assert list(state.isr_changed((1, 2), late_ms)) == [MOVED]
    assert state.high_watermark == 9


def test_the_minimum_is_never_more_than_the_replicas() -> None:
    state = ReplicaState[str](1, min_insync_replicas=3)
    state.become_leader(0, (1, 2), (1, 2), NOW_MS)
    assert state.has_min_isr
    state.isr_changed((1,), NOW_MS)
    assert not state.has_min_isr


def test_a_new_leader_commits_nothing_before_the_isr_has_fetched() -> None:
    state = leader(end=7)
    assert (state.high_watermark, state.leader_epoch_start_offset) == (0, 7)
    assert fetch(state, 7, 2) == []
    assert fetch(state, 7, 3) == [MOVED]
    assert state.high_watermark == 7


def test_deleted_records_count_as_committed() -> None:
    state = leader(end=7)
    assert list(state.log_start_moved(3)) == [MOVED]
    assert (state.log_start_offset, state.high_watermark) == (3, 3)
    assert list(state.log_start_moved(2)) == []
    assert (state.log_start_offset, state.high_watermark) == (3, 3)


# ---- the ISR


def test_a_lagging_follower_leaves_the_isr_and_returns() -> None:
    state = leader()
    state.appended(5)
    late_ms = NOW_MS + LAG_MS + 1
    fetch(state, 5, 2, now_ms=late_ms)
    assert list(state.tick(late_ms)) == [ShrinkIsr(frozenset({1, 2}))]
    assert list(state.tick(late_ms)) == []  # one request at a time
    assert state.high_watermark == 0
    assert list(state.isr_changed((1, 2), late_ms)) == [MOVED]
    assert state.high_watermark == 5
    state.appended(6)
    assert fetch(state, 5, 3, now_ms=late_ms) == [ExpandIsr(frozenset(ALL))]  # as far as the high watermark
    fetch(state, 6, 2, now_ms=late_ms)
    assert state.high_watermark == 5  # it waits for the joiner
    assert fetch(state, 6, 3, now_ms=late_ms) == [MOVED]


def test_a_follower_behind_the_high_watermark_does_not_join_the_isr() -> None:
    state = leader(isr=(1,), end=7)
    assert state.high_watermark == 7
    assert fetch(state, 6, 2) == []
    assert fetch(state, 7, 2) == [ExpandIsr(frozenset({1, 2}))]


def test_r1_a_follower_behind_the_leader_epoch_does_not_join_the_isr() -> None:
    """What lies before the epoch may be committed, although the high watermark of the new leader is behind."""
    state = leader(isr=(1, 2), end=7)
    assert state.high_watermark == 0
    assert fetch(state, 6, 3) == []
    assert fetch(state, 7, 3) == [ExpandIsr(frozenset(ALL))]


def test_a_follower_one_fetch_behind_the_log_end_is_caught_up() -> None:
    state = leader()
    for step in range(1, 9):
        now_ms = NOW_MS + step * 10_000
        state.appended(step)
        fetch(state, step - 1, 2, 3, now_ms=now_ms)  # one record behind for ever
        assert list(state.tick(now_ms)) == []


def test_a_refused_change_is_requested_again() -> None:
    state = leader()
    state.appended(5)
    late_ms = NOW_MS + LAG_MS + 1
    assert list(state.tick(late_ms)) == [ShrinkIsr(frozenset({1}))]
    state.isr_refused()
    assert list(state.tick(late_ms)) == [ShrinkIsr(frozenset({1}))]


def test_unassigned_replicas_and_offsets_out_of_range_change_nothing() -> None:
    state = leader()
    state.appended(5)
    assert fetch(state, 5, 9) == []
    assert fetch(state, 6, 2) == []
    assert state.fetch_state(9) is None
    follower = state.fetch_state(2)
    assert follower is not None
    assert follower.log_end_offset == -1


# ---- the role


def test_a_follower_takes_the_high_watermark_up_to_its_log_end() -> None:
    state = ReplicaState[str](2, log_end_offset=5, high_watermark=3)
    state.become_follower(4)
    assert list(state.leader_committed(9)) == [MOVED]
    assert state.high_watermark == 5
    assert list(state.leader_committed(4)) == []
    state.truncated(0, 4)
    assert (state.log_end_offset, state.high_watermark) == (4, 4)
    state.appended(8)
    assert state.high_watermark == 4


def test_a_former_leader_answers_its_waiting_writes() -> None:
    state = leader()
    state.appended(5)
    state.await_committed(5, NOW_MS + 1, "a")
    assert list(state.become_follower(3)) == []  # of an older epoch
    assert state.role is Role.LEADER
    assert list(state.become_follower(5)) == [Complete("a", ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert state.committed_error(5) is state.flushed_error(5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert list(state.become_leader(4, ALL, ALL, NOW_MS)) == []
    assert state.role is Role.FOLLOWER
    assert list(state.isr_changed(ALL, NOW_MS)) == []


def test_an_offline_replica_takes_no_role_until_its_log_is_opened_again() -> None:
    state = leader()
    state.appended(5)
    fetch(state, 5, 2, 3)
    state.await_committed(6, NOW_MS + 1, "a")
    assert list(state.fail()) == [Complete("a", ErrorCode.KAFKA_STORAGE_ERROR)]
    assert state.committed_error(5) is ErrorCode.KAFKA_STORAGE_ERROR
    state.become_leader(5, ALL, ALL, NOW_MS)
    state.become_follower(5)
    assert state.role is Role.OFFLINE
    state.reopen(0, 4, 4)
    assert (state.role, state.high_watermark) == (Role.FOLLOWER, 4)


def test_a_new_epoch_resets_the_offsets_of_followers() -> None:
    state = leader()
    state.appended(5)
    fetch(state, 5, 2, 3)
    state.become_leader(4, ALL, ALL, NOW_MS)  # the same epoch again
    assert state.fetch_state(2) is not None
    assert state.fetch_state(2).log_end_offset == 5  # type: ignore[union-attr]
    state.become_leader(5, ALL, ALL, NOW_MS)
    assert state.fetch_state(2).log_end_offset == -1  # type: ignore[union-attr]


# ---- waits


def test_waits_complete_in_the_order_of_their_offsets() -> None:
    state = leader()
    state.appended(5)
    for offset, name in ((3, "c"), (1, "a"), (2, "b"), (5, "e"), (3, "d")):
        assert state.committed_error(offset) is None
        state.await_committed(offset, NOW_MS + 10, name)
    fetch(state, 4, 2)
    assert fetch(state, 3, 3) == [MOVED, *(Complete(name, ErrorCode.NONE) for name in "abcd")]
    assert (state.has_waits, state.next_deadline_ms) == (True, NOW_MS + 10)
    fetch(state, 5, 2)
    assert fetch(state, 5, 3) == [MOVED, Complete("e", ErrorCode.NONE)]
    assert (state.has_waits, state.next_deadline_ms) == (False, None)


def test_a_wait_ends_at_its_deadline() -> None:
    state = leader(flushes=True)
    state.appended(5)
    state.await_committed(5, NOW_MS + 20, "late")
    state.await_committed(5, NOW_MS + 10, "early")
    state.await_flushed(5, NOW_MS + 15, "flushed")
    assert state.next_deadline_ms == NOW_MS + 10
    timed_out = ErrorCode.REQUEST_TIMED_OUT
    assert list(state.tick(NOW_MS + 9)) == []
    assert list(state.tick(NOW_MS + 15)) == [Complete("early", timed_out), Complete("flushed", timed_out)]
    assert list(state.tick(NOW_MS + 20)) == [Complete("late", timed_out)]


def test_flushed_waits_for_the_leader_only() -> None:
    state = leader(flushes=True)
    state.appended(5)
    assert state.flushed_error(5) is None
    state.await_flushed(5, NOW_MS + 10, "acks=1")
    assert list(state.flushed(5)) == [Complete("acks=1", ErrorCode.NONE)]
    assert state.flushed_error(5) is ErrorCode.NONE
    state.appended(6)
    state.await_flushed(6, NOW_MS + 10, "again")
    assert list(state.configure(flushes=False, min_insync_replicas=1)) == [Complete("again", ErrorCode.NONE)]
    assert leader(end=5).flushed_error(5) is ErrorCode.NONE


@pytest.mark.parametrize(("isr", "error"), [(ALL, ErrorCode.NONE), ((1,), ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)])
def test_a_committed_offset_is_refused_below_the_minimum_isr(isr: tuple[int, ...], error: ErrorCode) -> None:
    state = leader(minimum=2)
    state.appended(5)
    fetch(state, 5, 2, 3)
    state.isr_changed(isr, NOW_MS)
    assert state.committed_error(5) is error


# ---- the ELR


def test_nothing_is_committed_before_the_elr_is_empty() -> None:
    """L4. min.insync.replicas was lowered to 1; broker 2 is in the ELR as long as the state node says so."""
    state = ReplicaState[str](1, min_insync_replicas=2)
    state.become_leader(4, (1, 2), (1,), NOW_MS, elr=(2,))
    state.appended(5)
    state.fetch_state(2).left_isr()  # type: ignore[union-attr]
    assert list(state.configure(flushes=False, min_insync_replicas=1)) == [ExpandIsr(frozenset({1}))]
    assert list(state.tick(NOW_MS)) == [], "it is asked for once"
    assert (state.has_min_isr, state.high_watermark) == (False, 0)
    assert state.committed_error(0) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert list(state.isr_changed((1,), NOW_MS, elr=())) == [MOVED]
    assert (state.has_min_isr, state.high_watermark) == (True, 5)


def test_a_leader_with_a_large_enough_isr_requests_an_empty_elr_until_it_is_written() -> None:
    """L4. Another broker, with a larger minimum, has made this one the leader."""
    state = ReplicaState[str](1, min_insync_replicas=1)
    wanted = [ExpandIsr(frozenset({1}))]
    assert list(state.become_leader(4, (1, 2), (1,), NOW_MS, elr=(2,))) == wanted
    state.isr_refused()
    assert list(state.tick(NOW_MS)) == wanted


def test_an_eligible_replica_that_lost_committed_records_leaves_the_elr() -> None:
    """L3."""
    state = ReplicaState[str](1, log_end_offset=5, high_watermark=5, min_insync_replicas=2)
    state.become_leader(4, (1, 2), (1,), NOW_MS, elr=(2,))
    assert fetch(state, 3, 2) == [ShrinkIsr(frozenset({1}), lacking=frozenset({2}))]
    state.become_leader(4, (1, 2), (1,), NOW_MS, elr=())
    state.isr_changed((1,), NOW_MS)
    assert fetch(state, 4, 2) == []
    assert fetch(state, 5, 2) == [ExpandIsr(frozenset({1, 2}))]
