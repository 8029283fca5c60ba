from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.trash import DELETED, Trash


def test_thrown_files_are_renamed_at_once_and_unlinked_when_it_is_emptied(tmp_path: Path) -> None:
    trash = Trash(FaultyFiles())
    for _ in range(2):  # the same name twice
        (tmp_path / "0.log").write_text("x")
        trash.discard(tmp_path / "0.log")
    trash.discard(tmp_path / "missing")
    assert len(trash) == 2
    assert all(path.name.endswith(DELETED) for path in tmp_path.iterdir())
    trash.empty()
    assert (len(trash), list(tmp_path.iterdir())) == (0, [])


def test_files_that_cannot_be_unlinked_stay_for_the_next_time(tmp_path: Path) -> None:
    system = FaultyFiles()
    trash = Trash(system)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("x")
        trash.discard(tmp_path / name)
    system.fail("unlink", "/b.")
    with pytest.raises(StorageFailed, match=r"cannot remove .*/b"):
        trash.empty()
    assert len(trash) == len(list(tmp_path.iterdir())) == 1
    system.clear()
    trash.empty()
    assert list(tmp_path.iterdir()) == []
