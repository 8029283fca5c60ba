"""The log proper, case by case. What holds over any conversation is in tests/contract/test_log.py."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import Appended, AppendRefused, LogConfig, OffsetOutOfRange, Pair, StorageFailed
from rota.coordinator.log.disk import DiskLog
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.log.segment_storage import SEGMENTS_AT_ONCE_MAX
from rota.coordinator.log.segmented import PRODUCER_CHECK_MS, SEGMENT_BYTES_MAX
from rota.coordinator.log.store import UNSYNCED_FILES_MAX, FileStore, OpenFiles
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import headers
from rota.protocol.records.fast import encode_pairs

from .log_kit import batch, fill, flush_rolled, held, offsets, values

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100)


def idempotent(sequence: int, count: int = 1, **fields: int) -> bytes:
    return values(count, producer_id=4, base_sequence=sequence, **({"producer_epoch": 0} | fields))


def test_offsets_epoch_and_answer() -> None:
    log = MemoryLog(CONFIG)
    assert log.append(values(3), leader_epoch=5, now_ms=9) == Appended(0, 2)
    assert log.append(values(1) + values(2), leader_epoch=6, now_ms=9) == Appended(3, 5)
    assert log.append_trusted(values(2), leader_epoch=6, now_ms=9) == Appended(6, 7)
    assert log.append_pairs([(b"k", None)], leader_epoch=7, now_ms=9) == Appended(8, 8)
    found = [(header.base_offset, header.leader_epoch) for _, header in headers(log.read(0, 1 << 20))]
    assert found == [(0, 5), (3, 6), (4, 6), (6, 6), (8, 7)]
    ends = [log.epoch_end(epoch) for epoch in (5, 6, 7, 8)]
    assert (log.latest_epoch, *ends) == (7, (5, 3), (6, 8), (7, 9), (-1, -1))


def test_the_callers_bytes_are_left_alone() -> None:
    data = values(2)
    log = MemoryLog(CONFIG)
    log.append(values(1), leader_epoch=5, now_ms=9)
    log.append(memoryview(data), leader_epoch=5, now_ms=9)
    assert data == values(2)


def test_append_time() -> None:
    log = MemoryLog(replace(CONFIG, log_append_time=True))
    assert log.append(values(2, timestamp=77), leader_epoch=0, now_ms=1234) == Appended(0, 1, 1234)
    assert [record.timestamp for record in held(log)] == [1234, 1234]
    log.crash()
    assert log.append_pairs([(b"k", b"v")], leader_epoch=0, now_ms=1500) == Appended(0, 0, 1500)
    assert [record.timestamp for record in held(log)] == [1500]
    log.crash()
    log.append(idempotent(0), leader_epoch=0, now_ms=2000)
    assert log.append(idempotent(0), leader_epoch=0, now_ms=3000) == Appended(0, 0, 2000, duplicate=True)


def test_a_duplicate_is_answered_with_its_first_offsets() -> None:
    log = MemoryLog(CONFIG)
    log.append(values(5), leader_epoch=0, now_ms=0)
    log.append(idempotent(0, 3), leader_epoch=0, now_ms=0)
    log.append(values(5), leader_epoch=0, now_ms=0)
    assert log.append(idempotent(0, 3), leader_epoch=0, now_ms=0) == Appended(5, 7, 1000, duplicate=True)
    assert log.log_end_offset == 13


def test_no_batch_of_a_refused_set_is_appended() -> None:
    log = MemoryLog(CONFIG)
    with pytest.raises(AppendRefused) as refused:
        log.append(idempotent(0) + idempotent(5), leader_epoch=0, now_ms=0)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (log.log_end_offset, len(log.producers), log.latest_epoch) == (0, 0, -1)


@pytest.mark.parametrize("log_append_time", [False, True])
def test_records_that_are_encoded_already_are_appended_as_their_pairs(log_append_time: bool) -> None:
    logs = [MemoryLog(replace(CONFIG, log_append_time=log_append_time)) for _ in range(2)]
    written: list[list[Pair]] = [[(b"k", b"v")], [(b"k", None), (b"l", b"w" * 300)], [(b"m", b"x")]]
    for now_ms, pairs in enumerate(written):
        logs[0].append_pairs(pairs, leader_epoch=now_ms, now_ms=now_ms)
        end = logs[1].append_encoded(encode_pairs(pairs), len(pairs), leader_epoch=now_ms, now_ms=now_ms)
        assert end == logs[0].log_end_offset == logs[1].log_end_offset
    assert logs[0].read(0, 10_000) == logs[1].read(0, 10_000)
    assert logs[0].segment_count == logs[1].segment_count > 1
    assert logs[0].epochs.entries() == logs[1].epochs.entries()
    with pytest.raises(ValueError, match="at least one record"):
        logs[1].append_encoded(b"", 0, leader_epoch=0, now_ms=0)


def test_rolls_by_size() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 12)
    assert log.segment_count == 6
    assert all(segment.size_bytes <= 500 for segment in log._segments)
    assert offsets(log) == list(range(12))


@pytest.mark.parametrize(
    ("first", "then", "now_ms", "segments"),
    [(1000, 2000, 10**9, 1), (1000, 2001, 0, 2), (2001, 1000, 10**9, 1), (-1, -1, 1000, 1), (-1, -1, 1001, 2)],
)
def test_rolls_by_age_of_records_or_of_the_segment(first: int, then: int, now_ms: int, segments: int) -> None:
    log = MemoryLog(replace(CONFIG, segment_ms=1000), now_ms=0)
    log.append(values(1, timestamp=first), leader_epoch=0, now_ms=0)
    log.append(values(1, timestamp=then), leader_epoch=0, now_ms=now_ms)
    assert log.segment_count == segments


def test_rolls_when_an_index_reaches_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.coordinator.log.segment.RELATIVE_OFFSET_MAX", 4)
    log = MemoryLog(LogConfig())
    for _ in range(6):
        log.append(values(2), leader_epoch=0, now_ms=0)
    assert [segment.base_offset for segment in log._segments] == [0, 4, 8]


def test_reads_stop_at_the_given_end_offset() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 12)
    assert [header.base_offset for _, header in headers(log.read(2, 1 << 20, until=3))] == [2]
    assert log.read(3, 1 << 20, until=3) == b""
    assert log.read(12, 1 << 20) == b""
    for outside in (-1, 13):
        with pytest.raises(OffsetOutOfRange):
            log.read(outside, 100)


def test_damage_under_a_read_is_storage_failed() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 1)
    log._active.store.truncate(0)
    log._active.store.append(bytes(200))
    for damaged in (lambda: log.read(0, 10), lambda: log.offset_at(5), lambda: log.max_timestamp()):
        with pytest.raises(StorageFailed):
            damaged()


def test_deleting_records_moves_the_start_at_once_and_frees_later() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 12)
    size = log.size_bytes
    assert log.delete_before(5) == 5
    assert log.delete_before(3) == 5
    assert (offsets(log)[0], log.size_bytes) == (5, size)
    assert log.retain(0) == size - log.size_bytes > 0
    assert log.epoch_end(0) == (0, 12)
    assert log.delete_before(12) == 12
    log.retain(0)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes, log.segment_count) == (12, 12, 0, 1)
    assert log.append(values(1), leader_epoch=0, now_ms=0) == Appended(12, 12)


def test_old_segments_and_the_active_segment_are_deleted() -> None:
    log = MemoryLog(replace(CONFIG, retention_ms=100))
    fill(log, 12, timestamps=(1000,))
    assert log.retain(1100) == 0
    log.retain(1101)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (12, 12, 0)


def test_producers_expire_now_and_then() -> None:
    log = MemoryLog(replace(CONFIG, producer_id_expiration_ms=1000, retention_ms=None))
    log.append(idempotent(0), leader_epoch=0, now_ms=0)
    log.retain(PRODUCER_CHECK_MS - 1)
    assert len(log.producers) == 1
    log.retain(PRODUCER_CHECK_MS)
    assert len(log.producers) == 0


def test_producers_expire_after_the_wall_clock_stepped_back() -> None:
    log = MemoryLog(replace(CONFIG, producer_id_expiration_ms=1000, retention_ms=None))
    log.retain(5 * PRODUCER_CHECK_MS)
    log.append(idempotent(0), leader_epoch=0, now_ms=0)
    log.retain(2 * PRODUCER_CHECK_MS)
    assert len(log.producers) == 0


def test_a_truncated_producer_continues_from_the_remaining_batches() -> None:
    log = MemoryLog(CONFIG)
    for sequence in range(10):
        log.append(idempotent(sequence), leader_epoch=sequence // 5, now_ms=0)
    log.truncate(4)
    assert (log.log_end_offset, log.latest_epoch) == (4, 0)
    with pytest.raises(AppendRefused):
        log.append(idempotent(5), leader_epoch=0, now_ms=0)
    assert log.append(idempotent(4), leader_epoch=0, now_ms=0) == Appended(4, 4)


def test_truncation_below_the_log_start_restarts_the_log_there() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 12)
    log.delete_before(10)
    log.retain(0)
    log.truncate(3)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert log.append(values(1), leader_epoch=0, now_ms=0) == Appended(3, 3)
    assert offsets(log) == [3]


def test_flush_counts() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 12)
    assert (log.unflushed_messages, log.recovery_point) == (12, 0)
    flush_rolled(log)
    assert log.recovery_point == log._active.base_offset > 0
    log.flush()
    assert log.unflushed_messages == 0
    log.truncate(5)
    assert log.recovery_point == 5


def failing_log(path: Path) -> tuple[DiskLog, FaultyFiles]:
    system = FaultyFiles()
    return DiskLog.open(path / "t-0", CONFIG, files=OpenFiles(system=system)), system


@pytest.mark.parametrize("file", [".log", "index", "/t-0"])
def test_after_a_failed_fsync_nothing_counts_as_flushed(tmp_path: Path, file: str) -> None:
    """Law A5. The next fsync would succeed: the kernel reports a failed write-back once."""
    log, system = failing_log(tmp_path)
    fill(log, 2)
    log.flush()
    fill(log, 8)
    system.fail("fsync", file, times=1)
    with pytest.raises(StorageFailed):
        log.flush()
    for again in (log.flush, lambda: flush_rolled(log), lambda: fill(log, 1), lambda: log.truncate(1), log.close):
        with pytest.raises(StorageFailed, match="has to be recovered"):
            again()
    assert (log.recovery_point, log.unflushed_messages, log.failure is not None) == (2, 8, True)


def test_a_flush_that_succeeded_beside_one_that_failed_counts_for_nothing_later(tmp_path: Path) -> None:
    log, system = failing_log(tmp_path)
    fill(log, 2)
    fails, later = log.begin_flush(), log.begin_flush()
    system.fail("fsync", times=1)
    with pytest.raises(StorageFailed):
        fails.run()
    with pytest.raises(StorageFailed, match="has to be recovered"):
        later.run()


class WatchedLock:
    """A lock that sets `contended` when a thread has to wait for it."""

    def __init__(self, contended: threading.Event) -> None:
        self._lock, self._contended = threading.Lock(), contended

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._contended.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class FailsLate(FaultyFiles):
    """The first fsync fails, after `release_sync` is set; `has_begun` says that it has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.release_sync = threading.Event(), threading.Event()

    def fsync(self, fd: int) -> None:
        if not self.has_begun.is_set():
            self.has_begun.set()
            self.release_sync.wait()
            raise OSError(errno.EIO, "injected")
        super().fsync(fd)


def test_no_flush_succeeds_beside_one_that_fails(tmp_path: Path) -> None:
    """Law A5. The kernel reports a failed write-back to one of two fsyncs of a file that run at the same time."""
    system = FailsLate()
    log = DiskLog.open(tmp_path / "t-0", CONFIG, files=OpenFiles(system=system))
    fill(log, 2)
    first, second = log.begin_flush(), log.begin_flush()
    log._syncing = cast("Any", WatchedLock(system.release_sync))
    with ThreadPoolExecutor(2) as threads:
        fails = threads.submit(first.run)
        system.has_begun.wait()
        waits = threads.submit(second.run)
        waits.add_done_callback(lambda _: system.release_sync.set())
        assert isinstance(fails.exception(), StorageFailed)
        assert isinstance(waits.exception(), StorageFailed)


def test_a_rolled_file_is_synced_by_the_descriptor_that_wrote_it(tmp_path: Path) -> None:
    log, system = failing_log(tmp_path)
    fill(log, 12)
    system.calls.clear()
    log.flush()
    synced = {call.path for call in system.calls if call.call == "fsync" and call.path.endswith(".log")}
    opened = {call.path for call in system.calls if call.call == "open" and call.path.endswith(".log")}
    assert len(synced) == log.segment_count
    assert not opened


def test_a_flush_that_a_truncation_overtook_moves_nothing(tmp_path: Path) -> None:
    log, _ = failing_log(tmp_path)
    fill(log, 6)
    flush = log.begin_flush()
    flush.run()
    log.truncate(3)
    fill(log, 3)
    flush.finish()
    assert log.recovery_point == 0


def test_a_truncation_takes_back_a_swap_that_a_start_would_complete(tmp_path: Path) -> None:
    """Law L2. What was cut does not come back with the compacted segment."""
    log, _ = failing_log(tmp_path)
    log.config = replace(CONFIG, compact=True)
    fill(log, 12, key=b"k")
    slices = log.compaction(0, force=True)  # under way until the end of the test
    for run in slices:
        run()
        if list(log.path.glob("*.swap")):
            break
    else:
        pytest.fail("nothing was staged")
    log.truncate(1)
    assert DiskLog.open(log.path, CONFIG).log_end_offset == 1


def test_a_segment_that_cannot_be_removed_stays(tmp_path: Path) -> None:
    log, system = failing_log(tmp_path)
    log.config = replace(CONFIG, retention_bytes=0)
    fill(log, 12)
    before = log.segment_count
    system.fail("replace", "00000000000000000004.log")
    with pytest.raises(StorageFailed, match="cannot remove"):
        log.retain(0)
    assert (log.segment_count, log.log_start_offset, log.failure) == (before + 1 - 2, 4, None)  # it was rolled first
    system.clear()
    log.retain(0)
    assert offsets(log) == []


def test_a_failed_fsync_of_names_in_a_compaction_is_not_forgotten(tmp_path: Path) -> None:
    """Law A5. The folder may have lost the names of segments that were rolled."""
    log, system = failing_log(tmp_path)
    log.config = replace(CONFIG, compact=True)
    fill(log, 12, key=b"k")
    for run in log.compaction(0, force=True):
        if list(log.path.glob("*.log.swap")):
            system.fail("fsync", "/t-0", times=1)
            with pytest.raises(StorageFailed, match="injected"):
                run()
            break
        run()
    with pytest.raises(StorageFailed, match="has to be recovered"):
        log.flush()


def unsynced_log(path: Path) -> tuple[DiskLog, FaultyFiles]:
    """A log with as many rolled segments as may wait for their sync, and a full active one."""
    system = FaultyFiles()
    log = DiskLog.open(path / "t-0", replace(CONFIG, segment_bytes=200), files=OpenFiles(system=system))
    fill(log, UNSYNCED_FILES_MAX + 1)
    assert log.segment_count == UNSYNCED_FILES_MAX + 1
    return log, system


def test_segments_are_rolled_late_while_many_wait_for_their_sync(tmp_path: Path) -> None:
    """Law A8."""
    log, system = unsynced_log(tmp_path)
    fill(log, 20)
    log.config = replace(log.config, segment_bytes=1 << 20, segment_ms=1)
    fill(log, 2, timestamps=(5000,))
    assert log.segment_count == UNSYNCED_FILES_MAX + 1
    assert not [call for call in system.calls if call.call == "fsync"]
    flush_rolled(log)
    fill(log, 1, timestamps=(9000,))
    assert log.segment_count == UNSYNCED_FILES_MAX + 2
    assert [record.offset for record in held(log)] == list(range(UNSYNCED_FILES_MAX + 24))
    log.close()
    assert len(held(DiskLog.open(log.path, CONFIG))) == UNSYNCED_FILES_MAX + 24


def test_the_oldest_segment_is_synced_first(tmp_path: Path) -> None:
    """Law L2. A loss of power between two syncs leaves no hole."""
    log, system = unsynced_log(tmp_path)
    log.flush()
    synced = [call.path for call in system.calls if call.call == "fsync" and call.path.endswith(".log")]
    assert len(synced) == log.segment_count
    assert synced == sorted(synced)


def test_a_segment_that_its_indexes_cannot_span_is_rolled_though_many_wait(tmp_path: Path) -> None:
    """Law A8. Positions and relative offsets have 31 bits."""
    log, system = unsynced_log(tmp_path)
    far = batch((None, b"x"), base_offset=log.log_end_offset + (1 << 31), leader_epoch=0)
    log.append_as_follower(far, leader_epoch=0)
    assert log.segment_count == UNSYNCED_FILES_MAX + 2
    store = log._active.store
    assert isinstance(store, FileStore)
    store.size_bytes = SEGMENT_BYTES_MAX - 50  # as if it had so many
    assert log._is_full(51, log.log_end_offset, 0, 0)
    assert not log._is_full(50, log.log_end_offset, 0, 0)
    assert not [call for call in system.calls if call.call == "fsync"]


def test_retention_does_not_wait_for_the_sync_of_what_it_removes(tmp_path: Path) -> None:
    """Law A8. The active segment is rolled, though others wait for their sync already."""
    log, system = unsynced_log(tmp_path)
    log.config = replace(log.config, retention_bytes=0)
    log.retain(0)
    assert (log.segment_count, log.size_bytes) == (1, 0)
    assert not [call for call in system.calls if call.call == "fsync"]
    fill(log, 2)
    assert log.segment_count == 2


def names_changed(system: FaultyFiles) -> int:
    """Renames and unlinks since the last call."""
    count = len([call for call in system.calls if call.call in ("replace", "unlink")])
    system.calls.clear()
    return count


def test_retention_removes_few_segments_at_once_and_unlinks_nothing(tmp_path: Path) -> None:
    """Law A4. An unlink takes milliseconds, also that of a small file."""
    system = FaultyFiles()
    config = replace(CONFIG, segment_bytes=200, retention_bytes=0)
    log = DiskLog.open(tmp_path / "t-0", config, files=OpenFiles(system=system))
    for _ in range(3 * SEGMENTS_AT_ONCE_MAX):
        fill(log, 1)
        log.flush()
    system.calls.clear()
    starts: list[int] = []
    for _ in log.retention(0):
        assert "unlink" not in {call.call for call in system.calls}
        assert 0 < names_changed(system) <= 6 * SEGMENTS_AT_ONCE_MAX
        starts.append(log.log_start_offset)
        assert offsets(log) == list(range(starts[-1], log.log_end_offset))
    assert starts == [SEGMENTS_AT_ONCE_MAX, 2 * SEGMENTS_AT_ONCE_MAX]
    assert "unlink" not in {call.call for call in system.calls}
    assert names_changed(system) <= 6 * SEGMENTS_AT_ONCE_MAX
    assert (log.log_start_offset, log.segment_count, log.size_bytes) == (3 * SEGMENTS_AT_ONCE_MAX, 1, 0)
    log.close()
    names = {path.name for path in log.path.iterdir()}
    assert len([name for name in names if name.endswith(".snapshot")]) == 1
    assert not [name for name in names if name.endswith(".deleted")]


def test_rt3_a_retention_pass_ends_with_a_truncation() -> None:
    """What is appended afterwards may have offsets that were committed when the pass began."""
    count = 2 * SEGMENTS_AT_ONCE_MAX
    log = MemoryLog(replace(CONFIG, segment_bytes=200, retention_bytes=0))
    fill(log, count)
    steps = log.retention(0, high_watermark=count)
    next(steps)
    start = log.log_start_offset
    log.truncate(start)
    fill(log, count)
    assert list(steps) == []
    assert log.log_start_offset == start
    log.retain(0, high_watermark=start + 1)
    assert log.log_start_offset == start + 1


def test_a_compaction_swaps_few_segments_at_once(tmp_path: Path) -> None:
    """Law A4. The swap changes their names on the event loop."""
    system = FaultyFiles()
    config = replace(CONFIG, segment_bytes=200, compact=True)
    log = DiskLog.open(tmp_path / "t-0", config, files=OpenFiles(system=system))
    for _ in range(3 * SEGMENTS_AT_ONCE_MAX + 1):
        fill(log, 1, key=b"k")
        log.flush()
    log.config = replace(config, segment_bytes=1 << 20)
    system.calls.clear()
    here, most = threading.get_ident(), 0
    with ThreadPoolExecutor(1) as worker:
        slices = log.compaction(0, force=True)
        while True:
            before = len([call for call in system.calls if call.call == "replace" and call.thread == here])
            work = next(slices, None)
            after = len([call for call in system.calls if call.call == "replace" and call.thread == here])
            most = max(most, after - before)
            if work is None:
                break
            worker.submit(work).result()
    assert log.segment_count == 4
    assert 0 < most <= 6 * SEGMENTS_AT_ONCE_MAX


def test_the_names_of_removed_segments_are_synced_before_others_take_their_offsets(tmp_path: Path) -> None:
    """Law L2. Else a power loss brings back what a truncation has cut, before what was flushed later."""
    log, system = failing_log(tmp_path)
    fill(log, 12)
    log.flush()
    log.truncate(2)
    fill(log, 1)
    system.calls.clear()
    log.flush()
    assert [call for call in system.calls if call.call == "fsync" and call.path.endswith("t-0")]


@pytest.mark.parametrize("count", [0, 3])
def test_a_follower_appends_after_an_offset_gap_larger_than_an_index_entry(tmp_path: Path, count: int) -> None:
    """Law L2. Compaction of the leader has left more than 2^31 offsets without a record."""
    config, far = replace(CONFIG, compact=True), (1 << 31) + 5
    log = DiskLog.open(tmp_path / "t-0", config)
    if count:
        fill(log, count, key=b"k")
    for number in range(20):
        data = values(1)
        log.append_as_follower((far + number).to_bytes(8, "big") + data[8:], leader_epoch=0)
    expected = [*range(count), *range(far, far + 20)]
    assert offsets(log) == expected
    log.abandon()
    assert offsets(DiskLog.open(tmp_path / "t-0", config)) == expected
