"""L2, XL1: what a loss of power leaves of a log is a prefix of it, with all that was flushed, and its state fits."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.unit.coordinator.log.log_kit import append_marker, append_transactional, batch, held
from tests.unit.coordinator.powered_files import PoweredFiles

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.store import OpenFiles
from rota.protocol.records.fast import Record

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=150, retention_ms=None)
STEPS, PRODUCER = 40, 7


class Writer:
    """Appends to a log of one transactional producer, and flushes it now and then."""

    def __init__(self, random: Random, folder: Path) -> None:
        self.random, self.system = random, PoweredFiles(folder)
        self.log = DiskLog.open(folder / "t-0", CONFIG, files=OpenFiles(system=self.system))
        self.sequence = self.flushed = 0
        self.is_open = False

    def step(self) -> None:
        self.random.choice([self.append, self.append, self.transact, self.transact, self.end, self.flush])()

    def append(self) -> None:
        self.log.append(batch((b"k", b"v" * self.random.randint(1, 200))), leader_epoch=0, now_ms=0)

    def transact(self) -> None:
        append_transactional(self.log, PRODUCER, self.sequence, (b"k", b"t" * 50))
        self.sequence, self.is_open = self.sequence + 1, True

    def end(self) -> None:
        if self.is_open:
            append_marker(self.log, PRODUCER, is_commit=self.random.random() < 0.3)
            self.is_open = False

    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.log.log_end_offset


def aborted(log: DiskLog, end: int) -> set[tuple[int, int]]:
    """The first and last offsets of the aborted transactions that have ended before `end`."""
    found = (each for offset in range(log.log_end_offset) for each in log.aborted_transactions(offset, 1))
    return {(each.first_offset, each.last_offset) for each in found if each.last_offset < end}


def before(records: list[Record], end: int) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in records if record.offset < end]


@pytest.mark.parametrize("seed", range(25))
def test_a_loss_of_power_leaves_a_prefix_with_all_that_was_flushed(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    (tmp_path / "before").mkdir()
    (tmp_path / "after" / "t-0").mkdir(parents=True)
    writer = Writer(random, tmp_path / "before")
    for _ in range(STEPS):
        writer.step()
    for sync in writer.log.begin_flush()._syncs[: random.randint(0, 3)]:
        sync.run()  # the power fails in the middle of a flush
    log, known = writer.log, RecoveryCheckpoint(recovery_point=writer.log.recovery_point, lost_power=True)
    writer.system.lose_power(random, tmp_path / "after")
    found = DiskLog.open(tmp_path / "after" / "t-0", CONFIG, known)
    end = found.log_end_offset
    assert writer.flushed <= end <= log.log_end_offset
    assert before(held(found), end) == before(held(log), end)
    assert aborted(found, end) == aborted(log, end)
