"""Law A9: what retention and compaction have to know of old segments is read before, and no more than that."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.log.segment_ages import SEGMENTS_PER_READ_MAX
from rota.coordinator.log.store import OpenFiles

from .log_kit import batch, fill

NOW_MS = 10_000
CONFIG = LogConfig(segment_bytes=200, index_interval_bytes=100, retention_ms=None)  # one batch in each segment
RETENTION = replace(CONFIG, retention_ms=5_000)
LATEST = replace(CONFIG, compact=True, delete=False, max_compaction_lag_ms=5_000, min_cleanable_dirty_ratio=1.0)
COMPACTION = replace(CONFIG, compact=True, delete=False, min_compaction_lag_ms=5_000, min_cleanable_dirty_ratio=0.0)


def reopened(path: Path, timestamps: list[int], config: LogConfig) -> tuple[DiskLog, FaultyFiles]:
    """A log of which nothing is in memory; one segment for each timestamp."""
    log = DiskLog.open(path / "t-0", CONFIG)
    for number, timestamp in enumerate(timestamps):
        log.append(batch((b"k", b"%0100d" % number), timestamp=timestamp), leader_epoch=0, now_ms=0)
        log.flush()
    assert log.segment_count == len(timestamps)
    log.close()
    system = FaultyFiles()
    again = DiskLog.open(log.path, config, RecoveryCheckpoint(clean=True), files=OpenFiles(system=system))
    system.calls.clear()
    return again, system


def reads(system: FaultyFiles) -> int:
    count = len({call.path for call in system.calls if call.call == "pread"})
    system.calls.clear()
    return count


def read_ages(log: DiskLog) -> bool:
    ages = log.begin_read_ages(NOW_MS)
    if ages is None:
        return False
    ages.run()
    ages.finish()
    return True


def test_retention_by_time_reads_up_to_the_first_segment_that_stays(tmp_path: Path) -> None:
    log, system = reopened(tmp_path, [1_000, 2_000, 3_000, 7_000, 8_000, 9_000], RETENTION)
    assert read_ages(log)
    assert reads(system) == 4
    assert not read_ages(log)
    log.retain(NOW_MS)
    assert reads(system) == 0
    assert (log.log_start_offset, log.segment_count) == (3, 3)
    assert not read_ages(log)


def test_compaction_with_a_lag_reads_up_to_the_first_segment_that_is_too_new(tmp_path: Path) -> None:
    log, system = reopened(tmp_path, [1_000, 2_000, 3_000, 7_000, 8_000, 9_000], COMPACTION)
    assert read_ages(log)
    assert reads(system) == 4
    assert not read_ages(log)
    slices = log.compaction(NOW_MS)
    assert next(slices, None) is not None
    slices.close()
    assert reads(system) == 0


@pytest.mark.parametrize(
    ("timestamps", "read"), [([9_000, 8_000, 4_000, 1_000, 9_000], 3), ([9_000, 8_000, 7_000, 4_000], 3)]
)
def test_rt4_the_first_records_are_read_up_to_one_that_is_overdue(
    tmp_path: Path, timestamps: list[int], read: int
) -> None:
    """The active segment, the last one, is never looked at."""
    log, system = reopened(tmp_path, timestamps, LATEST)
    assert read_ages(log)
    assert reads(system) == read
    assert not read_ages(log)
    slices = log.compaction(NOW_MS)
    assert (next(slices, None) is not None) is (len(timestamps) == 5)
    slices.close()
    assert reads(system) == 0


def test_many_segments_take_several_reads(tmp_path: Path) -> None:
    log, system = reopened(tmp_path, [1_000] * (SEGMENTS_PER_READ_MAX + 3), RETENTION)
    assert [read_ages(log) for _ in range(3)] == [True, True, False]
    system.calls.clear()
    log.retain(NOW_MS)
    assert (reads(system), log.size_bytes) == (0, 0)


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, retention_bytes=1), replace(CONFIG, compact=True)])
def test_without_a_need_nothing_is_read(tmp_path: Path, config: LogConfig) -> None:
    log, _ = reopened(tmp_path, [1_000] * 3, config)
    assert log.begin_read_ages(NOW_MS) is None


def test_a_log_that_knows_its_ages_reads_nothing() -> None:
    log = MemoryLog(RETENTION)
    fill(log, 5)
    assert log.begin_read_ages(NOW_MS) is None


def test_what_is_appended_meanwhile_counts(tmp_path: Path) -> None:
    log, _ = reopened(tmp_path, [1_000], RETENTION)
    log.config = replace(RETENTION, segment_bytes=1_000)
    ages = log.begin_read_ages(NOW_MS)
    assert ages is not None
    ages.run()
    log.append(batch((b"k", b"new"), timestamp=9_000), leader_epoch=0, now_ms=0)
    ages.finish()
    assert log.retain(NOW_MS) == 0


@pytest.mark.parametrize("indexed", [True, False])
def test_a_segment_that_is_removed_meanwhile_fails_nothing(tmp_path: Path, indexed: bool) -> None:
    """Law A9. A follower truncates while the ages of its segments are read in a thread."""
    log, _ = reopened(tmp_path, [1_000] * 6, RETENTION)
    if not indexed:
        for path in log.path.glob("*.timeindex"):
            path.unlink()
    ages = log.begin_read_ages(NOW_MS)
    assert ages is not None
    log.truncate(3)
    ages.run()
    ages.finish()
    while read_ages(log):
        pass
    log.retain(NOW_MS)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)


def test_a_failure_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log, system = reopened(tmp_path, [1_000, 2_000], RETENTION)
    system.fail("pread", ".log", errno.EIO)
    for path in log.path.glob("*.timeindex"):
        path.unlink()
    ages = log.begin_read_ages(NOW_MS)
    assert ages is not None
    ages.run()
    with pytest.raises(StorageFailed, match="cannot read"):
        ages.finish()
    system.clear()
    for log_path in log.path.glob("*.log"):
        log_path.write_bytes(bytes(log_path.stat().st_size))
    ages = log.begin_read_ages(NOW_MS)
    assert ages is not None
    ages.run()
    with pytest.raises(StorageFailed, match="damaged"):
        ages.finish()
    assert log.failure is None
