"""What a truncation reads. That the log is right after it is in tests/property/test_log_transactions.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.epochs import EPOCHS_FILE
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.log.segmented import SegmentedLog
from rota.coordinator.log.store import OpenFiles

from .log_kit import offsets, values

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)
WRITES = {"pwrite", "replace", "unlink", "ftruncate", "fsync"}


def fill_by_producer(log: SegmentedLog, batches: int) -> None:
    for number in range(batches):
        data = values(1, producer_id=4, producer_epoch=0, base_sequence=number)
        log.append(data, leader_epoch=0, now_ms=0)


def closed_log(path: Path, batches: int) -> tuple[DiskLog, FaultyFiles]:
    """A log of which nothing is in memory."""
    system = FaultyFiles()
    log = DiskLog.open(path / "t-0", CONFIG)
    fill_by_producer(log, batches)
    log.close()
    return DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(clean=True), files=OpenFiles(system=system)), system


@pytest.mark.parametrize("offset", [0, 1, 4, 8, 11])
def test_reading_what_stays_changes_nothing_and_the_truncation_reads_nothing(tmp_path: Path, offset: int) -> None:
    """Law RF8."""
    log, system = closed_log(tmp_path, 12)
    system.calls.clear()
    log.begin_truncate(offset)
    read = log.begin_read_kept()
    assert read is not None
    read()
    assert "pread" in {call.call for call in system.calls}
    assert not WRITES & {call.call for call in system.calls}
    assert (log.log_end_offset, log.producers.last_batches()) == (12, {4: (11, 0)})
    system.calls.clear()
    log.finish_truncate()
    assert "pread" not in {call.call for call in system.calls}
    assert offsets(log) == list(range(offset))
    assert log.producers.last_batches() == ({4: (offset - 1, 0)} if offset else {})
    fill_more = values(1, producer_id=4, producer_epoch=0, base_sequence=offset)
    assert log.append(fill_more, leader_epoch=0, now_ms=0).base_offset == offset


def test_without_a_read_before_it_the_truncation_reads_itself() -> None:
    log = MemoryLog(CONFIG)
    fill_by_producer(log, 12)
    log.begin_truncate(7)
    log.finish_truncate()
    assert (offsets(log), log.producers.last_batches()) == (list(range(7)), {4: (6, 0)})


def test_nothing_is_read_for_a_truncation_of_all_records() -> None:
    log = MemoryLog(CONFIG)
    fill_by_producer(log, 12)
    assert log.begin_read_kept() is None
    log.begin_truncate_fully_and_start_at(5)
    assert log.begin_read_kept() is None


def test_re6_forgetting_an_epoch_without_records_does_not_take_the_next_one_along(tmp_path: Path) -> None:
    """A follower may be elected, and write, before a thread has come to write for its truncation."""
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    log.append(values(1), leader_epoch=3, now_ms=0)
    log.delete_before(1)
    write = log.begin_truncate(1)
    assert log.latest_epoch == -1
    log.append(values(1), leader_epoch=5, now_ms=0)
    if write is not None:
        write()
    assert (log.path / EPOCHS_FILE).read_text() == "0\n1\n5 1\n"


def test_an_epoch_that_cannot_be_forgotten_on_the_disk_is_a_storage_failure(tmp_path: Path) -> None:
    log, system = closed_log(tmp_path, 2)
    log.delete_before(2)
    system.fail("replace", EPOCHS_FILE)
    with pytest.raises(StorageFailed, match=EPOCHS_FILE):
        log.begin_truncate(2)
    assert log.failure is not None


def test_a_damaged_snapshot_is_not_used_and_goes(tmp_path: Path) -> None:
    log, _ = closed_log(tmp_path, 12)
    last = max(at for at in log._storage.snapshots.offsets() if at <= 10)
    path = log.path / f"{last:020d}.snapshot"
    path.write_bytes(b"rubbish")
    log.truncate(10)
    assert log.producers.last_batches() == {4: (9, 0)}
    assert not path.exists()
    assert last not in log._storage.snapshots.offsets()


def test_damage_is_a_storage_failure(tmp_path: Path) -> None:
    log, _ = closed_log(tmp_path, 12)
    path = max(log.path.glob("*.log"))
    path.write_bytes(bytes(path.stat().st_size))
    log.begin_truncate(11)
    read = log.begin_read_kept()
    assert read is not None
    with pytest.raises(StorageFailed, match="damaged"):
        read()


@pytest.mark.parametrize("in_memory", [False, True])
def test_no_compaction_swaps_segments_between_the_beginning_and_the_end(tmp_path: Path, in_memory: bool) -> None:
    """Law RF8. What was read of the segment that stays would describe other bytes."""
    config = replace(CONFIG, compact=True, delete=False)
    log = MemoryLog(config) if in_memory else DiskLog.open(tmp_path / "t-0", config)
    for number in range(30):
        log.append_pairs([(b"%d" % (number % 3), b"%d" % number)], leader_epoch=0, now_ms=number)
    log.begin_truncate(13)
    read = log.begin_read_kept()
    assert read is not None
    size_bytes = log.size_bytes
    assert log.compact(100, force=True) == 0
    assert log.size_bytes == size_bytes
    read()
    log.finish_truncate()
    assert offsets(log) == list(range(13))
    assert log.compact(100, force=True) > 0
