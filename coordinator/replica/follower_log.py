"""The writes of a follower: what its leader answered goes into the partition's log, or is cut from it.

Laws
    RE5  Only a follower of the leader epoch in which the answer was fetched takes anything from it.
    RE6  After a truncation the follower's log is a prefix of the leader's, or checks itself against it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rota.coordinator.log.contract import AppendRefused, Log, StorageFailed
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.state import Role
from rota.protocol.errors import ErrorCode

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


def take_bounds(partition: Partition, high_watermark: int, log_start_offset: int, leader_epoch: int) -> None:
    """Take over high watermark and log start of the leader of that epoch. Raises AppendRefused, StorageFailed.

    The log start never passes the follower's own high watermark. The next checkpoint of log starts has it.
    """
    log = _followed(partition, leader_epoch)
    partition.leader_committed(high_watermark)
    if log.log_start_offset < log_start_offset <= partition.state.high_watermark:
        partition.begin_delete_before(log_start_offset)


def truncate(partition: Partition, offset: int, leader_epoch: int) -> None:
    """Remove all records from `offset` on. Raises AppendRefused, StorageFailed."""
    _cut(partition, leader_epoch, lambda log: log.truncate(offset))


def start_afresh(partition: Partition, offset: int, leader_epoch: int) -> None:
    """Remove all records and start at `offset`, where the leader's log starts. Raises AppendRefused, StorageFailed."""
    _cut(partition, leader_epoch, lambda log: log.truncate_fully_and_start_at(offset))


def _cut(partition: Partition, leader_epoch: int, cut: Callable[[Log], None]) -> None:
    log = _followed(partition, leader_epoch)
    _guarded(partition, lambda: cut(log))
    partition.log_truncated()


def _followed(partition: Partition, leader_epoch: int) -> Log:
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
