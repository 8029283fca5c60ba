"""Parts of segment files that are sent and not read (F18)."""

from __future__ import annotations

import os
import socket
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles
from tests.unit.coordinator.log.log_kit import values

from rota.coordinator.log import segment as segment_module
from rota.coordinator.log.contract import LogConfig, NotCached, StorageFailed
from rota.coordinator.log.disk import DiskLog
from rota.coordinator.log.file_part import FileCut, FilePart
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.log.segment import PART_BYTES_MIN
from rota.coordinator.log.store import PARTS_MAX, OpenFiles

CONTENT = bytes(range(256)) * 40


def part(path: Path, size_bytes: int = 10_000, position: int = 200, times: int = 1) -> tuple[FilePart, OpenFiles]:
    """A part of a file with CONTENT, and the files that count it."""
    path.write_bytes(CONTENT * times)
    files, fd = OpenFiles(), os.open(path, os.O_RDONLY)
    try:
        return FilePart(files, fd, size_bytes, position), files
    finally:
        os.close(fd)


def test_f18_its_bytes_are_sent_also_when_the_file_is_gone(tmp_path: Path) -> None:
    of_file, files = part(tmp_path / "file")
    (tmp_path / "file").unlink()
    (tmp_path / "file").write_bytes(b"of another file" * 1_000)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert of_file.send(ours.fileno()) == 10_000
        assert theirs.recv(20_000, socket.MSG_WAITALL | socket.MSG_DONTWAIT) == CONTENT[200:10_200]
    assert (len(of_file), files.parts) == (0, 0)


def test_f18_what_is_not_sent_is_read(tmp_path: Path) -> None:
    size_bytes = len(CONTENT) * 400
    of_file, files = part(tmp_path / "file", size_bytes=size_bytes, position=0, times=400)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        sent = of_file.send(ours.fileno())
        with pytest.raises(BlockingIOError):
            of_file.send(ours.fileno())
        assert 0 < sent < size_bytes == sent + len(of_file)
        assert theirs.recv(sent, socket.MSG_WAITALL) + of_file.read() == CONTENT * 400
    assert files.parts == 0


def test_f18_of_a_file_that_is_cut_nothing_else_is_sent(tmp_path: Path) -> None:
    of_file, _ = part(tmp_path / "file")
    os.truncate(tmp_path / "file", 300)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert of_file.send(ours.fileno()) == 100
        with pytest.raises(FileCut):
            of_file.send(ours.fileno())
    with pytest.raises(FileCut):
        of_file.read()


def test_f18_a_file_system_without_sendfile_is_asked_once() -> None:
    """That of processes is one: Linux answers EINVAL."""
    fd, files = os.open("/proc/self/cmdline", os.O_RDONLY), OpenFiles()
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(OSError, match="Invalid argument"):
        FilePart(files, fd, 1, 0).send(ours.fileno())
    os.close(fd)
    assert (files.sends_parts, files.parts) == (False, 0)


def test_n13_a_part_that_is_dropped_leaves_no_open_file(tmp_path: Path) -> None:
    of_file, files = part(tmp_path / "file")
    before = len(os.listdir("/proc/self/fd"))
    del of_file
    assert (files.parts, len(os.listdir("/proc/self/fd"))) == (0, before - 1)


class TestOfALog:
    @pytest.fixture(autouse=True)
    def small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(segment_module, "PART_BYTES_MIN", 1)

    def test_f18_a_part_has_the_bytes_of_a_read(self, tmp_path: Path) -> None:
        """For each offset of a log, many limits, and several ends."""
        random, found = Random(1), Counter[type]()
        log = DiskLog.open(tmp_path / "t-0", LogConfig(segment_bytes=600, index_interval_bytes=200))
        ends = [log.append(values(random.randint(1, 5)), leader_epoch=0, now_ms=0).last_offset + 1 for _ in range(15)]
        for offset, bytes_max, until, first_whole in product(
            range(ends[-1] + 1), (0, 60, 61, 95, 160, 350, 1_000), (ends[-1], ends[-3], ends[4]), (True, False)
        ):
            expected = log.read(offset, bytes_max, until=until, first_whole=first_whole)
            records = log.read_to_send(offset, bytes_max, until=until, first_whole=first_whole)
            assert len(records) == len(expected)
            assert (records.read() if isinstance(records, FilePart) else records) == expected
            found[type(records)] += 1
        assert min(found[bytes], found[FilePart]) > 100
        log.close()

    def test_a_part_is_taken_of_a_segment_that_is_written_and_of_a_sealed_one(self, tmp_path: Path) -> None:
        log = DiskLog.open(tmp_path / "t-0", LogConfig(segment_bytes=150))
        for _ in range(2):
            log.append(values(3), leader_epoch=0, now_ms=0)
        for offset in (0, 3):
            assert isinstance(log.read_to_send(offset, 1_000), FilePart)
        log.close()

    def test_f11_a_part_that_the_page_cache_does_not_have_is_loaded_first(self, tmp_path: Path) -> None:
        system = FaultyFiles()
        log = DiskLog.open(tmp_path / "t-0", LogConfig(), files=OpenFiles(system=system))
        log.append(values(3), leader_epoch=0, now_ms=0)
        system.uncached = {".log"}
        with pytest.raises(NotCached) as cold:
            log.read_to_send(0, 1_000)
        cold.value.loads[0]()
        assert isinstance(log.read_to_send(0, 1_000), FilePart)
        log.close()

    def test_n13_beyond_the_limit_of_parts_records_are_read(self, tmp_path: Path) -> None:
        log = DiskLog.open(tmp_path / "t-0", LogConfig())
        log.append(values(3), leader_epoch=0, now_ms=0)
        parts = [log.read_to_send(0, 1_000) for _ in range(PARTS_MAX + 1)]
        assert [isinstance(each, FilePart) for each in parts] == [True] * PARTS_MAX + [False]
        parts.pop(0)
        assert isinstance(log.read_to_send(0, 1_000), FilePart)
        log.close()

    def test_an_error_of_the_disk_is_that_of_the_read(self, tmp_path: Path) -> None:
        system = FaultyFiles()
        log = DiskLog.open(tmp_path / "t-0", LogConfig(segment_bytes=150), files=OpenFiles(system=system))
        for _ in range(2):
            log.append(values(3), leader_epoch=0, now_ms=0)
        log.flush()
        system.fail("open", ".log")
        with pytest.raises(StorageFailed):
            log.read_to_send(0, 1_000)
        system.clear()
        log.close()

    def test_f18_after_an_error_of_a_file_records_are_read(self, tmp_path: Path) -> None:
        """Where the page cache cannot be probed nothing but a read takes the partition offline."""
        system = FaultyFiles()
        log = DiskLog.open(tmp_path / "t-0", LogConfig(), files=OpenFiles(system=system))
        log.append(values(3), leader_epoch=0, now_ms=0)
        of_file = log.read_to_send(0, 1_000)
        assert isinstance(of_file, FilePart)
        system.fail("pread", ".log")
        with pytest.raises(OSError, match="injected"):
            of_file.read()
        with pytest.raises(StorageFailed):
            log.read_to_send(0, 1_000)
        system.clear()
        log.close()

    def test_a_log_in_memory_has_no_files(self) -> None:
        log = MemoryLog()
        log.append(values(3), leader_epoch=0, now_ms=0)
        assert isinstance(log.read_to_send(0, 1_000), bytes)


def test_few_bytes_are_read(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", LogConfig())
    log.append(values(3), leader_epoch=0, now_ms=0)
    assert isinstance(log.read_to_send(0, PART_BYTES_MIN * 2), bytes)
    log.close()
