"""The calls to the file system: whole writes, whole files, reads that do not wait."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles
from tests.unit.coordinator.log.page_cache import folder_with_page_cache

import rota.coordinator.log
from rota.coordinator.log import files as files_module
from rota.coordinator.log.files import (
    COPIED_BYTES_MAX,
    LOAD_BYTES,
    PROBE_EVERY_BYTES,
    FileSystem,
    cached_pages,
    pages,
)


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder whose file system tells what the page cache has."""
    with folder_with_page_cache(tmp_path) as folder:
        yield folder


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


def test_a_folder_is_removed_with_all_that_is_in_it_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "t-0" / "deeper").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for file in ("t-0/log", "t-0/deeper/index", "elsewhere/kept"):
        (tmp_path / file).write_bytes(b"x")
    (tmp_path / "t-0" / "link").symlink_to(tmp_path / "elsewhere")
    FileSystem().remove_tree(tmp_path / "t-0")
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
    assert (tmp_path / "elsewhere" / "kept").exists()
    with pytest.raises(FileNotFoundError):
        FileSystem().remove_tree(tmp_path / "t-0")


def test_of_a_link_to_a_folder_on_another_disk_the_content_and_the_link_are_removed(tmp_path: Path) -> None:
    (tmp_path / "disk" / "deeper").mkdir(parents=True)
    (tmp_path / "disk" / "deeper" / "log").write_bytes(b"x")
    (tmp_path / "t-0").symlink_to(tmp_path / "disk")
    FileSystem().remove_tree(tmp_path / "t-0")
    assert [*tmp_path.rglob("*")] == [tmp_path / "disk"]


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


@pytest.mark.parametrize(("missing_pages", "probes"), [(0, 2), (1, LOAD_BYTES // PROBE_EVERY_BYTES + 1)])
def test_two_probes_suffice_where_the_kernel_counts_every_page(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch, missing_pages: int, probes: int
) -> None:
    files, path, probed, preadv = FileSystem(), on_disk / "f", [], os.preadv

    def counted(fd: int, buffers: list[bytearray], at: int, flags: int = 0) -> int:
        probed.append(at)
        return preadv(fd, buffers, at, flags)

    path.write_bytes(bytes(LOAD_BYTES + 1000))
    fd = files.open_read(path)
    monkeypatch.setattr(files_module, "cached_pages", lambda fd, count, at: pages(count, at) - missing_pages)
    monkeypatch.setattr(os, "preadv", counted)
    assert files.is_cached(fd, LOAD_BYTES, 1000)
    files.close(fd)
    assert len(probed) == probes
    assert (probed[0], probed[-1]) == (1000, 1000 + LOAD_BYTES - 1)


def test_f11_a_read_of_few_bytes_is_one_call_where_the_page_cache_has_them(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, path, reads, preadv = FileSystem(), on_disk / "f", list[int](), os.preadv

    def counted(fd: int, buffers: list[bytearray], at: int, flags: int = 0) -> int:
        reads.append(len(buffers[0]))
        return preadv(fd, buffers, at, flags)

    path.write_bytes(bytes(range(256)) * 1000)
    fd = files.open_read(path)
    monkeypatch.setattr(os, "preadv", counted)
    for count in (1, 61, COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1, 200_000):
        assert files.pread_cached(fd, count, 1003) == files.pread(fd, count, 1003)
    assert reads[:3] == [1, 61, COPIED_BYTES_MAX]
    assert set(reads[3:]) == {1}
    assert files.pread_cached(fd, 100, 256_000 - 10) == files.pread(fd, 100, 256_000 - 10) == bytes(range(246, 256))
    files.close(fd)


@pytest.mark.parametrize("count", [10, 2 * COPIED_BYTES_MAX])
@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ENOTSUP, errno.EIO])
def test_f11_a_read_does_not_wait_and_reads_where_the_file_system_cannot_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, code: int
) -> None:
    files, path = FileSystem(), tmp_path / "f"
    path.write_bytes(bytes(4 * COPIED_BYTES_MAX))
    fd = files.open_read(path)

    def refused(*call: object) -> int:
        raise OSError(code, "injected")

    monkeypatch.setattr(os, "preadv", refused)
    if code == errno.EIO:
        with pytest.raises(OSError, match="injected"):
            files.pread_cached(fd, count, 5)
    else:
        assert files.pread_cached(fd, count, 5) == (None if code == errno.EAGAIN else bytes(count))
    files.close(fd)


def test_f11_a_part_that_is_not_in_the_page_cache_is_not_read(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel reads up to there; the rest is probed, and not found."""
    files, path, preadv = FileSystem(), on_disk / "f", os.preadv

    def cut(fd: int, buffers: list[bytearray], at: int, flags: int = 0) -> int:
        if at + len(buffers[0]) > 4096:
            if at >= 4096:
                raise BlockingIOError
            return preadv(fd, [bytearray(4096 - at)], at, flags)
        return preadv(fd, buffers, at, flags)

    path.write_bytes(bytes(8192))
    fd = files.open_read(path)
    monkeypatch.setattr(os, "preadv", cut)
    assert files.pread_cached(fd, 4000, 0) == bytes(4000)
    assert files.pread_cached(fd, 4000, 1000) is None
    files.close(fd)


def test_the_kernel_counts_the_cached_pages_of_a_range(tmp_path: Path) -> None:
    """0 where it does not say, and fewer than all where a part was dropped, unless the file system is in memory."""
    files, path = FileSystem(), tmp_path / "f"
    path.write_bytes(bytes(LOAD_BYTES))
    fd = files.open_read(path)
    whole = cached_pages(fd, LOAD_BYTES - 10, 5)
    assert whole in (0, pages(LOAD_BYTES - 10, 5))
    assert cached_pages(fd, 2, 4095) in (0, pages(2, 4095))
    os.fsync(fd)
    os.posix_fadvise(fd, 4 * PROBE_EVERY_BYTES, PROBE_EVERY_BYTES, os.POSIX_FADV_DONTNEED)
    counted, is_cached = cached_pages(fd, LOAD_BYTES, 0), files.is_cached(fd, LOAD_BYTES, 0)
    files.close(fd)
    assert cached_pages(fd, 1, 0) == 0  # a closed descriptor
    assert whole == 0 or is_cached == (counted == pages(LOAD_BYTES, 0))


def test_no_other_module_of_the_log_changes_files_by_itself() -> None:
    folder = Path(str(rota.coordinator.log.__file__)).parent
    writes = re.compile(r"\bos\.(replace|rename|unlink|remove|pwrite|write|fsync|ftruncate)\(|shutil|write_text")
    found = [path.name for path in folder.glob("*.py") if path.name != "files.py" and writes.search(path.read_text())]
    assert found == []
