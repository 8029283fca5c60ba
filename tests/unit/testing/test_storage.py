"""Memory that outlives a broker, and a disk that is full or slow."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.metadata.topic import Topic
from rota.testing.storage import FaultyDisk, KeptMemory

TOPIC = Topic(name="t", topic_id=b"1" * 16, partitions=())


def test_a_log_opened_again_has_its_records() -> None:
    memory = KeptMemory(alone=False)
    first = memory.open_log(TOPIC, 0, LogConfig())
    memory.abandon()
    assert not memory.was_clean
    assert memory.begin_open(TOPIC, 0, LogConfig()).finish() is first
    memory.close()
    assert memory.was_clean


def test_a_removed_log_is_forgotten() -> None:
    memory = KeptMemory(alone=False)
    first = memory.open_log(TOPIC, 0, LogConfig())
    memory.remove_log(TOPIC, 0)
    assert memory.open_log(TOPIC, 0, LogConfig()) is not first


def test_the_journal_of_a_broker_alone_is_a_file_until_it_is_discarded() -> None:
    memory = KeptMemory(alone=True)
    path = memory.store_path
    assert path is not None
    assert path.parent.is_dir()
    memory.discard()
    assert not path.parent.exists()
    assert KeptMemory(alone=False).store_path is None


def test_a_full_disk_takes_no_write_until_it_has_room(tmp_path: Path) -> None:
    disk = FaultyDisk()
    fd = disk.open_write(tmp_path / "f")
    disk.is_full = True
    with pytest.raises(OSError, match="No space left"):
        disk.pwrite(fd, b"x", 0)
    disk.is_full = False
    assert disk.pwrite(fd, b"x", 0) == 1
    disk.close(fd)


def test_a_slow_disk_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept = list[float]()
    monkeypatch.setattr(time, "sleep", slept.append)
    disk = FaultyDisk()
    disk.delay_ms = 20
    fd = disk.open_write(tmp_path / "f")
    disk.pwrite(fd, b"x", 0)
    disk.fsync(fd)
    os.close(fd)
    assert slept == [0.02, 0.02]
