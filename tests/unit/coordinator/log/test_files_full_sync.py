"""PF3, as far as it can be seen where fsync reaches the medium: which call is made on a system like macOS."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rota.coordinator.log import files
from rota.coordinator.log.files import FileSystem, sync
from rota.coordinator.metadata.journal import Journal

FULL = 51  # F_FULLFSYNC of macOS

Calls = list[str]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Calls]:
    """Begin to note the calls of a system like macOS, whose F_FULLFSYNC fails with this code; 0: it does not."""

    def begin(code: int) -> Calls:
        made, flags = Calls(), fcntl.fcntl

        def full_sync(fd: int, command: int, *rest: int) -> object:
            if command != FULL:
                return flags(fd, command, *rest)
            made.append("full")
            if code:
                raise OSError(code, os.strerror(code))
            return 0

        monkeypatch.setattr(files, "_FULL_SYNC", FULL)
        monkeypatch.setattr(fcntl, "fcntl", full_sync)
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, lambda _, name=name: made.append(name))
        return made

    return begin


def test_a_file_of_a_log_is_on_the_medium_after_a_full_sync(calls: Callable[[int], Calls], tmp_path: Path) -> None:
    made = calls(0)
    FileSystem().write_file(tmp_path / "f", b"x", sync=True)
    assert made == ["full"]


def test_so_is_a_change_of_the_metadata(calls: Callable[[int], Calls], tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.replay()
    made = calls(0)
    journal.append(b"entry")
    assert made == ["full"]
    journal.close()


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_where_there_is_no_full_sync_the_usual_one_is_made(calls: Callable[[int], Calls], code: int) -> None:
    made = calls(code)
    sync(0)
    assert made == ["full", "fsync"]


def test_a_full_sync_that_fails_is_a_sync_that_fails(calls: Callable[[int], Calls]) -> None:
    """A5. The second one would succeed: the kernel reports an error once."""
    made = calls(errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        sync(0)
    assert made == ["full"]
