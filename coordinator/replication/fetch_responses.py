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


def apply_response(partition: Partition, answer: PartitionData, truncations: list[StartedTruncation]) -> Outcome:
    """Apply a response of the leader. Truncations begin and are added to `truncations`."""
    try:
        of, diverging = partition.log, answer.diverging_epoch
        own_end = (-1, -1) if diverging is None else of.epoch_end(diverging.epoch)
        return perform_action(partition, after_answer(answer, of.log_end_offset, own_end), truncations, answer)
    except StorageFailed as failure:
        return _failed(partition, str(failure))


def perform_action(
    partition: Partition, action: Action, truncations: list[StartedTruncation], answer: PartitionData | None = None
) -> Outcome:
    """Perform an action; `answer` has the records of TakeRecords."""
    epoch = partition.leader_epoch
    try:
        match action:
            case TakeRecords():
                assert answer is not None, "records come with an answer"
                return _take_records(partition, answer, epoch, truncations)
            case Truncate(offset=offset):
                _log_cut("Truncating", partition, offset)
                truncations.append(follower_log.begin_truncate(partition, offset, epoch))
            case TruncateFullyAndStartAt(offset=offset):
                _log_cut("Starting afresh", partition, offset)
                truncations.append(follower_log.begin_truncate_fully_and_start_at(partition, offset, epoch))
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


async def finish(truncations: Sequence[StartedTruncation]) -> None:
    """Write the truncations to the medium in a thread, once for all logs of a folder; read and change files there."""
    await _truncate(truncations)
    for truncation in truncations:
        if error := await _in_thread(truncation.write_start):  # it was cancelled
            truncation.start_failed(error)


async def _truncate(truncations: Iterable[StartedTruncation]) -> None:
    by_write: dict[Callable[[], None] | None, list[StartedTruncation]] = {}
    for truncation in truncations:
        by_write.setdefault(truncation.write, []).append(truncation)
    for write, together in by_write.items():
        if error := await _in_thread(write):
            for truncation in together:
                truncation.failed(error)
            continue
        for truncation in together:
            if error := await _in_thread(truncation.read) or await _in_thread(truncation.remove()):
                truncation.failed(error)
            else:
                truncation.finish()
                truncation.then()


async def _in_thread(work: Callable[[], None] | None) -> StorageFailed | None:
    """Return why it failed."""
    try:
        if work is not None:
            await asyncio.to_thread(work)
    except StorageFailed as error:
        return error
    return None


def _take_records(
    partition: Partition, answer: PartitionData, epoch: int, truncations: list[StartedTruncation]
) -> Outcome:
    """Raises AppendRefused, StorageFailed."""
    is_longer = False
    if answer.records:
        try:
            is_longer = follower_log.append(partition, answer.records, epoch)
        except AppendRefused as refusal:
            if refusal.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            start = follower_log.batch_around_start(partition, answer.records, answer.log_start_offset)
            if start is not None:
                return _start_with_batch(partition, start, answer, epoch, truncations)
            return Outcome.MOVED  # the answer before had these records, too: ask from the log end on
    is_shorter = follower_log.take_bounds(partition, answer.high_watermark, answer.log_start_offset, epoch)
    return Outcome.MOVED if is_longer or is_shorter else Outcome.UNCHANGED


def _start_with_batch(
    partition: Partition, offset: int, answer: PartitionData, epoch: int, truncations: list[StartedTruncation]
) -> Outcome:
    """RE6. The leader's log starts within a batch: begin where that begins, then append the answer."""
    _log_cut("Starting afresh", partition, offset)
    of = partition.log
    truncation = follower_log.begin_truncate_fully_and_start_at(partition, offset, epoch)

    def append() -> None:
        try:
            if partition.log is of:  # else it was reopened meanwhile, and ends elsewhere
                _take_records(partition, answer, epoch, [])
        except (AppendRefused, StorageFailed) as why:
            _failed(partition, str(why))

    truncation.then = append
    truncations.append(truncation)
    return Outcome.CUT


def _failed(partition: Partition, reason: str) -> Outcome:
    log.debug("Fetch failed", topic=partition.topic, partition=partition.index, reason=reason)
    return Outcome.FAILED


def _log_cut(event: str, partition: Partition, offset: int) -> None:
    fields = {"topic": partition.topic, "partition": partition.index, "offset": offset}
    log.info(event, **fields, log_end_offset=partition.log.log_end_offset, leader_epoch=partition.leader_epoch)
