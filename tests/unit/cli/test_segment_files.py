"""Folders, segments and batches of a partition. test_logs.py runs the commands on what a broker wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.cli.segment_files import Batch, batches, partition_folders, required_segments
from rota.cli.settings import UsageError

RECORDED = Path(__file__).parents[2] / "data" / "recorded-0"


def test_an_empty_file_has_no_batches(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with empty.open("rb") as file:
        assert list(batches(file)) == []
    empty.write_bytes(b"short")
    with empty.open("rb") as file:
        assert list(batches(file)) == [Batch(0, None, None, "5 bytes of an incomplete batch")]


def test_segments_are_in_the_order_of_their_offsets() -> None:
    found = [int(path.stem) for path in required_segments(RECORDED)]
    assert found == sorted(found)
    assert len(found) > 1
    assert required_segments(RECORDED / "00000000000000000005.log") == [RECORDED / "00000000000000000005.log"]


def test_a_data_folder_has_the_folders_of_its_partitions(tmp_path: Path) -> None:
    for name in ("b-1", "a-0", "no partition", "c-x"):
        (tmp_path / name).mkdir()
    assert [path.name for path in partition_folders(tmp_path)] == ["a-0", "b-1"]
    assert required_segments(tmp_path / "a-0") == []
    for wrong in (tmp_path / "no partition", tmp_path / "missing"):
        with pytest.raises(UsageError, match=wrong.name):
            partition_folders(wrong)
