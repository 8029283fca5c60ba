from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles
from tests.unit.coordinator.log.log_kit import fill
from tests.unit.coordinator.replica.test_follower_log import EPOCH, copy, leader_with, partition, placed

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.directory import LogDirectory
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.replica.follower import RetryLater, Truncate, TruncateFullyAndStartAt
from rota.coordinator.replica.follower_log import StartedTruncation
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replication.fetch_responses import Outcome, apply_response, finish, perform_action
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, PartitionData
from rota.protocol.records.record import Record, write_batch


def answer(leader: Partition, offset: int = 0, high_watermark: int = 0, log_start_offset: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=0,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        records=leader.read(offset, 1 << 20, uncommitted=True),
    )


def test_records_and_bounds_are_taken_over() -> None:
    leader, follower = leader_with(b"a", b"b"), partition(2)
    assert apply_response(follower, answer(leader, high_watermark=2, log_start_offset=1), []) is Outcome.MOVED
    assert (follower.log_start_offset, follower.log.log_end_offset, follower.high_watermark) == (1, 2, 2)


def test_without_records_the_high_watermark_is_taken_over_and_the_position_stays() -> None:
    leader, follower = leader_with(b"a"), partition(2)
    copy(leader, follower)
    assert apply_response(follower, answer(leader, 1, high_watermark=1), []) is Outcome.UNCHANGED
    assert follower.high_watermark == 1


def test_re9_a_log_start_that_moved_is_reported_to_the_leader() -> None:
    leader, follower = leader_with(b"a"), partition(2)
    copy(leader, follower)
    moved = answer(leader, 1, high_watermark=1, log_start_offset=1)
    assert apply_response(follower, moved, []) is Outcome.MOVED
    assert apply_response(follower, moved, []) is Outcome.UNCHANGED


def test_records_received_before_are_not_requested_again_and_change_nothing() -> None:
    """Two fetches were under way, and both had them."""
    leader, follower = leader_with(b"a", b"b"), partition(2)
    copy(leader, follower)
    assert apply_response(follower, answer(leader), []) is Outcome.MOVED
    assert follower.log.log_end_offset == 2


async def test_a_diverging_log_is_truncated() -> None:
    follower = partition(2)
    copy(leader_with(b"a", b"b", b"c"), follower)
    follower.apply(placed(1, EPOCH + 2), 0)
    diverging = PartitionData(partition_index=0, diverging_epoch=EpochEndOffset(epoch=EPOCH, end_offset=1))
    truncations: list[StartedTruncation] = []
    assert apply_response(follower, diverging, truncations) is Outcome.CUT
    await finish(truncations)
    assert follower.log.log_end_offset == 1


def starting_within_a_batch() -> Partition:
    """A leader with a batch of three records, the first of which is deleted."""
    leader = partition(1)
    leader.append(write_batch([Record(at, 0, None, b"v") for at in range(3)]), 0)
    leader.log.delete_before(1)
    return leader


@pytest.mark.parametrize("own", [(), (b"old",)])
async def test_re6_a_log_within_the_first_batch_of_the_leader_starts_with_that(own: tuple[bytes, ...]) -> None:
    """It is started where the leader's log is, or has none of its records."""
    leader, follower, truncations = starting_within_a_batch(), partition(2), list[StartedTruncation]()
    if own:
        copy(leader_with(*own), follower)
    else:
        perform_action(follower, TruncateFullyAndStartAt(1), truncations)
        await finish(truncations)
        truncations.clear()
    fetched = answer(leader, 1, high_watermark=3, log_start_offset=1)
    assert apply_response(follower, fetched, truncations) is Outcome.CUT
    await finish(truncations)
    assert (follower.log_start_offset, follower.log.log_end_offset, follower.high_watermark) == (1, 3, 3)
    assert follower.read(1, 1 << 20) == leader.read(1, 1 << 20, uncommitted=True)


async def test_re6_a_log_that_was_reopened_meanwhile_does_not_start_with_the_batch() -> None:
    """It would have a hole: the reopened log ends elsewhere."""
    leader, follower, truncations = starting_within_a_batch(), partition(2), list[StartedTruncation]()
    perform_action(follower, TruncateFullyAndStartAt(1), truncations)
    await finish(truncations)
    truncations.clear()
    apply_response(follower, answer(leader, 1, high_watermark=3, log_start_offset=1), truncations)
    follower.fail("the disk is broken")
    reopened = MemoryLog()
    reopened.truncate_fully_and_start_at(0)
    follower.reopen(reopened, placed(1), 0)
    await finish(truncations)
    assert reopened.log_end_offset == 0


async def test_re6_a_log_with_records_of_its_leader_is_not_started_again() -> None:
    leader, follower, truncations = starting_within_a_batch(), partition(2), list[StartedTruncation]()
    copy(leader_with(b"old"), follower)
    assert apply_response(follower, answer(leader, 1), truncations) is Outcome.MOVED
    assert truncations == []


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ErrorCode.OFFSET_OUT_OF_RANGE, Outcome.BEYOND), (ErrorCode.FENCED_LEADER_EPOCH, Outcome.FAILED)],
)
def test_errors_change_nothing(error: ErrorCode, outcome: Outcome) -> None:
    """RE7."""
    follower = partition(2)
    copy(leader_with(b"a"), follower)
    assert apply_response(follower, PartitionData(partition_index=0, error_code=error), []) is outcome
    assert follower.log.log_end_offset == 1


def test_corrupt_records_are_not_taken() -> None:
    leader, follower = leader_with(b"a"), partition(2)
    corrupt = answer(leader)
    assert corrupt.records is not None
    corrupt.records = bytes(corrupt.records[:-1]) + b"\xff"
    assert apply_response(follower, corrupt, []) is Outcome.FAILED
    assert follower.log.log_end_offset == 0


@pytest.mark.parametrize("base_offset", [-1, -(1 << 63), (1 << 63) - 2])
async def test_re7_records_at_offsets_that_no_log_has_are_not_taken(base_offset: int) -> None:
    """Of an empty log they could be the batch that it starts within."""
    follower, truncations = partition(2), list[StartedTruncation]()
    records = write_batch([Record(at, 0, None, b"v") for at in range(2)])
    beyond = PartitionData(partition_index=0, records=base_offset.to_bytes(8, "big", signed=True) + records[8:])
    assert apply_response(follower, beyond, truncations) is Outcome.FAILED
    assert (follower.log.log_start_offset, follower.log.log_end_offset, truncations) == (0, 0, [])


def test_an_offline_partition_takes_nothing() -> None:
    follower = partition(2)
    follower.fail("the disk is gone")
    assert apply_response(follower, answer(leader_with(b"a")), []) is Outcome.FAILED
    assert perform_action(follower, TruncateFullyAndStartAt(5), []) is Outcome.FAILED


async def test_the_other_actions() -> None:
    follower, truncations = partition(2), list[StartedTruncation]()
    assert perform_action(follower, RetryLater(ErrorCode.UNKNOWN_TOPIC_ID), []) is Outcome.FAILED
    assert perform_action(follower, TruncateFullyAndStartAt(5), truncations) is Outcome.CUT
    await finish(truncations)
    assert follower.log.log_end_offset == 5


async def test_truncations_of_one_folder_share_a_write(tmp_path: Path) -> None:
    """RF5."""
    directory = LogDirectory(tmp_path, node_id=2, cluster_id="c")
    followers = []
    for index in range(3):
        log = directory.open_log("t", index, LogConfig())
        followers.append(Partition("t", bytes(16), index, EPOCH, log, broker_id=2, placed=placed(1)))
        copy(leader_with(b"a", b"b"), followers[-1])
        log.flush()
    directory.note()
    directory.checkpoint()
    truncations: list[StartedTruncation] = []
    for follower in followers:
        perform_action(follower, Truncate(1), truncations)
    assert len({cut.write for cut in truncations}) == 1
    await finish(truncations)
    assert [follower.log.log_end_offset for follower in followers] == [1, 1, 1]
    directory.close()


@pytest.mark.parametrize("offset", [95, 61, 0])
async def test_a_truncation_reads_nothing_on_the_loop(tmp_path: Path, offset: int) -> None:
    """RF8. After a restart neither the batches nor their indexes are in memory."""
    config = LogConfig(segment_bytes=1800, index_interval_bytes=100)
    with_log = LogDirectory(tmp_path, node_id=2, cluster_id="c")
    fill(with_log.open_log("t", 0, config), 100)
    with_log.close()
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=2, cluster_id="c", system=system)
    log = directory.open_log("t", 0, config)
    follower = Partition("t", bytes(16), 0, EPOCH, log, broker_id=2, placed=placed(1))
    system.calls.clear()
    truncations: list[StartedTruncation] = []
    perform_action(follower, Truncate(offset), truncations)
    await finish(truncations)
    reads = {call.thread for call in system.calls if call.call == "pread"}
    assert threading.get_ident() not in reads
    assert reads
    assert follower.log.log_end_offset == offset
    directory.close()


@pytest.mark.parametrize(
    "action", [Truncate(95), Truncate(61), Truncate(0), TruncateFullyAndStartAt(36), TruncateFullyAndStartAt(500)]
)
async def test_a_truncation_changes_no_file_on_the_loop(
    tmp_path: Path, action: Truncate | TruncateFullyAndStartAt
) -> None:
    """RF8. Whatever the number of segments, epochs and snapshots."""
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=2, cluster_id="c", system=system)
    log = directory.open_log("t", 0, LogConfig(segment_bytes=1800, index_interval_bytes=100))
    for number in range(100):
        data = write_batch([Record(0, 0, None, bytes(100))], producer_id=4, producer_epoch=0, base_sequence=number)
        log.append(data, leader_epoch=number // 20, now_ms=0)
    follower = Partition("t", bytes(16), 0, EPOCH, log, broker_id=2, placed=placed(1))
    system.calls.clear()
    truncations: list[StartedTruncation] = []
    perform_action(follower, action, truncations)
    await finish(truncations)
    changes = {call.thread for call in system.calls}
    assert threading.get_ident() not in changes
    assert changes
    assert (follower.log.log_end_offset, follower.pending_cut) == (action.offset, None)
    directory.abandon()
    again = LogDirectory(tmp_path, node_id=2, cluster_id="c").open_log("t", 0, LogConfig())
    assert again.log_end_offset == action.offset


async def test_files_that_can_not_be_removed_take_the_partition_offline(tmp_path: Path) -> None:
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=2, cluster_id="c", system=system)
    log = directory.open_log("t", 0, LogConfig())
    follower = Partition("t", bytes(16), 0, EPOCH, log, broker_id=2, placed=placed(1))
    copy(leader_with(b"a", b"b", b"c"), follower)
    truncations: list[StartedTruncation] = []
    perform_action(follower, Truncate(1), truncations)
    system.fail("ftruncate", ".log")
    await finish(truncations)
    assert follower.offline is not None
    assert log.failure is not None
    system.clear()
    assert directory.open_log("t", 0, LogConfig()).log_end_offset == 3
    directory.close()


async def test_a_truncation_that_can_not_be_written_takes_its_partition_offline() -> None:
    def full() -> None:
        raise StorageFailed("no space left on device")

    follower, truncations = partition(2), list[StartedTruncation]()
    perform_action(follower, TruncateFullyAndStartAt(5), truncations)
    truncations[0].write = full
    await finish(truncations)
    assert follower.offline == "no space left on device"


@pytest.mark.parametrize("fails", [False, True])
async def test_after_a_cancelled_truncation_the_medium_has_the_log_start_again(tmp_path: Path, fails: bool) -> None:
    """RF5, A4. The truncation of a log below its start writes a lower start. It is cancelled after that write."""
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=2, cluster_id="c", system=system)
    log = directory.open_log("t", 0, LogConfig())
    follower = Partition("t", bytes(16), 0, EPOCH, log, broker_id=2, placed=placed(1))
    copy(leader_with(b"a", b"b", b"c"), follower)
    log.delete_before(2)
    truncations: list[StartedTruncation] = []
    perform_action(follower, Truncate(1), truncations)
    write = truncations[0].write
    assert write is not None

    def write_then_lead() -> None:
        write()
        follower.apply(placed(2, EPOCH + 1), 0)
        if fails:
            system.fail("fsync", "log-start-offset")

    truncations[0].write = write_then_lead
    await finish(truncations)
    system.clear()
    directory.abandon()
    assert (follower.offline is not None) is fails
    if fails:
        return
    again = LogDirectory(tmp_path, node_id=2, cluster_id="c").open_log("t", 0, LogConfig())
    assert (again.log_start_offset, again.log_end_offset) == (2, 3)
