"""Law A4: indexes whose files are missing are rebuilt in another thread for those who do not wait for the disk."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import DamagedLog, LogConfig, NotCached
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.index_files import LoadedIndexes
from rota.coordinator.log.index_rebuild import IndexRebuild
from rota.coordinator.log.store import OpenFiles
from rota.protocol.records.batch import headers

from .log_kit import fill, values

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=100)


def without_indexes(path: Path) -> tuple[DiskLog, FaultyFiles]:
    """A log of several segments that has lost the index files of the first."""
    log = DiskLog.open(path / "t-0", CONFIG)
    fill(log, 30, timestamps=range(1000, 1030))
    log.close()
    system = FaultyFiles()
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(clean=True), files=OpenFiles(system=system))
    for suffix in (".index", ".timeindex"):
        (log.path / f"{0:020d}{suffix}").unlink()
    system.calls.clear()
    return again, system


def load(cold: pytest.ExceptionInfo[NotCached]) -> None:
    (rebuild,) = cold.value.loads
    thread = threading.Thread(target=rebuild)
    thread.start()
    thread.join()


def test_a_read_that_does_not_wait_names_the_rebuild(tmp_path: Path) -> None:
    log, system = without_indexes(tmp_path)
    expected = {path.name: path.read_bytes() for path in log.path.glob("*.log")}
    with pytest.raises(NotCached) as cold:
        log.read(2, 200, wait=False)
    with pytest.raises(NotCached) as again:
        log.offset_at(1002, wait=False)
    assert cold.value.loads == again.value.loads, "one rebuild serves both"
    own = threading.get_ident()
    assert not [call for call in system.calls if call.thread == own and call.path.endswith(".log")]
    load(cold)
    assert log.read(2, 200, wait=False)
    found = log.offset_at(1002, wait=False)
    assert found is not None
    assert (found.offset, found.timestamp) == (2, 1002)
    assert not [
        call for call in system.calls if call.thread == own and call.path.endswith(".log") and call.call == "pwrite"
    ]
    assert {path.name: path.read_bytes() for path in log.path.glob("*.log")} == expected
    assert not list(log.path.glob("*.tmp"))


def test_the_rebuilt_files_are_those_that_were_lost(tmp_path: Path) -> None:
    log, _ = without_indexes(tmp_path)
    other = DiskLog.open(tmp_path / "other", CONFIG)
    fill(other, 30, timestamps=range(1000, 1030))
    other.close()
    with pytest.raises(NotCached) as cold:
        log.read(2, 200, wait=False)
    load(cold)
    log.read(2, 200, wait=False)
    for suffix in (".index", ".timeindex"):
        name = f"{0:020d}{suffix}"
        assert (log.path / name).read_bytes() == (other.path / name).read_bytes()


def test_a_segment_that_is_removed_meanwhile_leaves_no_index_file(tmp_path: Path) -> None:
    log, _ = without_indexes(tmp_path)
    with pytest.raises(NotCached) as cold:
        log.read(2, 200, wait=False)
    log.truncate_fully_and_start_at(0)
    fill(log, 5)  # as many bytes in a file of the same name
    load(cold)
    assert not list(log.path.glob("*index"))
    assert log.read(2, 200, wait=False)


@pytest.mark.parametrize("wait", [True, False])
def test_indexes_that_cannot_be_written_fail_no_read(tmp_path: Path, wait: bool) -> None:
    log, system = without_indexes(tmp_path)
    fault = system.fail("pwrite", ".index")
    if not wait:
        with pytest.raises(NotCached) as cold:
            log.read(2, 200, wait=False)
        load(cold)
    assert log.read(2, 200, wait=wait)
    assert (fault.hits, log.failure) == (1, None)


def test_a_segment_without_valid_batches_cannot_be_rebuilt(tmp_path: Path) -> None:
    log, _ = without_indexes(tmp_path)
    path = log.path / f"{0:020d}.log"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(NotCached) as cold:
        log.read(2, 200, wait=False)
    load(cold)
    with pytest.raises(DamagedLog):
        log.read(2, 200, wait=False)


def test_a_segment_that_compaction_has_emptied_needs_no_rebuild(tmp_path: Path) -> None:
    """It has no index files. With a rebuild a restart of a coordinator would wait for a thread."""
    log = DiskLog.open(tmp_path / "t-0", replace(CONFIG, compact=True))
    fill(log, 30, key=b"k")
    for run in log.compaction(0, force=True):
        run()
    log.close()
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(clean=True))
    assert not (log.path / f"{0:020d}.index").exists()
    loads: tuple[object, ...] = ()
    try:
        again.read(0, 200, wait=False)
    except NotCached as cold:
        loads = cold.loads
    assert not [load for load in loads if isinstance(load, IndexRebuild)]


def lose_indexes(log: DiskLog) -> None:
    for path in [*log.path.glob("*.index"), *log.path.glob("*.timeindex")]:
        path.unlink()


@pytest.mark.parametrize("wait", [True, False])
def test_rebuilt_indexes_count_as_loaded(tmp_path: Path, wait: bool) -> None:
    """Else a disk that has lost all index files would bring all indexes into memory for good."""
    log, _ = without_indexes(tmp_path)
    lose_indexes(log)
    log.share(OpenFiles(), LoadedIndexes(limit=2), log._folder.trash)
    for offset in range(log.log_end_offset):
        try:
            log.read(offset, 200, wait=wait)
        except NotCached as cold:
            for rebuild in cold.loads:
                rebuild()
            assert log.read(offset, 200, wait=False)
    sealed = log._segments[:-1]
    assert len(sealed) > 3
    assert len([segment for segment in sealed if segment._offsets is not None]) <= 2


def test_a_rebuild_from_before_a_truncation_is_not_taken(tmp_path: Path) -> None:
    log, _ = without_indexes(tmp_path)
    with pytest.raises(NotCached) as cold:
        log.read(2, 200, wait=False)
    load(cold)
    log.truncate(3)
    log.append(values(2, timestamp=5000), leader_epoch=0, now_ms=0)  # a batch of another size: other positions
    fill(log, 30)
    lose_indexes(log)
    with pytest.raises(NotCached) as again:
        log.offset_at(5000, wait=False)
    for rebuild in again.value.loads:
        rebuild()
    found = log.offset_at(5000, wait=False)
    assert found is not None
    assert (found.offset, found.timestamp) == (3, 5000)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_rebuild_that_is_done_holds_no_file_open(tmp_path: Path, is_damaged: bool) -> None:
    """Nobody may come for its result: a client that has asked for the record can be gone."""
    log, _ = without_indexes(tmp_path)
    if is_damaged:
        path = log.path / f"{0:020d}.log"
        path.write_bytes(bytes(path.stat().st_size))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(NotCached) as cold:
        log.read(2, 200, wait=False)
    load(cold)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_read_that_waits_drops_the_rebuild(tmp_path: Path) -> None:
    log, _ = without_indexes(tmp_path)
    with pytest.raises(NotCached) as cold:
        log.read(2, 200, wait=False)
    assert log.read(2, 200)
    load(cold)
    assert log._segments[0]._rebuild is None
    assert log.read(2, 200, wait=False)


def damage(path: Path, base_offset: bytes, count: int) -> None:
    """Overwrite the base offset, which no checksum covers, of the batch number `count` and all after it."""
    data = bytearray(path.read_bytes())
    for position, header in list(headers(bytes(data)))[count:]:
        assert header.base_offset >= count
        data[position : position + 8] = base_offset
    path.write_bytes(data)


@pytest.mark.parametrize("base_offset", [1 << 62, 1 << 33, (1 << 63) - 1, 0, -5])
def test_offsets_that_no_index_can_hold_are_a_damaged_log(tmp_path: Path, base_offset: int) -> None:
    log, _ = without_indexes(tmp_path)
    damage(log.path / f"{0:020d}.log", base_offset.to_bytes(8, "big", signed=True), 2)
    with pytest.raises(NotCached) as cold:
        log.read(2, 200, wait=False)
    load(cold)
    with pytest.raises(DamagedLog):
        log.read(2, 200, wait=False)
    with pytest.raises(DamagedLog):
        log.read(2, 200)


def test_a_rebuild_that_fails_leaves_no_half_of_an_index(tmp_path: Path) -> None:
    """With it the next read would find the records behind the damage in the next segment: it would skip them."""
    log, _ = without_indexes(tmp_path)
    damage(log.path / f"{0:020d}.log", (1 << 62).to_bytes(8, "big"), 2)
    for _ in range(2):
        with pytest.raises(DamagedLog):
            log.read(3, 200)
