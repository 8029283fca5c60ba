"""Leader epochs in requests (KIP-320): the check of a request's epoch, and the end offset of an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition

NO_EPOCH: Final = -1
UNDEFINED: Final = (-1, -1)


def fence_leader(partition: Partition, leader_epoch: int) -> ErrorCode:
    """As `fence`, and NOT_LEADER_OR_FOLLOWER when this broker does not lead the partition. Raises StorageFailed."""
    error = fence(partition, leader_epoch)
    if error is ErrorCode.NONE and not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return error


def fence(partition: Partition, leader_epoch: int) -> ErrorCode:
    """Compare a request's leader epoch with the partition's; NO_EPOCH passes. Raises StorageFailed while offline."""
    partition.log  # noqa: B018 - raises when the partition is offline
    if leader_epoch in (NO_EPOCH, partition.leader_epoch):
        return ErrorCode.NONE
    if leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def epoch_end(partition: Partition, leader_epoch: int) -> tuple[int, int]:
    """(epoch, end offset) of the largest epoch up to `leader_epoch`; UNDEFINED for an unknown one.

    The current epoch ends where the log does, even before its first record. An epoch between that of the last record
    and the current one has no records here, so the one before it ends there, too. Raises StorageFailed.
    """
    log = partition.log
    if leader_epoch == partition.leader_epoch:
        return leader_epoch, log.log_end_offset
    if not 0 <= leader_epoch < partition.leader_epoch:
        return UNDEFINED
    if leader_epoch > log.latest_epoch:
        return (leader_epoch if log.latest_epoch == NO_EPOCH else log.latest_epoch), log.log_end_offset
    return log.epoch_end(leader_epoch)
