"""Kafka's checkpoint files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    Checkpoints,
    partition_of,
    read_checkpoint,
    write_checkpoint,
)
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.epochs import BadCheckpoint


def test_the_file_is_kafkas() -> None:
    offsets = {("test_delete_records", 2): 30, ("with-dashes.and_dots", 0): 1 << 40}
    text = "0\n2\ntest_delete_records 2 30\nwith-dashes.and_dots 0 1099511627776\n"
    assert write_checkpoint(offsets) == text
    assert read_checkpoint(text) == offsets
    assert read_checkpoint(write_checkpoint({})) == {}


@pytest.mark.parametrize(
    "text", ["", "0\n", "0\n1\n", "0\n0\nt 0 1\n", "7\n0\n", "0\n1\nt 0\n", "0\n1\nt x 1\n", "a\nb\n"]
)
def test_a_damaged_file(text: str) -> None:
    with pytest.raises(BadCheckpoint):
        read_checkpoint(text)


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("t-0", ("t", 0)),
        ("a-b.c_d-12", ("a-b.c_d", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("t-0.0123-delete", None),
        ("t", None),
        ("t-", None),
        ("-5", None),
        ("t-x", None),
        ("t-01", None),  # nobody names a log so: it is not the folder of t-1
        ("t-٣", None),
    ],
)
def test_folder_names(name: str, partition: tuple[str, int] | None) -> None:
    assert partition_of(name) == partition


def test_a_file_is_written_when_its_offsets_have_changed(tmp_path: Path) -> None:
    system = FaultyFiles()
    checkpoints = Checkpoints(tmp_path, system)

    def written() -> set[str]:
        system.calls.clear()
        checkpoints.write()
        return {Path(call.path).name for call in system.calls if call.call == "replace"}

    checkpoints.recovery_points["t", 0] = checkpoints.high_watermarks["t", 0] = 5
    assert {RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE, LOG_START_FILE} < written()
    assert written() == set()
    checkpoints.recovery_points["t", 0] = 3
    assert written() == {RECOVERY_POINT_FILE}
    assert Checkpoints(tmp_path, system).recovery_points == {("t", 0): 3}


def test_a_file_whose_write_failed_is_written_again(tmp_path: Path) -> None:
    system = FaultyFiles()
    checkpoints = Checkpoints(tmp_path, system)
    checkpoints.write()
    checkpoints.recovery_points["t", 0] = 5
    system.fail("fsync", RECOVERY_POINT_FILE, times=1)
    with pytest.raises(StorageFailed):
        checkpoints.write()
    checkpoints.recovery_points.clear()
    system.calls.clear()
    checkpoints.write()
    assert RECOVERY_POINT_FILE in {Path(call.path).name for call in system.calls if call.call == "replace"}
