"""Index files: aborted transactions are found again after any stop and any damage, and few indexes are in memory."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.index_files import LoadedIndexes
from rota.coordinator.log.transactions import AbortedTransaction

from .log_kit import append_marker, append_transactional, fill, held
from .test_folder import interrupted

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100, delete_retention_ms=0)


def test_loaded_indexes_let_the_oldest_go() -> None:
    class Noted:
        def __init__(self) -> None:
            self.released = False

        def release(self) -> None:
            self.released = True

    loaded, segments = LoadedIndexes(limit=2), [Noted() for _ in range(3)]
    loaded.add(segments[0])  # type: ignore[arg-type]
    loaded.add(segments[1])  # type: ignore[arg-type]
    loaded.add(segments[0])  # type: ignore[arg-type]
    loaded.add(segments[2])  # type: ignore[arg-type]
    assert [segment.released for segment in segments] == [False, True, False]
    loaded.forget(segments[1])  # type: ignore[arg-type]


def filled(path: Path, transactions: int = 6) -> DiskLog:
    """Transactions that span segments; each second one is aborted."""
    log = DiskLog.open(path / "t-0", CONFIG)
    for number in range(transactions):
        append_transactional(log, 7, 2 * number, (b"a%d" % number, b"v" * 100))
        fill(log, 3, key=b"key-%d" % number)
        append_transactional(log, 7, 2 * number + 1, (b"b%d" % number, b"v" * 100))
        append_marker(log, 7, is_commit=bool(number % 2))
    log.producers.committed(log.log_end_offset)
    return log


def aborted(log: DiskLog) -> list[AbortedTransaction]:
    found: list[AbortedTransaction] = []
    for offset in range(log.log_start_offset, log.log_end_offset):
        found += [each for each in log.aborted_transactions(offset, 1) if each not in found]
    return found


@pytest.mark.parametrize("damage", [None, b"", b"x", bytes(34)])
@pytest.mark.parametrize("clean", [True, False])
def test_aborted_transactions_are_found_after_a_stop(tmp_path: Path, damage: bytes | None, clean: bool) -> None:
    log = filled(tmp_path)
    before = aborted(log)
    assert [(each.producer_id, each.first_offset, each.last_offset) for each in before] == [
        (7, 0, 5),
        (7, 12, 17),
        (7, 24, 29),
    ]
    log.close()
    files = sorted(log.path.glob("*.txnindex"))
    contents = [file.read_bytes() for file in files]
    assert len(contents) == 3, "only segments with an abort marker have one"
    if damage is not None:
        for file in files:
            file.write_bytes(damage)
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(clean=clean))
    assert aborted(again) == before
    again.close()
    assert [file.read_bytes() for file in sorted(log.path.glob("*.txnindex"))] == contents


def committed(log: DiskLog) -> list[bytes]:
    """Return the keys that a reader gets which skips what the aborted transactions name."""
    spans = [(each.first_offset, each.last_offset) for each in aborted(log)]
    return [
        record.key or b""
        for record in held(log)
        if (record.key or b"").startswith(b"key") or not any(first <= record.offset < last for first, last in spans)
    ]


@pytest.mark.parametrize("clean", [True, False])
def test_compaction_may_stop_before_any_step(tmp_path: Path, clean: bool) -> None:
    """The records of an aborted transaction and its index entry are in the same set of files."""
    source = filled(tmp_path, 4)
    source.close()
    config = replace(CONFIG, compact=True)
    at, stopped = 0, True
    while stopped:
        at += 1
        path = Path(shutil.copytree(source.path, tmp_path / f"t-{at}"))
        log = DiskLog.open(path, config, RecoveryCheckpoint(clean=True))
        log.producers.committed(log.log_end_offset)
        stopped = interrupted(path, at, lambda log=log: log.compact(1000, force=True))  # type: ignore[misc]
        again = DiskLog.open(path, CONFIG, RecoveryCheckpoint(clean=clean, recovery_point=log.log_end_offset))
        found = committed(again)
        assert not [key for key in found if key in {b"a0", b"b0", b"a2", b"b2"}]
        assert {b"a1", b"b1", b"a3", b"b3"} <= set(found)
        again.close()
        assert not [file.name for file in path.iterdir() if file.suffix in (".swap", ".cleaned", ".deleted", ".tmp")]
    assert at > 10


def ended(path: Path) -> DiskLog:
    """An aborted transaction of the offsets 0 and 1, with a snapshot after its marker."""
    log = DiskLog.open(path / "t-0", CONFIG)
    append_transactional(log, 7, 0, (b"a", b"v"))
    append_marker(log, 7, is_commit=False)
    log._roll(0)
    fill(log, 2)
    return log


def test_a_snapshot_makes_no_marker_committed(tmp_path: Path) -> None:
    """XL2: the high watermark is below the marker."""
    log = ended(tmp_path)
    assert log.producers.last_stable_offset(1) == 0
    log.truncate(3)
    assert log.producers.last_stable_offset(1) == 0
    log.close()
    again = DiskLog.open(log.path, CONFIG, RecoveryCheckpoint(clean=True, high_watermark=1))
    assert (again.producers.last_stable_offset(1), again.producers.last_stable_offset(3)) == (0, 3)


def test_a_truncation_below_the_marker_opens_the_transaction_again(tmp_path: Path) -> None:
    log = ended(tmp_path)
    log.truncate(1)
    assert (aborted(log), log.producers.last_stable_offset(1)) == ([], 0)
    append_marker(log, 7, is_commit=False)
    assert aborted(log) == [(7, 0, 1, 2)]
    log.truncate(1)
    append_marker(log, 7, is_commit=True)
    log.close()
    assert not list(log.path.glob("*.txnindex"))
