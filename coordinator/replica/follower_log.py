"""The writes of a follower: what its leader answered goes into the partition's log, or is cut from it.

Laws
    RE5  Only a follower of the leader epoch in which the answer was fetched takes anything from it.
    RE6  After a truncation the follower's log is a prefix of the leader's, or checks itself against it again. A log
         that starts within a batch has that batch whole, as the leader's.
    RF5  The event loop never waits for the medium for a truncation: what comes before its end cancels it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rota.coordinator.log.contract import AppendRefused, Log, StorageFailed
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.state import Role
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import headers

T = TypeVar("T")


def append(partition: Partition, records: bytes | memoryview, leader_epoch: int) -> bool:
    """Append records of the leader of that epoch; return whether there was anything to append.

    Raises AppendRefused (nothing written; NOT_LEADER_OR_FOLLOWER when the partition follows in another epoch or leads),
    or StorageFailed (offline from now on).
    """
    log = _followed(partition, leader_epoch)
    if _guarded(partition, lambda: log.append_as_follower(records, leader_epoch=leader_epoch)) is None:
        return False
    partition.log_grown()
    return True


def batch_around_start(partition: Partition, records: bytes | memoryview, leader_start: int) -> int | None:
    """Return where the first batch begins if the log here ends within it, with no record that the leader has, too.

    So does an empty log that was started where the leader's does, within a batch after a DeleteRecords. `records` are
    those that `append` refused. Raises StorageFailed.
    """
    log = partition.log
    if log.log_start_offset < log.log_end_offset and leader_start < log.log_end_offset:
        return None
    header = next((header for _, header in headers(records, cut=True)), None)
    is_around = header is not None and header.base_offset < log.log_end_offset < header.next_offset
    return header.base_offset if header is not None and is_around else None


def take_bounds(partition: Partition, high_watermark: int, log_start_offset: int, leader_epoch: int) -> bool:
    """Take over high watermark and log start of the leader of that epoch. Raises AppendRefused, StorageFailed.

    Return whether the log start has moved. It never passes the follower's own high watermark. The next checkpoint of
    log starts has it.
    """
    log = _followed(partition, leader_epoch)
    partition.leader_committed(high_watermark)
    log.producers.committed(partition.state.high_watermark)
    moves = log.log_start_offset < log_start_offset <= partition.state.high_watermark
    if moves:
        partition.begin_delete_before(log_start_offset)
    return moves


def begin_truncate(partition: Partition, offset: int, leader_epoch: int) -> StartedTruncation:
    """Begin to remove all records from `offset` on. Raises AppendRefused, StorageFailed."""
    return _begin(partition, leader_epoch, lambda log: log.begin_truncate(offset))


def begin_truncate_fully_and_start_at(partition: Partition, offset: int, leader_epoch: int) -> StartedTruncation:
    """Begin to remove all records; the log starts at `offset` then, where the leader's does.

    Raises AppendRefused, StorageFailed.
    """
    return _begin(partition, leader_epoch, lambda log: log.begin_truncate_fully_and_start_at(offset))


class StartedTruncation:
    """A truncation that has begun: call `write`, then `read` in any thread, then `remove` and `finish` on the loop.

    Any thread calls what `remove` returns before `finish`. A partition that gets another leader meanwhile cancels it.
    Cuts of logs that share a checkpoint have equal `write`s, and one of them writes for all.
    """

    __slots__ = ("_log", "partition", "read", "then", "write", "write_start")

    def __init__(self, partition: Partition, log: Log, write: Callable[[], None] | None) -> None:
        self.partition, self._log, self.write = partition, log, write
        self.read = log.begin_read_kept()
        self.write_start: Callable[[], None] | None = None  # to call in any thread after `cancel`
        self.then: Callable[[], None] = lambda: None  # to call on the loop after `finish`
        partition.pending_cut = self.cancel

    def remove(self) -> Callable[[], None] | None:
        """Remove the records, unless it was cancelled, or the log has failed or gone. A failure takes it offline.

        Returns the call that removes them from the files, in any thread. It raises StorageFailed: see `failed`.
        """
        partition, change_files = self.partition, None
        if self._is_pending:
            try:
                change_files = self._log.begin_remove()
            except StorageFailed as error:
                partition.fail(str(error))
            else:
                partition.log_truncated()
        return change_files

    def finish(self) -> None:
        """The files are changed: the log may grow again."""
        if self._is_pending:
            try:
                self._log.finish_truncate()
            except StorageFailed as error:
                self.partition.fail(str(error))
        if self.partition.pending_cut == self.cancel:
            self.partition.pending_cut = None

    @property
    def _is_pending(self) -> bool:
        partition = self.partition
        return partition.pending_cut == self.cancel and partition.offline is None and partition.log is self._log

    def cancel(self) -> None:
        """Leave the records: the partition has another leader, whose first answer says where the logs differ.

        If it leads itself, its records count, as if it had been elected before the truncation began. A truncation of
        all records, or one whose files are changed just then, takes the partition offline until the log is reopened.
        """
        partition = self.partition
        partition.pending_cut = None
        if partition.offline is None and partition.log is self._log:
            try:
                self.write_start = self._log.cancel_truncate()
            except StorageFailed as error:
                partition.fail(str(error))

    def failed(self, error: StorageFailed) -> None:
        """`write`, `read` or the call of `remove` has raised: offline, unless the truncation was cancelled before."""
        if self.partition.pending_cut == self.cancel:
            self.partition.log_failed(self._log, str(error))

    def start_failed(self, error: StorageFailed) -> None:
        """`write_start` has raised: the partition is offline, as after a DeleteRecords that cannot be written."""
        self.partition.log_failed(self._log, str(error))


def _begin(
    partition: Partition, leader_epoch: int, begin: Callable[[Log], Callable[[], None] | None]
) -> StartedTruncation:
    log = _followed(partition, leader_epoch)
    return StartedTruncation(partition, log, _guarded(partition, lambda: begin(log)))


def _followed(partition: Partition, leader_epoch: int) -> Log:
    if partition.pending_cut is not None:
        partition.pending_cut()
    log, state = partition.log, partition.state
    if state.role is not Role.FOLLOWER or leader_epoch != state.leader_epoch:
        why = f"{partition.topic}-{partition.index} does not follow in epoch {leader_epoch}"
        raise AppendRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, why)
    return log


def _guarded(partition: Partition, work: Callable[[], T]) -> T:
    try:
        return work()
    except StorageFailed as error:
        partition.fail(str(error))
        raise
