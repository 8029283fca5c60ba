from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from rota.coordinator.metadata.journal import Journal, frame, frames
from rota.coordinator.metadata.store import StoreFailed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def written(path: Path, *payloads: bytes) -> bytes:
    journal = Journal(path)
    journal.replay()
    for payload in payloads:
        journal.append(payload)
    journal.close()
    return path.read_bytes()


def replayed(path: Path) -> tuple[list[bytes], int]:
    journal = Journal(path)
    try:
        return journal.replay(), journal.cut_bytes
    finally:
        journal.close()


def test_a_reopened_journal_returns_all_appended_entries(path: Path) -> None:
    written(path, b"one", b"two")
    written(path, b"three")
    assert replayed(path) == ([b"one", b"two", b"three"], 0)


def test_a_torn_tail_is_cut_wherever_it_tore(path: Path) -> None:
    whole = written(path, b"one", b"two-and-more")
    first = len(frame(b"one"))
    for kept in range(len(whole)):
        path.write_bytes(whole[:kept])
        expected = [b"one"] if kept >= first else []
        assert replayed(path) == (expected, kept - (first if kept >= first else 0))
        assert written(path, b"next").endswith(frame(b"next"))
        assert replayed(path) == ([*expected, b"next"], 0)


def test_a_tail_of_zeros_is_a_torn_write(path: Path) -> None:
    path.write_bytes(written(path, b"one") + bytes(100))
    assert replayed(path) == ([b"one"], 100)


def test_a_round_of_changes_is_cut_whichever_of_its_pages_is_lost(path: Path) -> None:
    """J2: until its fsync the pages of one write reach the medium in any order."""
    kept = written(path, b"kept")
    journal = Journal(path)
    journal.replay()
    journal.append(b"a" * 6_000, b"b" * 6_000, b"c" * 6_000)
    journal.close()
    data = path.read_bytes()
    for start in range(len(kept), len(data), 1_000):
        path.write_bytes(data[:start] + bytes(len(data[start : start + 1_000])) + data[start + 1_000 :])
        assert replayed(path) == ([b"kept"], len(data) - len(kept))


@pytest.mark.parametrize("at", [3, 5, 9])  # the length, the checksum, the payload
def test_damage_in_the_middle_is_not_forgotten_quietly(path: Path, at: int) -> None:
    data = bytearray(written(path, b"one", b"two", b"three"))
    data[len(frame(b"one")) + at] ^= 1
    path.write_bytes(data)
    journal = Journal(path)
    with pytest.raises(StoreFailed, match="damaged at byte 11"):
        journal.replay()
    journal.close()
    assert path.read_bytes() == data


def test_frames_stop_at_the_first_incomplete_frame() -> None:
    data = frame(b"a") + frame(b"bc")
    assert list(frames(data)) == [(9, b"a"), (19, b"bc")]
    assert list(frames(data[:-1])) == [(9, b"a")]
    assert list(frames(b"")) == []


def test_a_rewrite_replaces_everything_in_one_step(path: Path) -> None:
    journal = Journal(path)
    journal.append(b"old")
    journal.rewrite([b"new", b"newer"])
    journal.append(b"newest")
    journal.close()
    assert replayed(path) == ([b"new", b"newer", b"newest"], 0)
    assert [each.name for each in path.parent.iterdir()] == ["journal"]


def test_a_failed_write_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(path)
    journal.append(b"one")
    pwrite = os.pwrite

    def half(file: int, data: Any, position: int) -> int:
        pwrite(file, bytes(data)[:5], position)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half)
        with pytest.raises(StoreFailed, match="No space left"):
            journal.append(b"lost")
    journal.append(b"two")
    journal.close()
    assert replayed(path) == ([b"one", b"two"], 0)


def test_a_file_that_could_not_be_set_back_is_out_of_use(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(path)

    def fails(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fails)
        broken.setattr(os, "fsync", fails)
        with pytest.raises(StoreFailed):
            journal.append(b"one")
    with pytest.raises(StoreFailed, match="out of use"):
        journal.append(b"two")
    journal.close()


def test_after_a_failed_fsync_it_is_out_of_use_although_the_next_one_would_succeed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law J4: the kernel marks what it could not write as written."""
    journal = Journal(path)
    journal.append(b"kept")

    def fails(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fails)
        with pytest.raises(StoreFailed, match="cannot sync"):
            journal.append(b"one")
    with pytest.raises(StoreFailed, match="out of use"):
        journal.append(b"two")
    journal.close()
    assert replayed(path) == ([b"kept"], 0)


def test_several_entries_share_one_fsync(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs, fdatasync = list[int](), os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (syncs.append(file), fdatasync(file)))
    journal = Journal(path)
    journal.append(b"one", b"two", b"three")
    journal.close()
    assert len(syncs) == 1
    assert replayed(path) == ([b"one", b"two", b"three"], 0)


def test_an_append_to_a_closed_journal_fails(path: Path) -> None:
    journal = Journal(path)
    journal.close()
    journal.close()
    with pytest.raises(StoreFailed, match="closed"):
        journal.append(b"one")


def test_a_journal_in_a_missing_folder_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot open"):
        Journal(tmp_path / "nowhere" / "journal")
