"""Where a broker keeps what it knows: a folder on disk, or memory. The same promises, but for a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rota.coordinator.log.contract import Log, LogConfig, StorageFailed
from rota.coordinator.log.directory import LogDirectory
from rota.coordinator.log.files import FileSystem
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import Topic

STORE_FILE = "metadata.journal"


class Disk:
    """Logs in Kafka's layout under one folder, and the metadata store's journal beside them."""

    def __init__(
        self, path: Path, *, node_id: int, wall_ms: Callable[[], int], system: FileSystem | None = None
    ) -> None:
        self.path, self._node_id, self._wall_ms, self._system = path, node_id, wall_ms, system
        self._directory: LogDirectory | None = None

    @property
    def store_path(self) -> Path | None:
        """The metadata store's file."""
        return self.path / STORE_FILE

    @property
    def cluster_id(self) -> str | None:
        """Whose folder it is, as `meta.properties` says."""
        return self._opened.cluster_id

    @property
    def was_clean(self) -> bool:
        """Whether the broker before stopped in order, so that no log lost its tail."""
        return self._opened.was_clean

    def identify(self, cluster_id: str) -> None:
        """Note in `meta.properties` whose folder it is. Raises StorageFailed: of another cluster."""
        self._opened.identify(cluster_id)

    def open(self) -> None:
        """Take the folder. Raises StorageFailed: in use, of another broker, not to be written."""
        self._directory = LogDirectory(self.path, node_id=self._node_id, system=self._system)

    def open_log(self, topic: Topic, index: int, config: LogConfig) -> Log:
        """The log of one partition, recovered if it has to be. Raises StorageFailed."""
        return self._opened.open_log(topic.name, index, config, topic_id=topic.topic_id, now_ms=self._wall_ms())

    def tidy(self) -> None:
        """Remove deleted logs, note how far recovery would have to go. For a thread. Raises StorageFailed."""
        self._opened.remove_deleted()
        self._opened.checkpoint()

    def close(self) -> None:
        """A stop in order: everything is on the medium, and the marker says so. Raises StorageFailed."""
        self._opened.close()

    def abandon(self) -> None:
        """Let the folder go without a word, as a crash would."""
        if self._directory is not None:
            self._directory.abandon()

    @property
    def _opened(self) -> LogDirectory:
        if self._directory is None:
            raise StorageFailed(f"{self.path} is not open")
        return self._directory


class Memory:
    """Nothing outlives the process. For tests, and for groups whose offsets nobody wants back."""

    store_path: Path | None = None
    cluster_id: str | None = None
    was_clean = True

    def identify(self, cluster_id: str) -> None:
        """Nothing to note."""

    def open(self) -> None:
        """Nothing to take."""

    def open_log(self, topic: Topic, index: int, config: LogConfig) -> Log:
        """An empty log."""
        return MemoryLog(config)

    def tidy(self) -> None:
        """Nothing to remove."""

    def close(self) -> None:
        """Nothing to keep."""

    def abandon(self) -> None:
        """Nothing to let go."""
