from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.replica.follower import (
    Action,
    LookUpOffsetBounds,
    RetryLater,
    TakeRecords,
    Truncate,
    TruncateFullyAndStartAt,
    after_answer,
    after_bounds,
)
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, PartitionData

UNKNOWN = (-1, -1)


def answer(error: ErrorCode = ErrorCode.NONE, diverging: tuple[int, int] | None = None) -> PartitionData:
    epoch_end = None if diverging is None else EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    return PartitionData(partition_index=0, error_code=error, diverging_epoch=epoch_end)


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (ErrorCode.NONE, TakeRecords()),
        (ErrorCode.OFFSET_OUT_OF_RANGE, LookUpOffsetBounds()),
        (ErrorCode.FENCED_LEADER_EPOCH, RetryLater(ErrorCode.FENCED_LEADER_EPOCH)),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, RetryLater(ErrorCode.UNKNOWN_LEADER_EPOCH)),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, RetryLater(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        (ErrorCode.KAFKA_STORAGE_ERROR, RetryLater(ErrorCode.KAFKA_STORAGE_ERROR)),
    ],
)
def test_the_outcome_of_each_fetch_response(error: ErrorCode, action: Action) -> None:
    assert after_answer(answer(error), 7, UNKNOWN) == action


@pytest.mark.parametrize(
    ("leader", "own", "offset"),
    [((3, 5), (3, 6), 5), ((3, 5), (2, 4), 4), ((3, 9), (3, 7), 7), ((3, 9), UNKNOWN, 7), ((3, 0), UNKNOWN, 0)],
    ids=["leader has less", "we have nothing of that epoch", "we have less", "unknown here", "nothing in common"],
)
def test_logs_part_at_the_lower_end_of_the_last_epoch_in_common(
    leader: tuple[int, int], own: tuple[int, int], offset: int
) -> None:
    """RE6, KIP-279."""
    assert after_answer(answer(diverging=leader), 7, own) == Truncate(offset)


def test_re7_an_end_that_no_log_has_truncates_nothing() -> None:
    assert after_answer(answer(diverging=(3, -1)), 7, (3, 6)) == RetryLater(ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize(
    ("leader", "own", "action"),
    [
        ((0, 5), (0, 7), Truncate(5)),
        ((0, 5), (5, 7), Truncate(5)),
        ((0, 5), (6, 7), TruncateFullyAndStartAt(0)),
        ((9, 12), (0, 7), TruncateFullyAndStartAt(9)),
        ((7, 12), (0, 7), RetryLater(ErrorCode.OFFSET_OUT_OF_RANGE)),
        ((-1, 5), (6, 7), RetryLater(ErrorCode.UNKNOWN_SERVER_ERROR)),
        ((9, 8), (0, 7), RetryLater(ErrorCode.UNKNOWN_SERVER_ERROR)),
        (((1 << 63) - 9, (1 << 63) - 1), (0, 7), RetryLater(ErrorCode.UNKNOWN_SERVER_ERROR)),
    ],
    ids=[
        *("longer", "only what it lacks", "nothing in common", "missed too much", "its log has moved"),
        *("before all offsets", "no log", "beyond all offsets"),
    ],
)
def test_how_a_follower_handles_an_offset_that_the_leader_does_not_have(
    leader: tuple[int, int], own: tuple[int, int], action: Action
) -> None:
    assert after_bounds(*leader, *own) == action


@given(leader=st.tuples(st.integers(0, 9), st.integers(0, 9)), own=st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_afterwards_the_next_fetch_is_within_the_leaders_log(leader: tuple[int, int], own: tuple[int, int]) -> None:
    """RE6. No answer makes a follower ask for bounds again and again while the leader's log does not move."""
    (leader_start, leader_end), (start, end) = sorted(leader), sorted(own)
    match after_bounds(leader_start, leader_end, start, end):
        case Truncate(offset=next_offset):
            assert start <= next_offset < end
        case TruncateFullyAndStartAt(offset=next_offset):
            pass
        case other:
            assert other == RetryLater(ErrorCode.OFFSET_OUT_OF_RANGE)
            next_offset = end
    assert leader_start <= next_offset <= leader_end
