"""The directory of all logs: whose it is, who holds it, what its checkpoints remember, how logs are deleted."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log import boot, disk
from rota.coordinator.log.checkpoints import UNRECOVERED_FILE
from rota.coordinator.log.contract import Appended, LogConfig, StorageFailed
from rota.coordinator.log.directory import (
    CLEAN_FILE,
    REGISTRATION_FILE,
    DirectoryInUse,
    LogDirectory,
    WrongDirectory,
)
from rota.coordinator.log.disk import DiskLog

from .log_kit import batch, fill, flush_rolled, offsets, values

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100, retention_ms=None)


def opened(path: Path) -> LogDirectory:
    return LogDirectory(path, node_id=1, cluster_id="c")


def test_after_a_clean_stop_all_logs_are_opened_in_order(tmp_path: Path) -> None:
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


def test_a_directory_of_another_cluster_or_node_is_refused(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\0", b"version=1\n"])
def test_damaged_meta_properties_are_called_damaged(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(damage)
    with pytest.raises(StorageFailed, match=r"is damaged: it has no node\.id; restore") as failure:
        LogDirectory(tmp_path, node_id=1)
    assert not isinstance(failure.value, WrongDirectory)


def test_deleted_records_stay_deleted_through_a_crash(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 10)
    log.delete_before(7)
    directory.abandon()
    log = opened(tmp_path).open_log("t", 0, CONFIG)
    assert (log.log_start_offset, offsets(log)) == (7, [7, 8, 9])


def test_a_deleted_log_is_renamed_then_removed(tmp_path: Path) -> None:
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


def test_a_recreated_log_has_no_checkpoints_of_the_deleted_one(tmp_path: Path) -> None:
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


def test_a11_topics_that_differ_only_in_case_never_share_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS, by links that no listing shows: `foo-0` leads to `Foo-0`, and `.LOCK` to `.lock`."""
    assert not opened(tmp_path / "of_linux").ignores_case
    opened(tmp_path).close()
    (tmp_path / ".LOCK").symlink_to(".lock")
    (tmp_path / "foo-0").symlink_to("Foo-0")
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [name for name in listed(path) if name not in (".LOCK", "foo-0")])
    directory = opened(tmp_path)
    assert directory.ignores_case
    fill(directory.open_log("Foo", 0, CONFIG, topic_id=b"1" * 16), 10)
    with pytest.raises(StorageFailed, match="is the folder Foo-0, of another topic: its file system does not distin"):
        directory.open_log("foo", 0, CONFIG, topic_id=b"2" * 16)
    directory.remove_log("foo", 0)
    assert (tmp_path / "foo-0").is_symlink()
    directory.close()
    assert opened(tmp_path).open_log("Foo", 0, CONFIG, topic_id=b"1" * 16).log_end_offset == 10


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


def test_a_log_that_cannot_be_closed_prevents_the_clean_shutdown_marker_but_affects_no_other_log(
    tmp_path: Path,
) -> None:
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


def test_records_appended_after_a_truncation_are_unflushed(tmp_path: Path) -> None:
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


def run_that_opens(path: Path, *partitions: int) -> dict[int, int]:
    """Open these logs and stop in order. Returns the log end offsets."""
    directory = opened(path)
    ends = {number: directory.open_log("t", number, CONFIG).log_end_offset for number in partitions}
    directory.close()
    return ends


def crash_with_a_torn_log(path: Path) -> None:
    """Three logs of 30 records; the last batch of `t-0` is damaged, and only `t-1` was flushed."""
    directory = opened(path)
    logs = [directory.open_log("t", number, CONFIG) for number in range(3)]
    for log in logs:
        fill(log, 30)
    logs[1].flush()
    directory.note()
    directory.checkpoint()
    directory.abandon()
    last = max((path / "t-0").glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1] + b"?")


def test_a_clean_stop_does_not_vouch_for_a_log_that_its_run_never_opened(tmp_path: Path) -> None:
    """Law A6. The replica of `t-0` moves away during a crash and comes back two clean runs later."""
    crash_with_a_torn_log(tmp_path)
    assert run_that_opens(tmp_path, 1, 2) == {1: 30, 2: 30}
    assert (tmp_path / CLEAN_FILE).exists()
    assert run_that_opens(tmp_path, 1) == {1: 30}
    assert run_that_opens(tmp_path, 0) == {0: 29}
    assert (tmp_path / UNRECOVERED_FILE).read_text() == "0\n0\n"


def test_a_clean_log_stays_clean_through_runs_that_do_not_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_with_a_torn_log(tmp_path)
    run_that_opens(tmp_path, 0, 1, 2)
    run_that_opens(tmp_path, 1)
    monkeypatch.setattr(disk, "recover", lambda *_: pytest.fail("it was closed in order"))
    assert run_that_opens(tmp_path, 0, 2) == {0: 29, 2: 30}


@pytest.mark.parametrize("content", [b"", b"\xff", b"0\n1\n"])
def test_a_damaged_list_of_unrecovered_logs_makes_all_logs_unrecovered(tmp_path: Path, content: bytes) -> None:
    crash_with_a_torn_log(tmp_path)
    run_that_opens(tmp_path, 1, 2)
    (tmp_path / UNRECOVERED_FILE).write_bytes(content)
    assert run_that_opens(tmp_path, 0) == {0: 29}


def test_the_list_of_unrecovered_logs_is_on_the_medium_before_the_marker(tmp_path: Path) -> None:
    crash_with_a_torn_log(tmp_path)
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    system.fail("fsync", UNRECOVERED_FILE)
    with pytest.raises(StorageFailed):
        directory.close()
    assert not (tmp_path / CLEAN_FILE).exists()


BEGIN_TRUNCATIONS: list[Callable[[DiskLog], Callable[[], None] | None]] = [
    lambda log: log.begin_truncate(13),
    lambda log: log.begin_truncate(1),
    lambda log: log.begin_truncate_fully_and_start_at(3),
    lambda log: log.begin_truncate_fully_and_start_at(70),
]


@pytest.mark.parametrize("begin", BEGIN_TRUNCATIONS)
def test_a_truncation_waits_for_no_fsync_and_is_written_before_files_change(
    tmp_path: Path, begin: Callable[[DiskLog], Callable[[], None] | None]
) -> None:
    """Law L6."""
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    log.flush()
    directory.note()
    directory.checkpoint()
    system.calls.clear()
    write = begin(log)
    assert write is not None
    assert system.calls == []
    assert log.log_end_offset == 30
    write()
    assert not [call for call in system.calls if "/t-0" in call.path]
    system.calls.clear()
    log.finish_truncate()
    assert not [call for call in system.calls if call.call == "fsync"]
    assert log.log_end_offset in (13, 1, 3, 70)


@pytest.mark.parametrize("begin", BEGIN_TRUNCATIONS)
def test_a_truncation_lowers_the_recovery_point_on_the_medium_and_no_flush_raises_it(
    tmp_path: Path, begin: Callable[[DiskLog], Callable[[], None] | None]
) -> None:
    """Law L6."""
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    running = log.begin_flush()
    write = begin(log)
    assert write is not None
    running.run()
    running.finish()
    log.flush()
    directory.note()
    write()
    log.finish_truncate()
    line = (tmp_path / "recovery-point-offset-checkpoint").read_text().splitlines()[-1]
    assert int(line.split()[-1]) <= log.log_end_offset
    fill(log, 5)
    log.flush()
    assert log.recovery_point == log.log_end_offset


def test_the_writes_of_truncations_are_equal_and_one_serves_all_logs(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    logs = [directory.open_log("t", number, CONFIG) for number in range(3)]
    for log in logs:
        fill(log, 30)
        log.flush()
    (write,) = {log.begin_truncate(4) for log in logs}
    assert write is not None
    write()
    text = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert [int(line.split()[-1]) <= 4 for line in text.splitlines()[2:]] == [True] * 3


def test_a_truncation_that_cannot_be_written_removes_nothing(tmp_path: Path) -> None:
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    system.fail("fsync", "recovery-point")
    with pytest.raises(StorageFailed):
        log.truncate(3)
    assert log.failure is not None
    system.clear()
    directory.abandon()
    assert opened(tmp_path).open_log("t", 0, CONFIG).log_end_offset == 30


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("offset", [13, 1])
def test_a_cancelled_truncation_leaves_the_log_as_it_was(tmp_path: Path, offset: int, is_written: bool) -> None:
    """Law RF5, L1. Also when it is on the medium: recovery then reads more than it has to."""
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    log.flush()
    log.begin_delete_before(3)
    write = log.begin_truncate(offset)
    assert write is not None
    if is_written:
        write()
    write_start = log.cancel_truncate()
    assert (write_start is not None) is (offset < 3)
    for late in (write_start, None if is_written else write):  # the write may run in its thread still
        if late is not None:
            late()
    assert (log.recovery_point, log.log_start_offset, log.log_end_offset) == (30, 3, 30)
    log.finish_truncate()  # does nothing
    fill(log, 5)
    directory.abandon()
    again = opened(tmp_path).open_log("t", 0, CONFIG)
    assert again.log_end_offset == 35
    assert offsets(again) == list(range(3, 35)), "a record that was deleted does not come back"


def high_watermark_after(directory: LogDirectory) -> int:
    """Crash after a checkpoint, and return the high watermark of `t-0` that the next start finds."""
    directory.checkpoint()
    directory.abandon()
    again = opened(directory.path)
    found = again.open_log("t", 0, CONFIG).high_watermark_checkpoint
    again.abandon()
    return found


@pytest.mark.parametrize("noted", [None, 25])
def test_a_cancelled_truncation_leaves_the_checkpointed_high_watermark(tmp_path: Path, noted: int | None) -> None:
    """Law L6, L1. `noted`: replication went on before the truncation was cancelled."""
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    directory.note({("t", 0): 20})
    write = log.begin_truncate(13)
    assert write is not None
    write()
    if noted is not None:
        directory.note({("t", 0): noted})
    directory.note({})
    log.cancel_truncate()
    assert high_watermark_after(directory) == (noted or 20)


def test_no_checkpoint_during_a_truncation_raises_the_high_watermark_again(tmp_path: Path) -> None:
    """Law L6. What is appended behind the truncation is not committed."""
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    directory.note({("t", 0): 30})
    write = log.begin_truncate(13)
    assert write is not None
    write()
    directory.note({("t", 0): 30})
    log.finish_truncate()
    fill(log, 30)
    assert high_watermark_after(directory) == 13


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("offset", [3, 70])
def test_a_cancelled_truncation_of_all_records_is_finished_by_a_reopening(
    tmp_path: Path, offset: int, is_written: bool
) -> None:
    """Law RF5, L1. The medium may have the new start: what is appended before it would be lost by a crash."""
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    log.flush()
    write = log.begin_truncate_fully_and_start_at(offset)
    assert write is not None
    if is_written:
        write()
    with pytest.raises(StorageFailed, match="interrupted"):
        log.cancel_truncate()
    with pytest.raises(StorageFailed, match="has to be recovered"):
        fill(log, 1)
    again = directory.open_log("t", 0, CONFIG)
    fill(again, 2)
    assert (again.log_start_offset, again.log_end_offset) == (offset, max(offset, 30) + 2)
    directory.abandon()
    assert opened(tmp_path).open_log("t", 0, CONFIG).log_end_offset == max(offset, 30) + 2


@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_opening_waits_for_files_that_a_thread_removes(tmp_path: Path, is_deleted: bool) -> None:
    """Law RF8. The log is reopened, or its topic deleted and created again, while a truncation changes files."""
    system, go_on = FaultyFiles(), threading.Event()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    log.begin_truncate(1)
    change_files = log.begin_remove()
    assert change_files is not None
    fault = system.fail("replace", ".log.", times=1, blocks=go_on)
    removing = threading.Thread(target=change_files)
    removing.start()
    while not fault.hits:
        os.sched_yield()
    if is_deleted:
        directory.remove_log("t", 0)
    else:
        with pytest.raises(StorageFailed, match="interrupted"):
            log.cancel_truncate()
    opening = directory.begin_open("t", 0, CONFIG)
    opener = threading.Thread(target=opening.run)
    opener.start()
    opener.join(0.1)  # time for one that does not wait
    go_on.set()
    removing.join()
    opener.join()
    again = opening.finish()
    threads = [call.thread for call in system.calls if "/t-0" in call.path]
    last_removed = len(threads) - 1 - threads[::-1].index(removing.ident or 0)
    assert opener.ident not in threads[:last_removed]
    assert again.log_end_offset == (0 if is_deleted else 27), "the last segment was renamed just then"
    directory.close()


@pytest.mark.parametrize("is_full", [False, True])
def test_a_clean_stop_while_files_are_removed_waits_for_their_end(tmp_path: Path, is_full: bool) -> None:
    """Law A5, L6."""
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    _ = log.begin_truncate_fully_and_start_at(13) if is_full else log.begin_truncate(13)
    assert log.begin_remove() is not None
    directory.close()
    again = opened(tmp_path).open_log("t", 0, CONFIG)
    assert offsets(again) == ([] if is_full else list(range(13)))
    assert again.log_end_offset == 13


@pytest.mark.parametrize("is_full", [False, True])
def test_a_clean_stop_during_a_truncation_vouches_for_synced_records_only(tmp_path: Path, is_full: bool) -> None:
    """Law A5, L2. A stop cancels the task that runs the truncation."""
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    begin = log.begin_truncate_fully_and_start_at if is_full else log.begin_truncate
    assert begin(13) is not None
    directory.close()
    again = opened(tmp_path)
    assert again.was_clean
    kept = again.open_log("t", 0, CONFIG)
    synced = {Path(call.path).name for call in system.calls if call.call == "fsync"}
    assert {file.name for file in kept.path.glob("*.log") if file.stat().st_size} <= synced
    assert (kept.log_start_offset, kept.log_end_offset) == ((13, 13) if is_full else (0, 30))


def test_retention_waits_for_the_end_of_a_truncation(tmp_path: Path) -> None:
    log = opened(tmp_path).open_log("t", 0, replace(CONFIG, retention_ms=1))
    fill(log, 30)
    log.begin_truncate(13)
    assert log.retain(1_000_000) == 0
    log.finish_truncate()
    assert log.retain(1_000_000) > 0
    assert (log.log_start_offset, log.log_end_offset) == (13, 13)


def test_a_truncation_that_meets_damage_fails(tmp_path: Path) -> None:
    log = opened(tmp_path).open_log("t", 0, CONFIG)
    fill(log, 3)
    log.flush()
    path = log.path / "00000000000000000000.log"
    path.write_bytes(bytes(path.stat().st_size))
    log._active._forget_recent()
    with pytest.raises(StorageFailed, match="damaged"):
        log.truncate(2)
    assert log.failure is not None


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (lambda log: log.begin_truncate_fully_and_start_at(70), 70),
        (lambda log: log.begin_truncate_fully_and_start_at(3), 3),
        (lambda log: log.begin_truncate(13), 13),
    ],
)
def test_a_crash_between_two_segments_gives_no_offset_twice(
    tmp_path: Path, begin: Callable[[DiskLog], Callable[[], None] | None], end: int
) -> None:
    """Law L6. Every segment is gone, and the new one is not there yet."""
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, CONFIG)
    log.truncate_fully_and_start_at(20)
    fill(log, 30)
    log.flush()
    directory.note()
    directory.checkpoint()
    write = begin(log)
    assert write is not None
    write()
    system.fail("open", ".log")
    with pytest.raises(StorageFailed):
        log.finish_truncate()
    assert not list((tmp_path / "t-0").glob("*.log"))
    directory.abandon()
    again = opened(tmp_path).open_log("t", 0, CONFIG)
    assert (again.log_start_offset, again.log_end_offset) == (end, end)


def test_a_crash_while_an_empty_segment_is_replaced_gives_no_offset_twice(tmp_path: Path) -> None:
    """Law L6. Retention has emptied the log, and a follower gets a batch that the empty segment cannot hold."""
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, replace(CONFIG, retention_ms=1))
    fill(log, 12)
    log.retain(1_000_000)
    system.fail("open", ".log")
    with pytest.raises(StorageFailed):
        log.append_as_follower(values(1, base_offset=1 << 33), leader_epoch=0)
    directory.abandon()
    assert opened(tmp_path).open_log("t", 0, CONFIG).log_end_offset == 12


def test_a_crash_while_a_lost_log_starts_again_gives_no_offset_twice(tmp_path: Path) -> None:
    """Law L6. The log start is known to the running broker, and not yet on the medium."""
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 30)
    log.begin_delete_before(30)
    os.truncate(tmp_path / "t-0" / "00000000000000000000.log", 300)
    system.fail("open", "0030.log")
    with pytest.raises(StorageFailed):
        directory.open_log("t", 0, CONFIG)
    directory.abandon()
    assert opened(tmp_path).open_log("t", 0, CONFIG).log_end_offset > 0


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


class FilesThatRun(FaultyFiles):
    """Calls `on_unlink` once, after the next unlink of a segment: what another thread does meanwhile."""

    __slots__ = ("on_unlink",)

    def __init__(self) -> None:
        super().__init__()
        self.on_unlink: Callable[[], object] | None = None

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        if path.suffix == ".log" and self.on_unlink is not None:
            run, self.on_unlink = self.on_unlink, None
            run()


def test_a_compaction_of_a_failed_log_ends_while_its_recovery_runs(tmp_path: Path) -> None:
    """Law L1. The recovery completes the swap: nobody removes the new segment while it removes the old ones."""
    system = FilesThatRun()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, replace(CONFIG, compact=True))
    for number in range(30):
        log.append(batch((b"%d" % number, bytes(100))), leader_epoch=0, now_ms=0)
    slices = log.compaction(0, force=True)
    for run in slices:
        run()
        if list(log.path.glob("*.log.swap")):
            break
    system.fail("pwrite", "/t-0/", times=1)
    with pytest.raises(StorageFailed):
        fill(log, 1, key=b"k")
    opening = directory.begin_open("t", 0, CONFIG)
    system.on_unlink = slices.close
    opening.run()
    assert system.on_unlink is None
    assert offsets(opening.finish()) == [*range(30)]
    directory.close()


def test_a_log_that_was_opened_again_leaves_its_files_to_its_successor(tmp_path: Path) -> None:
    """Also when only a read had failed."""
    directory = opened(tmp_path)
    log = directory.open_log("t", 0, CONFIG)
    directory.open_log("t", 0, CONFIG)
    with pytest.raises(StorageFailed, match="has to be recovered"):
        log.truncate_fully_and_start_at(3)
    directory.close()


class LostPages(FaultyFiles):
    """The medium has only the first `medium_bytes` of a file, the page cache has all of it."""

    __slots__ = ("medium_bytes",)

    def __init__(self) -> None:
        super().__init__()
        self.medium_bytes = dict[str, int]()

    def drop_cached(self, fd: int) -> None:
        size_bytes = self.medium_bytes.pop(self._paths[fd], None)
        if size_bytes is not None:
            os.truncate(self._paths[fd], size_bytes)


def test_a_restart_after_a_failed_fsync_reads_the_medium(tmp_path: Path) -> None:
    """Law A5. The page cache outlives the process."""
    system = LostPages()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    log = directory.open_log("t", 0, CONFIG)
    fill(log, 2)
    log.flush()
    system.medium_bytes[str(tmp_path / "t-0" / "00000000000000000000.log")] = log.size_bytes
    fill(log, 1)
    system.fail("fsync", ".log", times=1)
    with pytest.raises(StorageFailed):
        log.flush()
    with pytest.raises(StorageFailed):
        directory.close()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    assert directory.open_log("t", 0, CONFIG).log_end_offset == 2
    directory.close()


def test_a_power_loss_does_not_bring_the_marker_back(tmp_path: Path) -> None:
    """Law A5. It is gone from the medium before a log is opened."""
    opened(tmp_path).close()
    system = FaultyFiles()
    directory = LogDirectory(tmp_path, node_id=1, cluster_id="c", system=system)
    calls = [(call.call, call.path) for call in system.calls]
    assert ("fsync", str(tmp_path)) in calls[calls.index(("unlink", str(tmp_path / CLEAN_FILE))) :]
    directory.abandon()


@pytest.mark.parametrize("name", ["cleaner-offset-checkpoint", "t-0/leader-epoch-checkpoint", "t-0/partition.metadata"])
def test_a_checkpoint_that_is_no_text_is_a_damaged_one(tmp_path: Path, name: str) -> None:
    directory = opened(tmp_path)
    fill(directory.open_log("t", 0, CONFIG, topic_id=bytes(16)), 3)
    directory.close()
    (tmp_path / name).write_bytes(b"\xff\xfe\x80")
    again = opened(tmp_path)
    assert again.open_log("t", 0, CONFIG, topic_id=bytes(16)).log_end_offset == 3
    again.close()


def test_the_id_of_a_directory_is_drawn_once(tmp_path: Path) -> None:
    first = LogDirectory(tmp_path / "a", node_id=1)
    drawn = first.directory_id
    first.identify("cluster")
    first.close()
    again = LogDirectory(tmp_path / "a", node_id=1)
    other = LogDirectory(tmp_path / "b", node_id=1)
    assert again.directory_id == drawn != other.directory_id
    again.close()
    other.close()


def test_a_directory_without_an_id_has_none(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\ncluster.id=c\nnode.id=1\n")
    directory = LogDirectory(tmp_path, node_id=1)
    assert (directory.cluster_id, directory.directory_id) == ("c", "")
    directory.close()


def test_a_crash_of_the_machine_is_distinguished_from_a_crash_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CM5."""
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one")
    directory = opened(tmp_path / "data")
    assert directory.has_possible_data_loss, "an earlier broker of this id may have had another disk"
    fill(directory.open_log("t", 0, CONFIG), 5)
    directory.abandon()
    killed = opened(tmp_path / "data")
    assert not killed.has_possible_data_loss, "what a killed process has written is still there"
    killed.abandon()
    (tmp_path / "boot_id").write_text("two")
    for _ in range(2):  # also when it crashes before the cluster knows
        restarted = LogDirectory(tmp_path / "data", node_id=1)
        assert restarted.has_possible_data_loss
        restarted.abandon()
    restarted = LogDirectory(tmp_path / "data", node_id=1)
    restarted.identify("c")
    restarted.close()
    (tmp_path / "boot_id").write_text("three")
    stopped = opened(tmp_path / "data")
    assert not stopped.has_possible_data_loss, "a stop in order has flushed everything"
    stopped.abandon()


def test_cm5_a_folder_knows_its_last_registration(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    assert directory.registered_epoch == -1
    directory.note_registered(7)
    directory.abandon()
    assert opened(tmp_path).registered_epoch == 7


@pytest.mark.parametrize("content", [b"", b"\xff", b"-7", b"seven"])
def test_a_damaged_file_names_no_registration(tmp_path: Path, content: bytes) -> None:
    (tmp_path / REGISTRATION_FILE).write_bytes(content)
    assert opened(tmp_path).registered_epoch == -1


def test_elr2_the_next_start_knows_which_logs_had_failed_unless_the_stop_was_clean(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    assert directory.failed_logs == frozenset()
    directory.note_failed({("t", 0), ("a-b", 12)})
    directory.abandon()
    killed = opened(tmp_path)
    assert killed.failed_logs == {("t", 0), ("a-b", 12)}
    killed.note_failed(())
    killed.abandon()
    killed = opened(tmp_path)
    assert killed.failed_logs == frozenset()
    killed.note_failed({("t", 0)})
    killed.close()
    stopped = opened(tmp_path)
    assert stopped.failed_logs == frozenset(), "no log is closed in order that has failed"
    stopped.abandon()
    assert opened(tmp_path).failed_logs == frozenset(), "what had failed before a clean stop"


def test_elr2_an_opening_knows_where_the_log_ended_at_least(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    fill(directory.open_log("t", 0, CONFIG), 5)
    directory.note()
    directory.checkpoint()
    directory.abandon()
    segment = tmp_path / "t-0" / f"{0:020}.log"
    os.truncate(segment, segment.stat().st_size - 1)
    again = opened(tmp_path)
    opening = again.begin_open("t", 0, CONFIG)
    opening.run()
    assert opening.log_end_offset < opening.high_watermark_before == 5
    assert again.begin_open("new", 0, CONFIG).high_watermark_before == 0
    again.abandon()


def test_strays_are_renamed_with_their_records_and_not_opened_by_a_later_log_of_that_name(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for partition in range(2):
        fill(directory.open_log("t", partition, CONFIG), 5)
    directory.close()
    again = opened(tmp_path)
    log = again.open_log("t", 0, CONFIG)
    strays = again.set_strays_aside({("t", 0)})
    assert list(strays) == [("t", 1)]
    assert again.partitions() == [("t", 0)]
    assert again.remove_deleted() == 0
    assert (tmp_path / strays["t", 1] / f"{0:020}.log").stat().st_size > 0
    assert strays["t", 1].endswith("-stray")
    assert again.open_log("t", 1, CONFIG).log_end_offset == 0
    assert log.log_end_offset == 5
    assert again.set_strays_aside(set()) == {}, "what is open is no stray"
    again.close()


def test_a_folder_that_holds_no_log_is_no_stray(tmp_path: Path) -> None:
    """A10. `rota serve --brokers` names the data folders of its brokers in this way."""
    other = LogDirectory(tmp_path / "broker-2", node_id=2, cluster_id="c")
    fill(other.open_log("t", 0, CONFIG), 5)
    directory = opened(tmp_path)
    assert directory.set_strays_aside(set()) == {}
    directory.close()
    other.close()
    assert (tmp_path / "broker-2" / "t-0").is_dir()


def test_a_start_that_ends_before_the_cluster_is_known_leaves_the_folder_as_clean_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CM5. The metadata store is away after a reboot; the broker is killed while it waits."""
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one")
    directory = opened(tmp_path / "data")
    fill(directory.open_log("t", 0, CONFIG), 5)
    directory.close()
    (tmp_path / "boot_id").write_text("two")
    for _ in range(2):
        waiting = LogDirectory(tmp_path / "data", node_id=1)
        assert (waiting.was_clean, waiting.has_possible_data_loss) == (True, False)
        waiting.abandon()
    started = LogDirectory(tmp_path / "data", node_id=1)
    started.identify("c")
    started.abandon()
    crashed = LogDirectory(tmp_path / "data", node_id=1)
    assert (crashed.was_clean, crashed.has_possible_data_loss) == (False, False), "it ran in this boot"
    crashed.abandon()


def test_a_start_on_a_full_disk_fails_and_leaves_the_folder_as_clean_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CM5. The machine has started anew, so that the folder is noted as used in this boot."""
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one")
    directory = opened(tmp_path / "data")
    fill(directory.open_log("t", 0, CONFIG), 5)
    directory.close()
    (tmp_path / "boot_id").write_text("two")
    files = FaultyFiles()
    files.fail("pwrite", code=errno.ENOSPC)
    with pytest.raises(StorageFailed, match=r"cannot write .*\.rota_boot"):
        LogDirectory(tmp_path / "data", node_id=1, cluster_id="c", system=files)
    again = opened(tmp_path / "data")
    assert (again.was_clean, again.has_possible_data_loss) == (True, False)
    assert again.open_log("t", 0, CONFIG).log_end_offset == 5
    again.close()


def test_a_start_that_fails_later_closes_the_folder_in_order_if_it_was_closed_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CM5. A broker that has lost power and fails to start does not count as stopped in order."""
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one")
    directory = opened(tmp_path / "data")
    fill(directory.open_log("t", 0, CONFIG), 5)
    directory.close()
    failing = opened(tmp_path / "data")
    failing.open_log("t", 0, CONFIG)
    failing.undo_open()
    (tmp_path / "boot_id").write_text("two")
    again = opened(tmp_path / "data")
    assert (again.was_clean, again.has_possible_data_loss) == (True, False)
    again.abandon()
    (tmp_path / "boot_id").write_text("three")
    lacking = opened(tmp_path / "data")
    assert lacking.has_possible_data_loss
    lacking.undo_open()
    assert not opened(tmp_path / "data").was_clean


@pytest.mark.parametrize(("boot_id", "end"), [("one", 12), ("two", 2)])
def test_only_after_a_loss_of_power_a_hole_ends_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot_id: str, end: int
) -> None:
    """Law L2."""
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one")
    directory = opened(tmp_path / "data")
    fill(directory.open_log("t", 0, CONFIG), 12)
    directory.abandon()
    first = min((tmp_path / "data" / "t-0").glob("*.log"))
    first.write_bytes(first.read_bytes()[: 2 * first.stat().st_size // 3])
    (tmp_path / "boot_id").write_text(boot_id)
    again = opened(tmp_path / "data")
    assert again.open_log("t", 0, CONFIG).log_end_offset == end
    again.close()
