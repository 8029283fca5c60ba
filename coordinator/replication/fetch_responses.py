"""Applies a response of the leader to a follower's log. Decisions are in `replica.follower`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import assert_never

import structlog

from rota.coordinator.log.contract import AppendRefused, StorageFailed
from rota.coordinator.replica import follower_log
from rota.coordinator.replica.follower import (
    Action,
    LookUpOffsetBounds,
    RetryLater,
    TakeRecords,
    Truncate,
    TruncateFullyAndStartAt,
    after_answer,
)
from rota.coordinator.replica.follower_log import StartedTruncation
from rota.coordinator.replica.partition import Partition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import PartitionData

log = structlog.get_logger("rota.replication")


class Outcome(Enum):
    """Return the next fetch of the partition."""

    UNCHANGED = "nothing"
    MOVED = "its new position"
    CUT = "its new position, when the truncation is done"
    BEYOND = "nothing, until the leader has said where its log starts and ends"
    FAILED = "nothing, for a while"


def apply_response(partition: Partition, answer: PartitionData, cuts: list[StartedTruncation]) -> Outcome:
    """Apply a response of the leader. Truncations begin and are added to `cuts`."""
    try:
        of, diverging = partition.log, answer.diverging_epoch
        own_end = (-1, -1) if diverging is None else of.epoch_end(diverging.epoch)
        return perform_action(partition, after_answer(answer, of.log_end_offset, own_end), cuts, answer)
    except StorageFailed as failure:
        return _failed(partition, str(failure))


def perform_action(
    partition: Partition, action: Action, cuts: list[StartedTruncation], answer: PartitionData | None = None
) -> Outcome:
    """Perform an action; `answer` has the records of TakeRecords."""
    epoch = partition.leader_epoch
    try:
        match action:
            case TakeRecords():
                assert answer is not None, "records come with an answer"
                return _take_records(partition, answer, epoch)
            case Truncate(offset=offset):
                _log_cut("Truncating", partition, offset)
                cuts.append(follower_log.begin_truncate(partition, offset, epoch))
            case TruncateFullyAndStartAt(offset=offset):
                _log_cut("Starting afresh", partition, offset)
                cuts.append(follower_log.begin_truncate_fully_and_start_at(partition, offset, epoch))
            case LookUpOffsetBounds():
                return Outcome.BEYOND
            case RetryLater(error=error):
                return _failed(partition, error.name)
            case _:
                assert_never(action)
    except AppendRefused as refusal:
        return _failed(partition, f"{refusal.code.name}: {refusal}")
    except StorageFailed as failure:
        return _failed(partition, str(failure))
    return Outcome.CUT


async def finish(cuts: Sequence[StartedTruncation]) -> None:
    """Write the truncations to the medium in a thread, once for all logs of a folder; read and change files there."""
    await _truncate(cuts)
    for cut in cuts:
        if error := await _in_thread(cut.write_start):  # it was cancelled
            cut.start_failed(error)


async def _truncate(cuts: Iterable[StartedTruncation]) -> None:
    by_write: dict[Callable[[], None] | None, list[StartedTruncation]] = {}
    for cut in cuts:
        by_write.setdefault(cut.write, []).append(cut)
    for write, together in by_write.items():
        if error := await _in_thread(write):
            for cut in together:
                cut.failed(error)
            continue
        for cut in together:
            if error := await _in_thread(cut.read) or await _in_thread(cut.remove()):
                cut.failed(error)
            else:
                cut.finish()


async def _in_thread(work: Callable[[], None] | None) -> StorageFailed | None:
    """Return why it failed."""
    try:
        if work is not None:
            await asyncio.to_thread(work)
    except StorageFailed as error:
        return error
    return None


def _take_records(partition: Partition, answer: PartitionData, epoch: int) -> Outcome:
    """Raises AppendRefused, StorageFailed."""
    is_longer = False
    if answer.records:
        try:
            is_longer = follower_log.append(partition, answer.records, epoch)
        except AppendRefused as refusal:
            if refusal.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            return Outcome.MOVED  # the answer before had these records, too: ask from the log end on
    follower_log.take_bounds(partition, answer.high_watermark, answer.log_start_offset, epoch)
    return Outcome.MOVED if is_longer else Outcome.UNCHANGED


def _failed(partition: Partition, reason: str) -> Outcome:
    log.debug("Fetch failed", topic=partition.topic, partition=partition.index, reason=reason)
    return Outcome.FAILED


def _log_cut(event: str, partition: Partition, offset: int) -> None:
    fields = {"topic": partition.topic, "partition": partition.index, "offset": offset}
    log.info(event, **fields, log_end_offset=partition.log.log_end_offset, leader_epoch=partition.leader_epoch)
