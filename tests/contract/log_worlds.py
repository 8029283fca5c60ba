"""The two logs behind one face for their contract: how each is made, stopped in order, and torn by a crash."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.log.segmented import SegmentedLog


class World(Protocol):
    """A log that can be stopped and crashed."""

    high_watermark: int | None  # that of the checkpoint, at the next start

    @property
    def log(self) -> SegmentedLog: ...

    def reopen(self) -> None:
        """Stop in order and start again."""

    def crash(self, tear: int) -> None:
        """Stop as a power loss does: of what was not flushed, some is there (as `tear` chooses), and start again."""

    def end(self) -> None: ...


class MemoryWorld:
    high_watermark: int | None = None

    def __init__(self, config: LogConfig) -> None:
        self.log = MemoryLog(config, now_ms=0)

    def reopen(self) -> None:
        self.log.close()

    def crash(self, tear: int) -> None:
        self.log.crash(keep_bytes=tear % (self.log.size_bytes + 1))

    def end(self) -> None:
        self.log.destroy()


class DiskWorld:
    high_watermark: int | None = None

    def __init__(self, config: LogConfig) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.config = config
        self.log = DiskLog.open(self.folder / "t-0", config, now_ms=0)

    def reopen(self) -> None:
        self.log.close()
        self._open(clean=True)

    def crash(self, tear: int) -> None:
        """The kernel may have written any of the files, each up to any byte; what was flushed is there."""
        recovery_point = self.log.recovery_point
        files = sorted(self.log.path.glob("*.log"))
        following = [int(file.name[:20]) for file in files[1:]]
        unflushed = [f for f, after in zip_longest(files, following) if after is None or after > recovery_point]
        if unflushed:
            self._tear(unflushed[tear % len(unflushed)], tear, recovery_point)
        for index in self.log.path.glob("*index"):
            if int(index.name[:20]) >= recovery_point and tear % 2:
                index.write_bytes(b"rubbish")
        self._open(clean=False)

    def end(self) -> None:
        shutil.rmtree(self.folder)

    def _open(self, *, clean: bool) -> None:
        log = self.log
        known = RecoveryCheckpoint(
            clean, log.recovery_point, log.log_start_offset, log.cleaned_until, self.high_watermark
        )
        self.log = DiskLog.open(log.path, self.config, known, now_ms=0)

    def _tear(self, file: Path, tear: int, recovery_point: int) -> None:
        whole, size = self._flushed_bytes(file, recovery_point), file.stat().st_size
        with file.open("r+b") as torn:
            torn.truncate(whole + (tear // 7) % (size - whole + 1))
            if tear % 3 == 0:
                torn.seek(0, 2)
                torn.write(bytes(tear % 100))

    def _flushed_bytes(self, file: Path, recovery_point: int) -> int:
        base = int(file.name[:20])
        segment = next(segment for segment in self.log._segments if segment.base_offset == base)
        return segment.position_of(recovery_point) if recovery_point > base else 0


WORLDS: dict[str, Callable[[LogConfig], World]] = {"memory": MemoryWorld, "disk": DiskWorld}
