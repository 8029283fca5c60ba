"""Leader epochs in requests (KIP-320): the check of a request's epoch, and the end offset of an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition

NO_EPOCH: Final = -1
UNDEFINED: Final = (-1, -1)


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

    The current epoch ends where the log does, even before its first record. Raises StorageFailed.
    """
    if leader_epoch == partition.leader_epoch:
        return leader_epoch, partition.log.log_end_offset
    if not 0 <= leader_epoch < partition.leader_epoch:
        return UNDEFINED
    return partition.log.epoch_end(leader_epoch)
