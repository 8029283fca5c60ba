"""What a follower fetches next, and what an answer of its leader means for its log. Pure.

Laws
    RE6  A follower keeps no record that its leader does not have: it truncates to where the two logs diverge (KIP-101,
        KIP-279, KIP-595), again and again until they agree, and starts afresh where its leader has deleted more than
        it ever had.
    RE7  A follower that is fenced, or whose leader knows less than it does, or names an offset that no log can have,
        changes nothing and retries later.
"""

from __future__ import annotations

from typing import Final

from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, PartitionData
from rota.protocol.records.fast import OFFSET_MAX

NO_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class TakeRecords:
    """Append the records of the answer, then take over high watermark and log start."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Remove what lies at `offset` and after it, then fetch again."""

    offset: int


@dataclass(frozen=True, slots=True)
class TruncateFullyAndStartAt:
    """Remove everything and begin at `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class LookUpOffsetBounds:
    """Ask the leader where its log starts and ends; `after_bounds` decides."""


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Change nothing, and fetch again after a pause or when the image of the cluster has changed."""

    error: ErrorCode


Action = TakeRecords | Truncate | TruncateFullyAndStartAt | LookUpOffsetBounds | RetryLater


def after_answer(answer: PartitionData, log_end_offset: int, epoch_end: tuple[int, int]) -> Action:
    """Decide what to do with a leader's answer.

    `epoch_end` is that of the own log for the epoch in `diverging_epoch`, (-1, -1) if there is none.
    """
    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return LookUpOffsetBounds()
    if answer.error_code != ErrorCode.NONE:
        return RetryLater(ErrorCode.of(answer.error_code))
    if answer.diverging_epoch is not None and answer.diverging_epoch.end_offset < 0:
        return RetryLater(ErrorCode.UNKNOWN_SERVER_ERROR)
    if answer.diverging_epoch is not None:
        return Truncate(_where_logs_part(answer.diverging_epoch, log_end_offset, epoch_end))
    return TakeRecords()


def after_bounds(leader_start: int, leader_end: int, log_start_offset: int, log_end_offset: int) -> Action:
    """Decide what to do when the leader does not have the offset that was fetched."""
    if not 0 <= leader_start <= leader_end <= OFFSET_MAX:
        return RetryLater(ErrorCode.UNKNOWN_SERVER_ERROR)
    if leader_end < log_end_offset and leader_end >= log_start_offset:
        return Truncate(leader_end)
    if leader_start > log_end_offset or leader_end < log_start_offset:
        return TruncateFullyAndStartAt(leader_start)
    return RetryLater(ErrorCode.OFFSET_OUT_OF_RANGE)  # its log has moved meanwhile


def _where_logs_part(diverging: EpochEndOffset, log_end_offset: int, epoch_end: tuple[int, int]) -> int:
    """The leader's end of the epoch, or the own end of it where that is lower."""
    end = min(diverging.end_offset, log_end_offset)
    epoch, own_end = epoch_end
    return end if epoch == NO_EPOCH else min(end, own_end)
