"""The log on disk: what a stop leaves, in order or not, and what the next start makes of it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import Appended, AppendRefused, LogConfig, NotCached, StorageFailed
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.index_files import file_name
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.log.producer import BATCHES_PER_PRODUCER_MAX
from rota.coordinator.log.store import OpenFiles

from .log_kit import batch, fill, flush_rolled, held, offsets, values

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100, retention_ms=None)


def idempotent(sequence: int) -> bytes:
    return values(1, producer_id=4, producer_epoch=0, base_sequence=sequence)


def reopened(log: DiskLog, *, clean: bool = True, config: LogConfig = CONFIG) -> DiskLog:
    if clean:
        log.close()
    known = RecoveryCheckpoint(clean, log.recovery_point, log.log_start_offset, log.cleaned_until)
    return DiskLog.open(log.path, config, known)


def test_an_empty_partition_is_an_empty_folder(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    log.flush()
    log.close()
    log.close()
    assert list(log.path.iterdir()) == []


@pytest.mark.parametrize("clean", [True, False])
def test_idempotent_producers_survive(tmp_path: Path, clean: bool) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    for sequence in range(20):
        log.append(idempotent(sequence), leader_epoch=0, now_ms=0)
    again = reopened(log, clean=clean)
    assert again.append(idempotent(19), leader_epoch=0, now_ms=0) == Appended(19, 19, 1000, duplicate=True)
    with pytest.raises(AppendRefused):
        again.append(idempotent(21), leader_epoch=0, now_ms=0)
    assert again.append(idempotent(20), leader_epoch=0, now_ms=0) == Appended(20, 20)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("written", range(1, 20))  # over two rolls
def test_the_last_five_batches_of_a_producer_are_known_wherever_the_stop_came(
    tmp_path: Path, written: int, clean: bool
) -> None:
    """What was in flight is sent again: right after a roll or a stop its batches lie before the snapshot."""
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    for sequence in range(written):
        log.append(idempotent(sequence), leader_epoch=0, now_ms=0)
    assert log.segment_count == -(-written // 8), "of eight batches each"
    again = reopened(log, clean=clean)
    for sequence in range(max(0, written - BATCHES_PER_PRODUCER_MAX), written):
        assert again.append(idempotent(sequence), leader_epoch=0, now_ms=0).base_offset == sequence
    assert again.append(idempotent(written), leader_epoch=0, now_ms=0) == Appended(written, written)


def test_a_producer_survives_the_records_it_wrote(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    log.append(idempotent(0), leader_epoch=0, now_ms=0)
    log.delete_before(1)
    log.retain(0)
    again = reopened(log)
    with pytest.raises(AppendRefused):
        again.append(idempotent(5), leader_epoch=0, now_ms=0)


def test_a_clean_start_reads_only_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DiskLog.open(tmp_path / "t-0", replace(CONFIG, segment_bytes=1 << 20))
    fill(log, 500)
    log.close()
    read = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, count, at: read.append(count) or real(fd, count, at))  # type: ignore[func-returns-value]
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(clean=True))
    assert again.log_end_offset == 500
    assert sum(read) < 5_000  # of 85,000: the index, and the batches after its last entry


def test_recovery_reads_unflushed_records_only(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 12)
    flush_rolled(log)
    first, *_, last = sorted(log.path.glob("*.log"))
    first.write_bytes(first.read_bytes()[:-1] + b"?")  # rot behind the recovery point: nobody looks there
    last.write_bytes(last.read_bytes()[:-1])
    again = reopened(log, clean=False)
    assert (again.log_end_offset, again.cut_bytes > 0) == (11, True)


def test_damage_ends_the_log_and_later_records_are_removed(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 30)
    damaged = sorted(log.path.glob("*.log"))[3]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    again = reopened(log, clean=False)
    end = int(damaged.name[:20]) + 2
    assert (again.log_end_offset, offsets(again)) == (end, list(range(end)))
    assert not [file for file in log.path.iterdir() if file.name[:20].isdecimal() and int(file.name[:20]) > end]
    fill(again, 5)
    assert offsets(reopened(again)) == list(range(end + 5))


def test_a_start_beyond_the_end_gives_no_offset_twice(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 3)
    log.close()
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(log_start_offset=10))
    assert (again.log_start_offset, again.log_end_offset) == (10, 10)
    assert again.append(values(1), leader_epoch=0, now_ms=0) == Appended(10, 10)


def test_epochs_survive_the_loss_of_their_file(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    for epoch in (1, 2, 2, 5):
        log.append(values(1), leader_epoch=epoch, now_ms=0)
    assert reopened(log).epochs.entries() == [(1, 0), (2, 1), (5, 3)]
    (log.path / "leader-epoch-checkpoint").unlink()
    assert reopened(log, clean=False).epochs.entries() == [(1, 0), (2, 1), (5, 3)]


def test_epochs_of_flushed_segments_survive_the_loss_of_their_file(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    for epoch in (2, 3, 5):
        for _ in range(5):
            log.append(values(1), leader_epoch=epoch, now_ms=0)
    log.close()
    (log.path / "leader-epoch-checkpoint").unlink()
    for known in (RecoveryCheckpoint(recovery_point=15), RecoveryCheckpoint(clean=True)):
        assert DiskLog.open(log.path, CONFIG, known).epochs.entries() == [(2, 0), (3, 5), (5, 10)]
        (log.path / "leader-epoch-checkpoint").unlink()


def test_the_time_index_survives_a_stop_in_order(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", replace(CONFIG, index_interval_bytes=1 << 20))
    fill(log, 3, timestamps=(5, 9, 7))
    again = reopened(log)
    fill(again, 1, timestamps=(8,))
    found = again.max_timestamp()
    assert found is not None
    assert (found.offset, found.timestamp) == (1, 9)


def test_compaction_on_disk(tmp_path: Path) -> None:
    config = replace(CONFIG, compact=True)
    log = DiskLog.open(tmp_path / "t-0", config)
    for number in range(60):
        log.append(batch((b"key-%d" % (number % 5), b"%0100d" % number)), leader_epoch=0, now_ms=0)
    assert log.compact(0, force=True) > 0
    expected = held(log)
    for clean in (True, False):
        log = reopened(log, clean=clean, config=config)
        assert held(log) == expected
    assert log.compact(0, force=True) == 0


def test_a_destroyed_log_leaves_no_files(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 12)
    held(log)
    before = set(os.listdir("/proc/self/fd"))
    log.destroy()
    assert not log.path.exists()
    assert len(os.listdir("/proc/self/fd")) <= len(before)


def test_a_log_whose_folder_is_missing_reports_it(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    log.path.rmdir()
    with pytest.raises(StorageFailed, match="cannot write"):
        log.append(values(1), leader_epoch=0, now_ms=0)


WRITER = """
import sys
from pathlib import Path
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog
from rota.protocol.records.record import write_pairs
log = DiskLog.open(Path(sys.argv[1]), LogConfig(segment_bytes=20_000))
for number in range(1_000_000):
    data = write_pairs([(None, b"%d" % number)], 0, producer_id=1, producer_epoch=0, base_sequence=number)
    appended = log.append(data, leader_epoch=0, now_ms=0)
    print(appended.last_offset, flush=True)
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "t-0")], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        acknowledged = -1
        while acknowledged < 2000:
            acknowledged = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().split(b"\n")
        acknowledged = max([acknowledged, *(int(line) for line in rest[:-1])])
    log = DiskLog.open(tmp_path / "t-0", LogConfig(segment_bytes=20_000))
    assert log.log_end_offset > acknowledged
    assert [record.value for record in held(log)] == [b"%d" % number for number in range(log.log_end_offset)]
    producer = log.producers.get(1)
    assert producer is not None
    assert producer.last_sequence == log.log_end_offset - 1
    assert (log.path / file_name(0, ".log")).exists()


def test_logs_of_one_directory_share_their_descriptors(tmp_path: Path) -> None:
    files = OpenFiles(limit=2)
    logs = [DiskLog.open(tmp_path / f"t-{number}", CONFIG, files=files) for number in range(4)]
    for log in logs:
        fill(log, 12)
        log.flush()
        held(log)
    assert len(files) == 2


def test_a_forgotten_log_holds_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    log: DiskLog | None = DiskLog.open(tmp_path / "t-0", CONFIG)
    assert log is not None
    fill(log, 12)
    held(log)
    del log
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_read_that_does_not_wait_names_the_pages_to_load(tmp_path: Path) -> None:
    system = FaultyFiles()
    log = DiskLog.open(tmp_path / "t-0", CONFIG, files=OpenFiles(system=system))
    fill(log, 12)
    expected = log.read(1, 200)
    log.close()
    log = DiskLog.open(
        log.path, LogConfig(segment_bytes=600), RecoveryCheckpoint(clean=True), files=OpenFiles(system=system)
    )
    system.uncached = {".index", ".log"}
    for _ in range(2):  # the index, then the batches
        with pytest.raises(NotCached) as cold:
            log.read(1, 200, wait=False)
        cold.value.loads[0]()
    assert log.read(1, 200, wait=False) == expected
    system.uncached = {".log"}
    assert log.read(1, 200) == expected


def test_loading_after_the_log_was_destroyed_does_not_fail(tmp_path: Path) -> None:
    system = FaultyFiles()
    log = DiskLog.open(tmp_path / "t-0", LogConfig(), files=OpenFiles(system=system))
    fill(log, 2)
    system.uncached = {".log"}
    with pytest.raises(NotCached) as cold:
        log.read(0, 200, wait=False)
    log.destroy()
    cold.value.loads[0]()


def test_a_log_in_memory_never_has_to_load() -> None:
    log = MemoryLog()
    fill(log, 2)
    assert log.read(0, 200, wait=False) == log.read(0, 200)


def with_a_lost_end(path: Path) -> DiskLog:
    """Four segments of keyed records that were not flushed; the first has lost its last batch with the power."""
    log = DiskLog.open(path / "t-0", CONFIG)
    fill(log, 12, key=b"k")
    log.abandon()
    first = log.path / file_name(0, ".log")
    first.write_bytes(first.read_bytes()[: 2 * first.stat().st_size // 3])
    return log


def test_a_log_ends_where_a_segment_has_lost_its_end(tmp_path: Path) -> None:
    """Law L2. A machine without power may have written a later segment before an earlier one."""
    log = with_a_lost_end(tmp_path)
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(lost_power=True))
    assert (offsets(again), again.log_end_offset, again.segment_count) == ([0, 1], 2, 1)
    fill(again, 1)
    assert offsets(again) == [0, 1, 2]


@pytest.mark.parametrize(
    ("compact", "cleaned_until", "lost_power"), [(True, 0, True), (False, 12, True), (False, 0, False)]
)
def test_a_gap_of_compaction_does_not_end_the_log(
    tmp_path: Path, compact: bool, cleaned_until: int, lost_power: bool
) -> None:
    """What a killed process has written is still there: a gap is one of compaction, whatever the topic does now."""
    log = with_a_lost_end(tmp_path)
    known = RecoveryCheckpoint(cleaned_until=cleaned_until, lost_power=lost_power)
    again = DiskLog.open(log.path, replace(CONFIG, compact=compact), known)
    assert offsets(again) == [0, 1, *range(3, 12)]


def test_a_gap_that_a_follower_has_copied_does_not_end_the_log(tmp_path: Path) -> None:
    """Law L2. The leader was compacted once; the follower's checkpoints know nothing of that."""
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    for offset in range(0, 24, 2):
        log.append_as_follower(offset.to_bytes(8, "big") + values(1)[8:], leader_epoch=0)
    assert log.segment_count > 1
    log.flush()
    log.abandon()
    assert offsets(DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(lost_power=True))) == list(range(0, 24, 2))


def test_retention_before_a_crash_does_not_make_a_producer_unknown(tmp_path: Path) -> None:
    """Law XL1. The checkpoint of the high watermark is older than the log start: what was deleted was committed."""
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    log.append(idempotent(0), leader_epoch=0, now_ms=0)
    fill(log, 20)
    log.config = replace(CONFIG, retention_bytes=300)
    log.retain(0)
    assert log.log_start_offset > 0
    log.abandon()
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(high_watermark=0))
    with pytest.raises(AppendRefused):
        again.append(idempotent(2), leader_epoch=0, now_ms=0)
    assert again.append(idempotent(0), leader_epoch=0, now_ms=0).duplicate


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_a_loss_of_power_has_emptied_is_built_again(tmp_path: Path, suffix: str) -> None:
    """Law A4. Without it every read of the segment would look at all batches before its offset."""
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 12)
    log.close()
    files = sorted(log.path.glob(f"*{suffix}"))[:-1]  # the active segment's index is in memory
    before = [file.read_bytes() for file in files]
    assert all(before)
    for file in files:
        file.write_bytes(b"")
    again = reopened(log)
    assert offsets(again) == list(range(12))
    assert again.offset_at(1000) is not None
    assert [file.read_bytes() for file in files] == before


@pytest.mark.parametrize(("timestamp", "interval"), [(-1, 100), (1000, 10_000)])
def test_an_index_without_entries_may_be_whole(tmp_path: Path, timestamp: int, interval: int) -> None:
    """One of records without a time, and one of a segment that is smaller than its interval."""
    config = replace(CONFIG, index_interval_bytes=interval)
    log = DiskLog.open(tmp_path / "t-0", config)
    fill(log, 12, timestamps=(timestamp,))
    log.close()
    again = DiskLog.open(log.path, config, RecoveryCheckpoint(clean=True))
    for segment in again._segments:
        assert not segment.has_lost_entries(segment.offsets, segment.times)
