"""The calls to the file system: whole writes, whole files, reads that do not wait."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

import rota.coordinator.log
from rota.coordinator.log.files import LOAD_BYTES, FileSystem


def test_a_short_write_is_continued(tmp_path: Path) -> None:
    files = FaultyFiles()
    fd = files.open_write(tmp_path / "f")
    files.fail("pwrite", short_bytes=3, times=1)
    files.write_all(fd, b"abcdefgh", 0)
    files.close(fd)
    assert (tmp_path / "f").read_bytes() == b"abcdefgh"


def test_write_file_replaces_whole(tmp_path: Path) -> None:
    files = FileSystem()
    files.write_file(tmp_path / "f", b"a longer one")
    files.write_file(tmp_path / "f", b"two", sync=True)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("f", b"two")]


@pytest.mark.parametrize("call", ["pwrite", "fsync", "replace"])
def test_a_failed_write_file_leaves_the_old_content(tmp_path: Path, call: str) -> None:
    files = FaultyFiles()
    files.write_file(tmp_path / "f", b"old")
    files.fail(call, code=errno.ENOSPC)
    with pytest.raises(OSError, match="injected"):
        files.write_file(tmp_path / "f", b"new", sync=True)
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_loaded_file_is_cached_and_a_missing_file_is_accepted(tmp_path: Path) -> None:
    files, path = FileSystem(), tmp_path / "f"
    path.write_bytes(bytes(3 * LOAD_BYTES // 2))
    fd = files.open_read(path)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    files.load(path, 3 * LOAD_BYTES // 2, 0)
    assert files.is_cached(fd, 3 * LOAD_BYTES // 2, 0)
    assert files.is_cached(fd, 1, 77)
    files.close(fd)
    files.load(tmp_path / "missing", 10, 0)
    files.unlink(tmp_path / "missing")


def test_no_other_module_of_the_log_changes_files_by_itself() -> None:
    folder = Path(str(rota.coordinator.log.__file__)).parent
    writes = re.compile(r"\bos\.(replace|rename|unlink|remove|pwrite|write|fsync|ftruncate)\(|shutil|write_text")
    found = [path.name for path in folder.glob("*.py") if path.name != "files.py" and writes.search(path.read_text())]
    assert found == []
