"""Where a broker keeps its logs: a folder on disk, or memory. Both keep the same promises, except over a restart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from pathlib import Path
from typing import Protocol

from rota.coordinator.log.checkpoints import TopicPartition
from rota.coordinator.log.contract import Log, LogConfig, StorageFailed
from rota.coordinator.log.directory import NEVER_REGISTERED, LogDirectory
from rota.coordinator.log.files import FileSystem
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import Topic

STORE_FILE = "metadata.journal"


class LogOpening(Protocol):
    """The opening of one log: begun and finished on the loop, run in any thread."""

    def run(self) -> None:
        """Open the log, and recover it if it was not closed in order. Raises StorageFailed."""

    @property
    def log_end_offset(self) -> int:
        """The end of the log after `run`."""

    @property
    def high_watermark_before(self) -> int:
        """The high watermark that the checkpoint has; 0 without one."""

    def finish(self) -> Log:
        """The log."""


class Disk:
    """Logs in Kafka's layout under one folder, and the metadata store's journal beside them.

    `high_watermarks`, once it is set, gives the high watermarks to write down; default are the ends of the logs.
    """

    def __init__(
        self, path: Path, *, node_id: int, wall_ms: Callable[[], int], system: FileSystem | None = None
    ) -> None:
        self.path, self._node_id, self._wall_ms, self._system = path, node_id, wall_ms, system
        self._directory: LogDirectory | None = None
        self.high_watermarks: Callable[[], Mapping[TopicPartition, int]] | None = None

    @property
    def store_path(self) -> Path | None:
        """The metadata store's file."""
        return self.path / STORE_FILE

    @property
    def was_alone(self) -> bool:
        """Whether the broker before was no member of a cluster: the folder has its topics, too."""
        return self.store_path is not None and self.store_path.exists()

    @property
    def cluster_id(self) -> str | None:
        """The cluster that `meta.properties` names; "" in a new folder."""
        return self._opened.cluster_id

    @property
    def directory_id(self) -> str:
        """The id of the folder, which only one process has open at a time; "" for a folder that has none."""
        return self._opened.directory_id

    @property
    def was_clean(self) -> bool:
        """Whether the broker before stopped in order, so that no log lost its tail."""
        return self._opened.was_clean

    files_per_log = 1  # kept open: that of its active segment

    @property
    def ignores_case(self) -> bool:
        """A11. Whether topics whose names differ only in case would share their folders."""
        return self._opened.ignores_case

    @property
    def has_possible_data_loss(self) -> bool:
        """Whether records of an earlier broker of this id may be lost: the folder is new, or the machine lost power."""
        return self._opened.has_possible_data_loss

    @property
    def failed_logs(self) -> frozenset[TopicPartition]:
        """The logs that had failed, and were not recovered, when the broker before ended."""
        return self._opened.failed_logs

    @property
    def registered_epoch(self) -> int:
        """The epoch of the last registration of a broker with these logs; -1 if none is known. Raises StorageFailed."""
        return self._opened.registered_epoch

    def note_registered(self, epoch: int) -> None:
        """Write down the epoch of a registration. May run in another thread. Raises StorageFailed."""
        self._opened.note_registered(epoch)

    def note_failed(self, failed: Collection[TopicPartition]) -> None:
        """Write down which logs have failed, for the next start. May run in another thread. Raises StorageFailed."""
        self._opened.note_failed(failed)

    def identify(self, cluster_id: str) -> None:
        """Write down that the broker belongs to this cluster, which counts on its logs as they are from now on.

        Raises StorageFailed when `meta.properties` names another cluster.
        """
        self._opened.identify(cluster_id)

    def open(self) -> None:
        """Lock the folder. Raises StorageFailed: in use, of another broker, not to be written."""
        self._directory = LogDirectory(self.path, node_id=self._node_id, system=self._system)

    def open_log(self, topic: Topic, index: int, config: LogConfig) -> Log:
        """The log of one partition, recovered if it has to be. Raises StorageFailed."""
        opening = self.begin_open(topic, index, config)
        opening.run()
        return opening.finish()

    def begin_open(self, topic: Topic, index: int, config: LogConfig) -> LogOpening:
        """As `open_log`, but the part that takes long runs in any thread. Also for a log that has failed."""
        wall_ms = self._wall_ms()
        return self._opened.begin_open(topic.name, index, config, topic_id=topic.topic_id, now_ms=wall_ms)

    def remove_log(self, topic: Topic, index: int) -> None:
        """Delete a log, also one that has failed. Raises StorageFailed."""
        self._opened.remove_log(topic.name, index)

    def set_strays_aside(self, placed: Container[TopicPartition]) -> dict[TopicPartition, str]:
        """Rename the folders of partitions that are not in `placed`; return their new names. Raises StorageFailed."""
        return self._opened.set_strays_aside(placed)

    def when_many_unsynced(self, call: Callable[[], None]) -> None:
        """Call `call` when so many rolled segments wait for their sync that `Log.begin_flush` should come soon."""
        self._opened.when_many_unsynced(call)

    def begin_checkpoint(self) -> Callable[[], None]:
        """Note how far each log is; the returned call writes that down and removes deleted files, in any thread.

        The call raises StorageFailed. It removes them also when nothing can be written (A13).
        """
        directory, high_watermarks = self._opened, self.high_watermarks
        directory.note(None if high_watermarks is None else high_watermarks())

        def write() -> None:
            try:
                directory.checkpoint()
            finally:  # a full disk, on which nothing can be written, gets room
                directory.remove_deleted()

        return write

    def close(self) -> None:
        """A stop in order: everything is on the medium, and the marker says so. Raises StorageFailed."""
        self._opened.close()

    def undo_open(self) -> None:
        """Release the folder after a start that failed, as clean as it was."""
        if self._directory is not None:
            self._directory.undo_open()

    def abandon(self) -> None:
        """Release the folder as a crash would: nothing is written."""
        if self._directory is not None:
            self._directory.abandon()

    @property
    def _opened(self) -> LogDirectory:
        if self._directory is None:
            raise StorageFailed(f"{self.path} is not open")
        return self._directory


class Memory:
    """Nothing outlives the process. For tests, and for groups whose offsets need not survive a restart."""

    store_path: Path | None = None
    was_alone = True
    cluster_id: str | None = None
    directory_id = ""
    was_clean = True
    ignores_case = False
    files_per_log = 0
    has_possible_data_loss = True
    failed_logs: frozenset[TopicPartition] = frozenset()
    registered_epoch = NEVER_REGISTERED
    high_watermarks: Callable[[], Mapping[TopicPartition, int]] | None = None

    def identify(self, cluster_id: str) -> None:
        """Does nothing."""

    def note_registered(self, epoch: int) -> None:
        """Does nothing: the logs of the next process are new."""

    def note_failed(self, failed: Collection[TopicPartition]) -> None:
        """Does nothing: no log outlives the process."""

    def open(self) -> None:
        """Does nothing."""

    def open_log(self, topic: Topic, index: int, config: LogConfig) -> Log:
        """An empty log."""
        return MemoryLog(config)

    def begin_open(self, topic: Topic, index: int, config: LogConfig) -> LogOpening:
        """The opening of an empty log."""
        return OpenedLog(MemoryLog(config))

    def remove_log(self, topic: Topic, index: int) -> None:
        """Does nothing."""

    def set_strays_aside(self, placed: Container[TopicPartition]) -> dict[TopicPartition, str]:
        """Does nothing."""
        return {}

    def when_many_unsynced(self, call: Callable[[], None]) -> None:
        """Does nothing: no segment waits for a sync."""

    def begin_checkpoint(self) -> Callable[[], None]:
        """The returned call does nothing."""
        return lambda: None

    def close(self) -> None:
        """Does nothing."""

    def undo_open(self) -> None:
        """Does nothing."""

    def abandon(self) -> None:
        """Does nothing."""


class OpenedLog:
    """The opening of a log that is open already."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.high_watermark_before = 0

    def run(self) -> None:
        """Does nothing."""

    @property
    def log_end_offset(self) -> int:
        """The end of the log."""
        return self._log.log_end_offset

    def finish(self) -> Log:
        """The log."""
        return self._log
