"""The files of one partition: Kafka's names, swaps that survive a stop at any step, indexes on disk."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.epochs import EPOCHS_FILE
from rota.coordinator.log.files import FileSystem
from rota.coordinator.log.folder import FileSnapshots, Folder
from rota.coordinator.log.index_files import LoadedIndexes, file_name
from rota.coordinator.log.store import FileStore, OpenFiles

from .log_kit import batch, fill, flush_rolled, held

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)


class PowerCut(BaseException):
    """The machine stops here."""


def test_names_are_kafkas() -> None:
    assert file_name(42, ".log") == "00000000000000000042.log"
    assert file_name((1 << 63) - 1, ".index") == "09223372036854775807.index"


def test_a_closed_log_has_kafkas_files_and_no_others(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 6)
    log.close()
    names = {file.name for file in log.path.iterdir()}
    bases = [0, 3]
    expected = {file_name(base, suffix) for base in bases for suffix in (".log", ".index", ".timeindex")}
    assert names == expected | {file_name(3, ".snapshot"), file_name(6, ".snapshot"), "leader-epoch-checkpoint"}


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    path.mkdir()
    for name in ("notes.txt", "1.log", "0000000000000000000x.log", "00000000000000000007.txnindex"):
        (path / name).write_text("mine")
    log = DiskLog.open(path, CONFIG)
    assert log.segment_count == 1
    log.close()
    assert len(list(path.iterdir())) == 4


def test_names_whose_fsync_failed_are_synced_by_the_next_flush(tmp_path: Path) -> None:
    """Law A5."""
    system = FaultyFiles()
    folder = Folder(tmp_path / "t-0", OpenFiles(system=system), LoadedIndexes())
    folder.open(100)
    folder.create(5, 100, 0)
    system.fail("fsync", "/t-0", times=1)
    with pytest.raises(StorageFailed):
        folder.begin_sync_names().run()
    again = folder.begin_sync_names()
    system.calls.clear()
    again.run()
    assert [call.path for call in system.calls if call.call == "fsync"] == [str(folder.path), str(tmp_path)]
    again.finish()
    system.calls.clear()
    folder.begin_sync_names().run()
    assert system.calls == []


def test_a_name_that_is_made_during_an_fsync_is_synced_by_the_next_flush(tmp_path: Path) -> None:
    system = FaultyFiles()
    folder = Folder(tmp_path / "t-0", OpenFiles(system=system), LoadedIndexes())
    folder.open(100)
    sync = folder.begin_sync_names()
    sync.run()
    folder.create(5, 100, 0)
    sync.finish()
    system.calls.clear()
    folder.begin_sync_names().run()
    assert [call for call in system.calls if call.call == "fsync"]


def test_names_that_were_not_synced_before_a_crash_are_synced_before_records_count_as_flushed(tmp_path: Path) -> None:
    """Law A5. The names of rolled segments and of the folder; the records are recovered and then flushed."""
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 6)
    assert log.segment_count > 1
    log.abandon()
    system = FaultyFiles()
    again = DiskLog.open(log.path, CONFIG, files=OpenFiles(system=system))
    again.flush()
    assert again.recovery_point == 6
    synced = {call.path for call in system.calls if call.call == "fsync"}
    assert {str(log.path), str(tmp_path)} <= synced


def interrupted(path: Path, at: int, work: Callable[[], object]) -> bool:
    """Do the work, but stop the machine before the `at`th change of a name. Whether it stopped."""
    steps = 0

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == at:
                raise PowerCut
            return real(*args, **kwargs)

        return step

    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(os, name, counting(getattr(os, name)))
        try:
            work()
        except PowerCut:
            return True
    return False


@pytest.mark.parametrize("clean", [True, False])
def test_compaction_may_stop_before_any_step(tmp_path: Path, clean: bool) -> None:
    source = DiskLog.open(tmp_path / "source-0", CONFIG)
    for number in range(24):
        source.append(batch((b"key-%d" % (number % 4), b"%0100d" % number)), leader_epoch=0, now_ms=0)
    source.close()
    expected, end = {record.key: record for record in held(DiskLog.open(source.path, CONFIG))}, 24
    at, stopped = 0, True
    while stopped:
        at += 1
        path = Path(shutil.copytree(source.path, tmp_path / f"t-{at}"))
        log = DiskLog.open(path, replace(CONFIG, compact=True), RecoveryCheckpoint(clean=True))
        stopped = interrupted(path, at, lambda log=log: log.compact(0, force=True))  # type: ignore[misc]
        again = DiskLog.open(path, CONFIG, RecoveryCheckpoint(clean=clean, recovery_point=end))
        assert {record.key: record for record in held(again)} == expected
        assert again.log_end_offset == end
        again.close()
        assert not [file.name for file in path.iterdir() if file.suffix in (".swap", ".cleaned", ".deleted", ".tmp")]
    assert at > 10


@pytest.mark.parametrize("damage", [None, b"", b"rubbish", bytes(80)])
def test_a_missing_or_damaged_index_is_rebuilt(tmp_path: Path, damage: bytes | None) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 12, timestamps=range(12))
    log.close()
    for file in log.path.glob("*index"):
        if damage is None:
            file.unlink()
        else:
            file.write_bytes(damage)
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(clean=True))
    assert [record.offset for record in held(again)] == list(range(12))
    for timestamp in range(12):
        found = again.offset_at(timestamp)
        assert found is not None
        assert found.offset == timestamp


def test_snapshots_are_files(tmp_path: Path) -> None:
    snapshots = FileSnapshots(tmp_path, [], FileSystem(), FileSystem().unlink)
    snapshots.save(20, b"b")
    snapshots.save(3, b"a")
    assert (snapshots.offsets(), snapshots.load(3), snapshots.load(99)) == ([3, 20], b"a", b"")
    snapshots.remove(20)
    snapshots.remove(99)
    assert [file.name for file in tmp_path.iterdir()] == [file_name(3, ".snapshot")]


def test_a_refusing_medium_is_storage_failed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for opened in (tmp_path / "file", tmp_path / "no" / "where"):
        with pytest.raises(StorageFailed):
            Folder(opened, OpenFiles(), LoadedIndexes()).open(100)
    folder = Folder(tmp_path / "no" / "where", OpenFiles(), LoadedIndexes())
    folder.create(0, 100, 0)
    with pytest.raises(StorageFailed):
        folder.save_epochs(folder.load_epochs())
    with pytest.raises(StorageFailed):
        folder.stage(0, 100)
    with pytest.raises(StorageFailed):
        folder.snapshots.save(5, b"")
    with pytest.raises(StorageFailed):
        Folder(tmp_path / "file" / "x", OpenFiles(), LoadedIndexes()).open(100)


def test_a_damaged_epoch_file_reads_as_none(tmp_path: Path) -> None:
    (tmp_path / EPOCHS_FILE).write_text("rubbish")
    assert len(Folder(tmp_path, OpenFiles(), LoadedIndexes()).load_epochs()) == 0


def test_many_segments_need_few_descriptors(tmp_path: Path) -> None:
    gc.collect()  # forgotten logs of other tests give their descriptors back now, not in between
    files = OpenFiles(limit=4)
    before = len(os.listdir("/proc/self/fd"))
    log = DiskLog.open(tmp_path / "t-0", CONFIG, files=files)
    fill(log, 100)
    assert log.segment_count > 30
    flush_rolled(log)
    assert [record.offset for record in held(log)] == list(range(100))
    assert len(os.listdir("/proc/self/fd")) <= before + 5  # read and written
    log.close()
    files.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert isinstance(log._active.store, FileStore)
