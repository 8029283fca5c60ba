from __future__ import annotations

from pathlib import Path

import pytest

from rota.coordinator.log import boot
from rota.coordinator.log.boot import BOOT_FILE, boot_id, was_written_in_this_boot


def test_a_folder_of_this_start_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one\n")
    assert not was_written_in_this_boot(tmp_path), "there is no file yet"
    (tmp_path / BOOT_FILE).write_text(boot_id())
    assert was_written_in_this_boot(tmp_path)
    (tmp_path / "boot_id").write_text("two\n")
    assert not was_written_in_this_boot(tmp_path)


def test_without_a_boot_id_no_file_counts_as_of_this_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "none")
    (tmp_path / BOOT_FILE).write_text(boot_id())
    assert boot_id() == ""
    assert not was_written_in_this_boot(tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"o\0ne"])
def test_a_damaged_boot_file_names_no_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """CM5. A torn write of a machine that lost its power; the broker starts all the same."""
    monkeypatch.setattr(boot, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one\n")
    (tmp_path / BOOT_FILE).write_bytes(content)
    assert not was_written_in_this_boot(tmp_path)
