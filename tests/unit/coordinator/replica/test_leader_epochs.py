from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.replica.leader_epochs import UNDEFINED, epoch_end, fence
from rota.coordinator.replica.partition import Partition
from rota.protocol.errors import ErrorCode


@pytest.fixture
def partition() -> Partition:
    """Led in epochs 2 (three records) and 5 (two)."""
    partition = Partition("t", bytes(16), 0, 2, MemoryLog(LogConfig()))
    partition.append(batch(b"a", b"b", b"c"), NOW_MS)
    partition.lead(5)
    partition.append(batch(b"d", b"e"), NOW_MS)
    return partition


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, ErrorCode.NONE),
        (5, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_the_error_of_a_fenced_epoch(partition: Partition, epoch: int, code: ErrorCode) -> None:
    assert fence(partition, epoch) is code


@pytest.mark.parametrize(("epoch", "end"), [(2, (2, 3)), (4, (2, 3)), (5, (5, 5)), (6, UNDEFINED), (-1, UNDEFINED)])
def test_where_an_epoch_ended(partition: Partition, epoch: int, end: tuple[int, int]) -> None:
    assert epoch_end(partition, epoch) == end


def test_re6_an_epoch_without_records_ends_where_the_one_before_it_does(partition: Partition) -> None:
    """A follower that is told of a later epoch than it has would take the end of the log for its own."""
    partition.lead(9)
    assert epoch_end(partition, 7) == (5, 5)
    assert epoch_end(partition, 9) == (9, 5)


def test_the_epoch_of_an_empty_log_ends_at_its_start() -> None:
    assert epoch_end(Partition("t", bytes(16), 0, 0, MemoryLog(LogConfig())), 0) == (0, 0)


def test_an_offline_partition_has_no_epochs(partition: Partition) -> None:
    partition.fail("the disk is gone")
    for send_request in (lambda: fence(partition, 5), lambda: epoch_end(partition, 5)):
        with pytest.raises(StorageFailed):
            send_request()
