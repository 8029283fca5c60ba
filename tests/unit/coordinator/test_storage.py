"""Where a broker keeps what it knows: what comes back, and what refuses to open."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.storage import STORE_FILE, Disk, Memory

TOPIC = Topic(name="t", topic_id=b"i" * 16, partitions=())


def disk(path: Path, node_id: int = 1) -> Disk:
    return Disk(path / "data", node_id=node_id, wall_ms=lambda: NOW_MS)


def test_a_folder_keeps_its_logs_and_the_cluster_id(tmp_path: Path) -> None:
    storage = disk(tmp_path)
    storage.open()
    assert (storage.cluster_id, storage.store_path) == ("", tmp_path / "data" / STORE_FILE)
    storage.identify("cluster")
    log = storage.open_log(TOPIC, 0, LogConfig())
    log.append(batch(b"a"), leader_epoch=0, now_ms=NOW_MS)
    storage.close()
    again = disk(tmp_path)
    again.open()
    assert again.cluster_id == "cluster"
    again.identify("cluster")
    assert again.open_log(TOPIC, 0, LogConfig()).log_end_offset == 1
    again.close()


def test_a_folder_is_one_brokers(tmp_path: Path) -> None:
    storage = disk(tmp_path)
    storage.open()
    with pytest.raises(StorageFailed, match=r"another broker runs on .*data"):
        disk(tmp_path).open()
    storage.abandon()
    other = disk(tmp_path)
    other.open()
    other.abandon()


def test_a_folder_of_another_node_or_cluster_is_refused(tmp_path: Path) -> None:
    storage = disk(tmp_path)
    storage.open()
    storage.identify("cluster")
    with pytest.raises(StorageFailed, match="belongs to cluster cluster, this is other"):
        storage.identify("other")
    storage.close()
    with pytest.raises(StorageFailed, match="belongs to node 1, this is node 2"):
        disk(tmp_path, node_id=2).open()


def test_a_storage_that_is_not_open_cannot_be_used(tmp_path: Path) -> None:
    storage = disk(tmp_path)
    with pytest.raises(StorageFailed, match="is not open"):
        storage.begin_checkpoint()
    storage.abandon()


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StorageFailed, match="cannot open the log directory"):
        disk(tmp_path).open()


def test_tidying_removes_deleted_logs_and_notes_where_recovery_begins(tmp_path: Path) -> None:
    storage = disk(tmp_path)
    storage.open()
    storage.identify("cluster")
    storage.open_log(TOPIC, 0, LogConfig()).destroy()
    kept = storage.open_log(TOPIC, 1, LogConfig())
    kept.append(batch(b"a"), leader_epoch=0, now_ms=NOW_MS)
    kept.flush()
    assert [path.name for path in (tmp_path / "data").glob("*-delete")]
    storage.begin_checkpoint()()
    assert not list((tmp_path / "data").glob("*-delete"))
    assert "t 1 1" in (tmp_path / "data" / "recovery-point-offset-checkpoint").read_text()
    storage.abandon()


def test_a13_deleted_logs_are_removed_from_a_disk_on_which_nothing_can_be_written(tmp_path: Path) -> None:
    files = FaultyFiles()
    storage = Disk(tmp_path / "data", node_id=1, wall_ms=lambda: NOW_MS, system=files)
    storage.open()
    storage.identify("cluster")
    storage.open_log(TOPIC, 0, LogConfig()).append(batch(b"a"), leader_epoch=0, now_ms=NOW_MS)
    storage.open_log(TOPIC, 1, LogConfig()).destroy()
    files.fail("pwrite", code=errno.ENOSPC)
    with pytest.raises(StorageFailed, match="recovery-point-offset-checkpoint"):
        storage.begin_checkpoint()()
    assert not list((tmp_path / "data").glob("*-delete"))
    storage.abandon()


def test_memory_keeps_nothing() -> None:
    memory = Memory()
    memory.open()
    memory.identify("cluster")
    log = memory.open_log(TOPIC, 0, LogConfig())
    log.append(batch(b"a"), leader_epoch=0, now_ms=NOW_MS)
    memory.begin_checkpoint()()
    memory.close()
    memory.abandon()
    assert (memory.cluster_id, memory.store_path) == (None, None)
    assert memory.open_log(TOPIC, 0, LogConfig()).log_end_offset == 0
