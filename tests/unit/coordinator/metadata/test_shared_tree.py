"""The store of a single broker: its journal, the rounds in which it is written, and what a failing disk does to it."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from rota.coordinator.metadata import shared_tree
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.journal import frame
from rota.coordinator.metadata.store import BadVersion, Check, Create, Delete, NodeExists, NotEmpty, StoreFailed


def test_the_journal_is_text_that_people_can_read(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    store = EmbeddedStore(path)
    run_eagerly(store.create("/a", b'{"version":1}'))
    run_eagerly(store.set("/a", b"\xff"))
    assert b'["made","/a","{\\"version\\":1}",false,0]' in path.read_bytes()
    run_eagerly(store.close())
    again = EmbeddedStore(path)
    assert run_eagerly(again.get("/a"))[0] == b"\xff"
    run_eagerly(again.close())


def test_opening_compacts(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    store = EmbeddedStore(path)
    run_eagerly(store.create("/a"))
    for turn in range(200):
        run_eagerly(store.set("/a", b"%d" % turn))
    before_bytes = path.stat().st_size
    run_eagerly(store.close())
    again = EmbeddedStore(path)
    assert path.stat().st_size < before_bytes / 20
    assert run_eagerly(again.get("/a"))[1].version == 200
    run_eagerly(again.close())


def test_a_journal_that_grows_is_rewritten_while_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_tree, "JOURNAL_BYTES_MAX", 2000)
    path = tmp_path / "journal"
    store = EmbeddedStore(path)
    run_eagerly(store.create("/a"))
    for turn in range(500):
        run_eagerly(store.set("/a", b"%d" % turn))
        assert path.stat().st_size < 2200
    run_eagerly(store.close())
    again = EmbeddedStore(path)
    assert run_eagerly(again.get("/a"))[0] == b"499"
    run_eagerly(again.close())


@pytest.mark.parametrize(
    "payload", [b"no json", b'[["unknown","/a"]]', b'[["gone","/nothing"]]', b'[["made"]]', b"{}1"]
)
def test_an_entry_that_makes_no_sense_is_not_skipped(tmp_path: Path, payload: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(frame(payload))
    with pytest.raises(StoreFailed, match="an invalid entry"):
        EmbeddedStore(path)


def test_closing_twice_is_allowed(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "journal")
    run_eagerly(store.close())
    run_eagerly(store.close())


# ---- rounds off the loop


class Disk:
    """Counts the fsyncs of a journal, holds them up and makes them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.threads: set[str] = set()
        self.error: OSError | None = None
        self.is_free = threading.Event()
        self.is_free.set()
        monkeypatch.setattr(os, "fdatasync", self._sync)

    def _sync(self, file: int) -> None:
        self.syncs += 1
        self.threads.add(threading.current_thread().name)
        assert self.is_free.wait(20)
        if self.error is not None:
            raise self.error


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


async def test_commits_share_an_fsync_that_does_not_hold_up_the_loop(tmp_path: Path, disk: Disk) -> None:
    """Laws S7, S8."""
    store = EmbeddedStore(tmp_path / "journal")
    disk.is_free.clear()
    first = asyncio.ensure_future(store.create("/a"))
    while not disk.syncs:  # the loop turns while the disk does not
        await asyncio.sleep(0)
    rest = [asyncio.ensure_future(store.create(f"/a/{number}")) for number in range(20)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert not first.done()
    assert await store.children("/") == []
    disk.is_free.set()
    assert await asyncio.gather(first, *rest) == ["/a", *(f"/a/{number}" for number in range(20))]
    assert disk.syncs == 2
    assert all(name.startswith("journal") for name in disk.threads)
    await store.close()
    again = EmbeddedStore(tmp_path / "journal")
    assert len(await again.children("/a")) == 20
    await again.close()


async def test_commits_of_one_round_see_those_before_them(tmp_path: Path) -> None:
    """Law S8: refused or not as if each had waited for the one before."""
    store = EmbeddedStore(tmp_path / "journal")
    outcomes = await asyncio.gather(
        store.create("/a"),
        store.create("/a"),
        store.set("/a", b"1", 0),
        store.set("/a", b"2", 0),
        store.commit([Create("/a/b"), Check("/a", 7)]),
        store.create("/a/b"),
        store.delete("/a"),
        store.commit([Delete("/a/b"), Delete("/a")]),
        store.create("/a", b"again"),
        return_exceptions=True,
    )
    shown = [type(outcome) if isinstance(outcome, Exception) else outcome for outcome in outcomes]
    assert shown == ["/a", NodeExists, 1, BadVersion, BadVersion, "/a/b", NotEmpty, None, "/a"]
    data, stat = await store.get("/a")
    assert (data, stat.version) == (b"again", 0)
    await store.close()
    again = EmbeddedStore(tmp_path / "journal")
    assert (await again.get("/a"))[0] == b"again"
    await again.close()


async def test_after_a_failed_fsync_nothing_is_written_until_the_journal_is_read_again(
    tmp_path: Path, disk: Disk
) -> None:
    """Law S9."""
    store = EmbeddedStore(tmp_path / "journal")
    await store.create("/kept")
    disk.error = OSError(errno.EIO, "Input/output error")
    lost = await asyncio.gather(store.create("/a"), store.create("/b"), return_exceptions=True)
    assert [str(error) for error in lost] == [f"cannot sync {tmp_path / 'journal'}: [Errno 5] Input/output error"] * 2
    disk.error = None
    with pytest.raises(StoreFailed, match="out of use until the broker has read it again"):
        await store.create("/c")
    assert store.failed is not None
    assert await store.children("/") == ["kept"]
    await store.close()
    again = EmbeddedStore(tmp_path / "journal")
    assert await again.children("/") == ["kept"]
    await again.create("/c")
    await again.close()


async def test_a_write_to_a_full_disk_fails_and_later_writes_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EmbeddedStore(tmp_path / "journal")

    def full(file: int, data: object, position: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        with pytest.raises(StoreFailed, match="No space left"):
            await store.create("/a")
    assert await store.create("/a") == "/a"
    await store.close()


async def test_a_round_that_is_too_large_for_a_frame_becomes_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was put off fails and succeeds for itself: the tree is what the journal says."""
    monkeypatch.setattr(shared_tree, "FRAME_BYTES_MAX", 80)
    store, pwrite, writes = EmbeddedStore(tmp_path / "journal"), os.pwrite, list[int]()

    def full_at_first(file: int, data: bytes, position: int) -> int:
        writes.append(len(data))
        if len(writes) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(file, data, position)

    monkeypatch.setattr(os, "pwrite", full_at_first)
    outcomes = await asyncio.gather(*(store.create(f"/{name}") for name in "abcdef"), return_exceptions=True)
    assert [isinstance(outcome, StoreFailed) for outcome in outcomes] == [True] * 2 + [False] * 4
    assert len(writes) == 3
    await store.close()
    again = EmbeddedStore(tmp_path / "journal")
    assert await again.children("/") == list("cdef")
    await again.close()


async def test_closing_waits_for_the_commits_under_way(tmp_path: Path, disk: Disk) -> None:
    store = EmbeddedStore(tmp_path / "journal")
    disk.is_free.clear()
    commit = asyncio.ensure_future(store.create("/a"))
    while not disk.syncs:
        await asyncio.sleep(0)
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    assert not closing.done()
    disk.is_free.set()
    assert await commit == "/a"
    await closing
    with pytest.raises(StoreFailed, match="closed"):
        await store.create("/b")


async def test_a_snapshot_is_written_off_the_loop_and_commits_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_tree, "JOURNAL_BYTES_MAX", 2_000)
    threads, fsync = set[str](), os.fsync

    def sync(file: int) -> None:
        threads.add(threading.current_thread().name)
        fsync(file)

    store = EmbeddedStore(tmp_path / "journal")
    monkeypatch.setattr(os, "fsync", sync)
    await store.create("/a")
    for turn in range(300):
        await asyncio.gather(store.set("/a", b"%d" % turn), store.set("/a", b"%d!" % turn))
        assert (tmp_path / "journal").stat().st_size < 2_400
    assert threads
    assert all(name.startswith("journal") for name in threads)
    await store.close()
    again = EmbeddedStore(tmp_path / "journal")
    assert (await again.get("/a"))[0] == b"299!"
    await again.close()
