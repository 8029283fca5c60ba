"""The directory of all logs: whose it is, who holds it, what its checkpoints remember, how logs are deleted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import Appended, LogConfig, StorageFailed
from rota.coordinator.log.directory import (
    CLEAN_FILE,
    DirectoryInUse,
    LogDirectory,
    WrongDirectory,
)
from rota.coordinator.log.disk import DiskLog

from .log_kit import fill, flush_rolled, offsets, values

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100, retention_ms=None)


def opened(path: Path) -> LogDirectory:
    return LogDirectory(path, node_id=1, cluster_id="c")


def test_everything_comes_back_after_a_stop_in_order(tmp_path: Path) -> None:
    directory = opened(tmp_path / "data")
    for partition in range(3):
        fill(directory.open_log("with-dash", partition, CONFIG), 5 * partition)
    directory.close()
    assert (tmp_path / "data" / CLEAN_FILE).exists()
    again = opened(tmp_path / "data")
    assert not (tmp_path / "data" / CLEAN_FILE).exists(), "the next stop may be another"
    assert again.partitions() == [("with-dash", 0), ("with-dash", 1), ("with-dash", 2)]
    assert [again.open_log("with-dash", n, CONFIG).log_end_offset for n in range(3)] == [0, 5, 10]
    assert again.high_watermarks == {("with-dash", 0): 0, ("with-dash", 1): 5, ("with-dash", 2): 10}
    again.close()


def test_a_crash_after_retention_took_everything_gives_no_offset_twice(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, replace(CONFIG, retention_ms=1))
    fill(log, 12)
    directory.checkpoint()
    log.retain(1_000_000)
    directory.abandon()  # before the next checkpoint
    again = opened(tmp_path).open_log("t", 0, CONFIG)
    assert (again.log_start_offset, again.log_end_offset) == (12, 12)
    assert again.append(values(1), leader_epoch=0, now_ms=0) == Appended(12, 12)


def test_a_stop_in_order_is_not_scanned_and_another_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned = []
    monkeypatch.setattr("rota.coordinator.log.disk.recover", lambda segment, *_: scanned.append(segment) or 0)  # type: ignore[func-returns-value]
    directory = opened(tmp_path)
    fill(directory.open_log("t", 0, CONFIG), 10)
    directory.close()
    again = opened(tmp_path)
    again.open_log("t", 0, CONFIG)
    assert not scanned
    again.abandon()
    opened(tmp_path).open_log("t", 0, CONFIG)
    assert scanned


def test_an_unclean_start_scans_from_the_recovery_point(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    flush_rolled(log)
    directory.note()
    directory.checkpoint()
    assert log.recovery_point == log._active.base_offset
    directory.abandon()
    first = min((tmp_path / "t-0").glob("*.log"))
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    again = opened(tmp_path)
    assert again.open_log("t", 0, CONFIG).log_end_offset == 30
    assert again.high_watermarks == {("t", 0): 30}


def test_two_brokers_never_run_on_one_directory(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    code = (
        "import sys; from pathlib import Path; from rota.coordinator.log.directory import *\n"
        "try: LogDirectory(Path(sys.argv[1]), node_id=1)\n"
        "except DirectoryInUse as error: print('refused:', error)"
    )
    other = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert other.stdout == f"refused: another broker runs on {tmp_path}: .lock is held\n"
    with pytest.raises(DirectoryInUse):
        opened(tmp_path)
    directory.close()
    opened(tmp_path).close()


def test_whose_it_is(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path, node_id=1)
    assert directory.cluster_id == ""
    directory.identify("mine")
    directory.identify("mine")
    with pytest.raises(WrongDirectory, match="cluster mine"):
        directory.identify("other")
    directory.close()
    with pytest.raises(WrongDirectory, match="node 1, this is node 2"):
        LogDirectory(tmp_path, node_id=2)
    with pytest.raises(WrongDirectory, match="cluster mine"):
        LogDirectory(tmp_path, node_id=1, cluster_id="other")
    assert LogDirectory(tmp_path, node_id=1).cluster_id == "mine"


def test_deleted_records_stay_deleted_through_a_crash(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 10)
    log.delete_before(7)
    directory.abandon()
    log = opened(tmp_path).open_log("t", 0, CONFIG)
    assert (log.log_start_offset, offsets(log)) == (7, [7, 8, 9])


def test_a_deleted_log_goes_in_two_steps(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    topic = "t" * 249
    for partition in range(2):
        fill(directory.open_log(topic, partition, CONFIG), 3)
    directory.checkpoint()
    for log in list(directory._logs.values()):
        log.destroy()
    names = [entry.name for entry in os.scandir(tmp_path) if entry.is_dir()]
    assert len(names) == 2
    assert all(name.endswith("-delete") and len(name) <= 255 for name in names)
    assert directory.partitions() == []
    assert directory.remove_deleted() == 2
    assert not [entry for entry in os.scandir(tmp_path) if entry.is_dir()]
    directory.close()


def test_a_log_deleted_while_checkpoints_are_written_leaves_nothing_behind(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 10)
    log.delete_before(7)
    directory.note()
    log.destroy()  # before the thread that writes the checkpoints gets to it
    directory.checkpoint()
    directory.abandon()
    again = opened(tmp_path).open_log("t", 0, CONFIG)
    assert (again.log_start_offset, again.log_end_offset) == (0, 0)


def test_a_new_log_has_nothing_of_an_old_one_of_its_name(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG, topic_id=b"1" * 16)
    fill(log, 10)
    log.delete_before(7)
    directory.note()
    directory.checkpoint()
    log.destroy()
    directory.abandon()  # the checkpoints still speak of the old log
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG, topic_id=b"2" * 16)
    assert log.append(values(1), leader_epoch=0, now_ms=0) == Appended(0, 0)


def test_a_log_of_another_topic_of_this_name_is_never_shown(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    fill(directory.open_log("t", 0, CONFIG, topic_id=b"1" * 16), 10)
    directory.close()
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG, topic_id=b"2" * 16)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    assert directory.remove_deleted() == 1
    log.close()
    (tmp_path / "t-0" / "partition.metadata").write_bytes(b"")
    fill(directory.open_log("t", 0, CONFIG, topic_id=b"2" * 16), 4)
    directory.close()
    directory = opened(tmp_path)
    assert directory.open_log("t", 0, CONFIG, topic_id=b"2" * 16).log_end_offset == 4


def test_a_log_may_be_closed_and_opened_again(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 10)
    log.delete_before(4)
    log.close()
    log = directory.open_log("t", 0, CONFIG)
    assert (log.log_start_offset, log.log_end_offset, log.cut_bytes) == (4, 10, 0)


def test_damaged_checkpoints_only_cost_time(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    fill(directory.open_log("t", 0, CONFIG), 10)
    directory.close()
    for file in tmp_path.glob("*-checkpoint"):
        file.write_text("rubbish")
    assert opened(tmp_path).open_log("t", 0, CONFIG).log_end_offset == 10


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageFailed, match="cannot open the log directory"):
        opened(tmp_path / "file")


def test_a_log_without_an_owner_is_a_log(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    fill(log, 2)
    log.delete_before(1)
    log.close()


def test_one_log_that_cannot_be_closed_spoils_the_marker_but_no_other_log(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    logs = [directory.open_log("t", partition, CONFIG) for partition in range(3)]
    for log in logs:
        fill(log, 3)
    shutil.rmtree(logs[1].path)
    with pytest.raises(StorageFailed):
        directory.close()
    assert not (tmp_path / CLEAN_FILE).exists()
    assert [(tmp_path / f"t-{n}" / "00000000000000000003.snapshot").exists() for n in (0, 2)] == [True, True]
    opened(tmp_path).close()


def test_a_failed_log_is_recovered_when_it_is_opened_again(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 3)
    file = tmp_path / "t-0" / "00000000000000000000.log"
    os.truncate(file, file.stat().st_size - 1)
    again = directory.open_log("t", 0, CONFIG)
    assert (again.cut_bytes > 0, again.log_end_offset) == (True, 2)
    directory.close()


def test_what_comes_after_a_truncation_was_never_flushed(tmp_path: Path) -> None:
    """Law L2. The checkpoint of before the truncation does not vouch for other records at the same offsets."""
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    log.flush()
    directory.note()
    directory.checkpoint()
    log.truncate(3)
    fill(log, 27)
    directory.abandon()
    damaged = sorted((tmp_path / "t-0").glob("*.log"))[3]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    assert opened(tmp_path).open_log("t", 0, CONFIG).log_end_offset == 11


def test_high_watermarks_are_written_down_and_offered_to_the_next_start(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for partition in range(3):
        fill(directory.open_log("t", partition, CONFIG), 10)
    directory.note({("t", 0): 4, ("t", 1): 11})
    directory.close()
    assert "t 0 4" in (tmp_path / "replication-offset-checkpoint").read_text()
    directory = opened(tmp_path)
    logs = [directory.open_log("t", partition, CONFIG) for partition in range(3)]
    assert [log.high_watermark_checkpoint for log in logs] == [4, 10, 0]
    directory.close()


def test_a_log_that_cannot_be_opened_spoils_the_marker_until_it_is_deleted(tmp_path: Path) -> None:
    """Law A5."""
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    directory.open_log("t", 0, CONFIG).close()
    system.fail("replace", "partition.metadata")
    with pytest.raises(StorageFailed):
        directory.open_log("t", 1, CONFIG, topic_id=b"1" * 16)
    with pytest.raises(StorageFailed, match="could not be recovered"):
        directory.close()
    assert not (tmp_path / CLEAN_FILE).exists()
    system.clear()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    system.fail("replace", "partition.metadata")
    with pytest.raises(StorageFailed):
        directory.open_log("t", 1, CONFIG, topic_id=b"1" * 16)
    system.clear()
    directory.remove_log("t", 1)
    directory.close()
    assert (tmp_path / CLEAN_FILE).exists()
