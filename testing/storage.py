"""Storage of brokers under test: memory that outlives a killed broker, and a disk that gets full or slow on request."""

from __future__ import annotations

import errno
import shutil
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from rota.coordinator.log.contract import Log, LogConfig
from rota.coordinator.log.files import Buffer, FileSystem
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.storage import STORE_FILE, LogOpening, Memory, OpenedLog

KEPT_BYTES_MAX = 1 << 62  # of a torn tail: a killed process leaves everything it wrote to the page cache
SHARED_MEMORY = Path("/dev/shm")


class KeptMemory(Memory):
    """Logs in memory that a restarted broker opens again, as files outlive a process.

    The metadata journal of a broker that is alone is a file in a temporary folder, in shared memory where there is any.
    """

    def __init__(self, *, alone: bool) -> None:
        """`alone` is False for a broker of a cluster, whose metadata is in the cluster's store."""
        self._logs: dict[tuple[bytes, int], MemoryLog] = {}
        self._folder = tempfile.mkdtemp(prefix="rota-kit-", dir=_shared_memory()) if alone else None
        self.cluster_id: str | None = None
        self.directory_id = str(uuid4())
        self.was_clean = True

    @property
    def store_path(self) -> Path | None:  # type: ignore[override]
        """The metadata store's file."""
        return None if self._folder is None else Path(self._folder) / STORE_FILE

    def identify(self, cluster_id: str) -> None:
        """Keep the cluster's id."""
        self.cluster_id = cluster_id

    def open_log(self, topic: Topic, index: int, config: LogConfig) -> Log:
        """The log of one partition, with what was written to it before."""
        key = topic.topic_id, index
        if key not in self._logs:
            self._logs[key] = MemoryLog(config)
        log = self._logs[key]
        log.config = config
        return log

    def begin_open(self, topic: Topic, index: int, config: LogConfig) -> LogOpening:
        """The opening of a log that needs no recovery."""
        return OpenedLog(self.open_log(topic, index, config))

    def remove_log(self, topic: Topic, index: int) -> None:
        """Forget the log."""
        self._logs.pop((topic.topic_id, index), None)

    def close(self) -> None:
        """A stop in order."""
        self.was_clean = True

    def abandon(self) -> None:
        """The process was killed: recover the logs as a start after a crash does."""
        self.was_clean = False
        for log in self._logs.values():
            log.crash(KEPT_BYTES_MAX)

    def discard(self) -> None:
        """Remove the temporary folder. Nothing can be opened afterwards."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class FaultyDisk(FileSystem):
    """Real files. `is_full` makes writes fail with ENOSPC; `delay_ms` makes writes and syncs take longer.

    A slow write blocks the broker's loop, as a write to a full page cache does; a slow sync blocks a thread.
    """

    __slots__ = ("delay_ms", "is_full")

    def __init__(self) -> None:
        self.is_full, self.delay_ms = False, 0

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        self._wait()
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device (injected)")
        return super().pwrite(fd, data, position)

    def fsync(self, fd: int) -> None:
        self._wait()
        super().fsync(fd)

    def _wait(self) -> None:
        if self.delay_ms:
            time.sleep(self.delay_ms / 1000)


def _shared_memory() -> Path | None:
    """A folder in memory for a small file; None where the platform has none."""
    return SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
