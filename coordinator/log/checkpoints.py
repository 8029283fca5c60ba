"""Kafka's checkpoint files at the root of a log directory: one offset for each partition.

Form: the version 0, the count, and for each partition a line "topic partition offset".
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.epochs import BadCheckpoint
from rota.coordinator.log.files import FileSystem

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
CLEANER_FILE: Final = "cleaner-offset-checkpoint"
UNRECOVERED_FILE: Final = ".unrecovered"  # Rota's own, in the form of a checkpoint
FAILED_FILE: Final = ".failed"  # the same
DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"

TopicPartition = tuple[str, int]


def write_checkpoint(offsets: Mapping[TopicPartition, int]) -> str:
    lines = (f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items())
    return f"0\n{len(offsets)}\n" + "".join(lines)


def read_checkpoint(text: str) -> dict[TopicPartition, int]:
    """Raises BadCheckpoint."""
    offsets: dict[TopicPartition, int] = {}
    try:
        version, count, *lines = text.splitlines()
        for line in lines:
            topic, partition, offset = line.split(" ")
            offsets[topic, int(partition)] = int(offset)
        if int(version) != 0 or int(count) != len(offsets):
            raise BadCheckpoint("version or count is wrong")
    except ValueError as error:
        raise BadCheckpoint(str(error)) from error
    return offsets


def partition_of(folder_name: str) -> TopicPartition | None:
    """Return the topic and partition of a folder's name; None for other folders."""
    topic, dash, number = folder_name.rpartition("-")
    if not (topic and dash and number.isdecimal()) or str(int(number)) != number:
        return None
    return topic, int(number)


class Checkpoints:
    """The offsets of all partitions of a log directory, and the files that keep them. Reads the files; raises OSError.

    The owner of the directory changes the offsets. Any thread calls `write` and `write_log_starts`.
    """

    __slots__ = (
        "_path",
        "_system",
        "_writing",
        "_written",
        "cleaned",
        "high_watermarks",
        "log_starts",
        "recovery_points",
    )

    def __init__(self, path: Path, system: FileSystem) -> None:
        self._path, self._system, self._writing = path, system, threading.Lock()
        self._written: dict[str, bytes] = {}  # what this object has written, by file
        self.recovery_points = self._read(RECOVERY_POINT_FILE)
        self.log_starts = self._read(LOG_START_FILE)
        self.cleaned = self._read(CLEANER_FILE)
        self.high_watermarks = self._read(HIGH_WATERMARK_FILE)

    def forget(self, partition: TopicPartition) -> None:
        """Remove the offsets of a partition."""
        for offsets in (self.recovery_points, self.log_starts, self.cleaned, self.high_watermarks):
            offsets.pop(partition, None)

    def write(self) -> None:
        """Write all files. Raises StorageFailed."""
        self._write(RECOVERY_POINT_FILE, self.recovery_points)
        self.write_log_starts()
        self._write(CLEANER_FILE, self.cleaned, but_zero=True)
        self._write(HIGH_WATERMARK_FILE, self.high_watermarks)

    def write_log_starts(self) -> None:
        """Write the file with the log start offsets. Raises StorageFailed."""
        self._write(LOG_START_FILE, self.log_starts, but_zero=True)

    def clean_logs(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return those of `partitions` that need no recovery after a stop in order. Raises OSError.

        When the list of unrecovered logs is damaged, every log needs it.
        """
        try:
            text = (self._path / UNRECOVERED_FILE).read_text(errors="replace")
            return set(partitions) - read_checkpoint(text).keys()
        except FileNotFoundError:
            return set(partitions)
        except BadCheckpoint:
            return set()

    def write_unrecovered(self, partitions: Collection[TopicPartition]) -> None:
        """Write the list of the logs that were not closed in order since a crash. Raises StorageFailed."""
        self._write(UNRECOVERED_FILE, dict.fromkeys(sorted(partitions), 0))

    def failed_logs(self) -> frozenset[TopicPartition]:
        """Return the logs that had failed and were not recovered. Raises OSError."""
        return frozenset(self._read(FAILED_FILE))

    def write_failed(self, partitions: Collection[TopicPartition]) -> None:
        """Write the list of the logs that have failed and are not recovered. Raises StorageFailed."""
        self._write(FAILED_FILE, dict.fromkeys(sorted(partitions), 0))

    def forget_failed(self) -> None:
        """Empty that list, if there is one. Raises StorageFailed."""
        try:
            is_there = (self._path / FAILED_FILE).exists()
        except OSError as error:
            raise StorageFailed(f"cannot look for {self._path / FAILED_FILE}: {error}") from error
        if is_there:
            self.write_failed(())

    def _read(self, name: str) -> dict[TopicPartition, int]:
        """Return no offsets for a missing or damaged file: recovery then takes longer. Raises OSError."""
        try:
            return read_checkpoint((self._path / name).read_text(errors="replace"))
        except (FileNotFoundError, BadCheckpoint):
            return {}

    def _write(self, name: str, offsets: dict[TopicPartition, int], *, but_zero: bool = False) -> None:
        """Write a file unless it has these offsets already.

        Several threads may write the same file: each writes the offsets of the moment when its turn comes.
        """
        path = self._path / name
        with self._writing:
            now = {key: offset for key, offset in offsets.copy().items() if offset > 0 or not but_zero}
            data = write_checkpoint(now).encode()
            if self._written.get(name) == data:
                return
            self._written.pop(name, None)
            try:
                self._system.write_file(path, data, sync=True)
                self._system.sync_path(self._path)
                self._written[name] = data
            except OSError as error:
                raise StorageFailed(f"cannot write {path}: {error}") from error
