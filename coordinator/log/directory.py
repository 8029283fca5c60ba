"""The folder of all logs of a broker: `log.dirs`.

    meta.properties                    whose it is: node.id, cluster.id
    .lock                              held while a broker runs on it
    .kafka_cleanshutdown               there only after a stop in order: the next start scans nothing
    .rota_boot                         the last start of the machine in which a broker ran on it
    .unrecovered                       the logs that the marker does not vouch for: not opened since a crash
    .failed                            the logs that have failed: what is found in them may be less than there was
    .rota_registration                 the epoch of the last registration in a cluster of a broker on it
    recovery-point-offset-checkpoint, log-start-offset-checkpoint, replication-offset-checkpoint,
    cleaner-offset-checkpoint          one number for each partition
    topic-0, topic-1, …                the logs
    topic-0.<hex>-delete               a log that is being deleted
    topic-0.<hex>-stray                the log of a partition that the cluster no longer places here; never deleted

Laws
    Two brokers never run on one directory.
    A folder is deleted only under a `-delete` name, so that a half deleted log is never opened.
    A log with another topic id than the requested one belongs to another topic: it is deleted, never opened (A3).
    The marker of a clean stop is not written while any log has failed, or could not be opened (A5). It vouches only
    for logs that were closed in order, in its run or in an earlier one (A6).
    One thread owns the directory and alone notes offsets; other threads run `LogOpening.run` and write checkpoints.

The file is longer than 400 lines because one class owns the folder and what is known of its logs.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from rota.coordinator.log.boot import BOOT_FILE, boot_id, was_written_in_this_boot
from rota.coordinator.log.checkpoints import DELETE_SUFFIX, STRAY_SUFFIX, Checkpoints, TopicPartition, partition_of
from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.files import FileSystem
from rota.coordinator.log.index_files import LoadedIndexes
from rota.coordinator.log.properties import (
    ID_BYTES,
    new_id,
    read_properties,
    read_topic_id,
    write_properties,
    write_topic_id,
)
from rota.coordinator.log.store import OpenFiles
from rota.coordinator.log.trash import Trash
from rota.coordinator.log.truncation import Removal

META_FILE: Final = "meta.properties"
LOCK_FILE: Final = ".lock"
CLEAN_FILE: Final = ".kafka_cleanshutdown"
REGISTRATION_FILE: Final = ".rota_registration"
PARTITION_META_FILE: Final = "partition.metadata"
NAME_BYTES_MAX: Final = 255
NEVER_REGISTERED: Final = -1


class DirectoryInUse(StorageFailed):
    """Another broker runs on it."""


class WrongDirectory(StorageFailed):
    """It belongs to another broker or another cluster."""


class LogDirectory:
    """Opens the logs under `path`. Raises DirectoryInUse, WrongDirectory, StorageFailed.

    `has_possible_data_loss`: the folder is new, or the last broker did not stop in order and the machine was started
    again since. `failed_logs` are those that had failed in its time and were not recovered. Without `cluster_id`,
    `identify` follows as soon as it is known. `ignores_case`: the file system does not tell upper and lower case apart,
    as on macOS: topics whose names differ only in it would share their folders (A11).
    """

    def __init__(
        self, path: Path, *, node_id: int, cluster_id: str | None = None, system: FileSystem | None = None
    ) -> None:
        self.path, self._node_id = path, node_id
        self._logs: dict[TopicPartition, DiskLog] = {}
        self._clean_logs: set[TopicPartition] = set()
        self._system = FileSystem() if system is None else system
        self._files, self._loaded = OpenFiles(system=self._system), LoadedIndexes()
        self._trash = Trash(self._system)
        self._tracks_high_watermarks = self._is_identified = False
        self._uncut: dict[TopicPartition, int] = {}  # high watermarks as they are if a truncation is cancelled
        self._removals: dict[TopicPartition, Removal] = {}  # of logs that are used no more
        self._unrecovered: set[TopicPartition] = set()  # opening has begun, and did not succeed yet
        self._lock_fd = -1
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock()
            self.ignores_case = (path / LOCK_FILE.upper()).exists()
            self.cluster_id, self.directory_id = self._read_meta()
            self._was_clean = (path / CLEAN_FILE).exists()
            self.has_possible_data_loss = not (self._was_clean or was_written_in_this_boot(path))
            if cluster_id is not None:
                self.identify(cluster_id)
            self._checkpoints = Checkpoints(path, self._system)
            self.failed_logs = frozenset[TopicPartition]() if self._was_clean else self._checkpoints.failed_logs()
            if self._was_clean:
                self._clean_logs = self._checkpoints.clean_logs(self.partitions())
        except (OSError, StorageFailed) as error:
            self._unlock()
            if isinstance(error, OSError):
                raise StorageFailed(f"cannot open the log directory {path}: {error}") from error
            raise

    @property
    def was_clean(self) -> bool:
        """Whether the broker that ran on it before stopped in order; a new directory did not."""
        return self._was_clean

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The values of the checkpoint and those noted since."""
        return self._checkpoints.high_watermarks

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path} {len(self._logs)} logs open>"

    def identify(self, cluster_id: str) -> None:
        """Check `meta.properties`, or write it when the directory is new; note this start of the machine.

        From now on logs may change: the marker of a clean stop goes. At each moment the marker or this start of the
        machine vouches for the logs. Raises WrongDirectory, StorageFailed.
        """
        if self.cluster_id not in ("", cluster_id):
            why = f"{self.path} belongs to cluster {self.cluster_id}, this is {cluster_id}"
            raise WrongDirectory(f"{why}: correct log.dirs, or zookeeper.connect and its chroot")
        if not self.cluster_id:
            meta = {"version": "1", "cluster.id": cluster_id, "node.id": str(self._node_id)}
            meta["directory.id"] = self.directory_id
            self._write_file(META_FILE, write_properties(meta).encode(), sync=True)
            self.cluster_id = cluster_id
        self._write_file(BOOT_FILE, boot_id().encode(), sync=True)
        self._is_identified = True
        try:
            self._system.unlink(self.path / CLEAN_FILE)
            self._system.sync_path(self.path)  # else a power loss brings the marker back
        except OSError as error:
            raise StorageFailed(f"cannot remove {self.path / CLEAN_FILE}: {error}") from error

    def when_many_unsynced(self, call: Callable[[], None]) -> None:
        """Call `call` when so many rolled segments wait for their sync that `Log.begin_flush` should come soon."""
        self._files.on_many_unsynced = call

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have a folder here, open or not. Raises OSError."""
        found = (partition_of(entry.name) for entry in os.scandir(self.path) if entry.is_dir())
        return sorted(partition for partition in found if partition is not None)

    def open_log(
        self, topic: str, partition: int, config: LogConfig, *, topic_id: bytes | None = None, now_ms: int = -1
    ) -> DiskLog:
        """Open or create a log; it belongs to this directory until it is closed. Raises StorageFailed.

        `topic_id` (16 bytes): a folder of another topic with the same name is thrown away first.
        """
        opening = self.begin_open(topic, partition, config, topic_id=topic_id, now_ms=now_ms)
        opening.run()
        return opening.finish()

    def begin_open(
        self, topic: str, partition: int, config: LogConfig, *, topic_id: bytes | None = None, now_ms: int = -1
    ) -> LogOpening:
        """As `open_log`, but the part that takes long runs in any thread. One opening of a log at a time.

        A log that is open still has failed: it is let go, and recovered from its last good recovery point on.
        """
        assert self._is_identified, "the marker of a clean stop is still there"
        key = topic, partition
        if (failed := self._logs.pop(key, None)) is not None:
            failed.abandon()
            self._let_go(key, failed)
            self._note(key, failed)
        known = RecoveryCheckpoint(
            clean=key in self._clean_logs,
            recovery_point=self._checkpoints.recovery_points.get(key, 0),
            log_start_offset=self._checkpoints.log_starts.get(key, 0),
            cleaned_until=self._checkpoints.cleaned.get(key, 0),
            high_watermark=self._checkpoints.high_watermarks.get(key),
            lost_power=self.has_possible_data_loss,
            reread=key not in self._clean_logs,
        )
        self._clean_logs.discard(key)
        self._unrecovered.add(key)
        return LogOpening(self, key, config, known, topic_id, now_ms, self._removals.pop(key, None))

    def note(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Note how far recovery, deletion, compaction and replication have come, for the next `checkpoint`.

        `high_watermarks`: default is the end of each log, which is what one replica has.
        """
        for key, log in self._logs.items():
            self._note(key, log)
        self._tracks_high_watermarks = high_watermarks is not None
        if high_watermarks is None:
            high_watermarks = {key: log.log_end_offset for key, log in self._logs.items()}
        self._checkpoints.high_watermarks.update(high_watermarks)
        for key, log in self._logs.items():
            if log.truncation is not None and key in high_watermarks:
                self._lower_high_watermark(key, log.truncation.offset)

    @property
    def registered_epoch(self) -> int:
        """The epoch of the last registration of a broker on it; -1 if it knows none. Raises StorageFailed."""
        try:
            text = (self.path / REGISTRATION_FILE).read_text(errors="replace")
        except FileNotFoundError:
            return NEVER_REGISTERED
        except OSError as error:
            raise StorageFailed(f"cannot read {self.path / REGISTRATION_FILE}: {error}") from error
        return int(text) if text.isdecimal() and text.isascii() else NEVER_REGISTERED

    def note_registered(self, epoch: int) -> None:
        """Write down the epoch of a registration. May run in another thread. Raises StorageFailed."""
        self._write_file(REGISTRATION_FILE, str(epoch).encode(), sync=True)

    def note_failed(self, failed: Collection[TopicPartition]) -> None:
        """Write down which logs have failed, for the next start. May run in another thread. Raises StorageFailed."""
        self._checkpoints.write_failed(failed)

    def checkpoint(self) -> None:
        """Write the checkpoints of the noted values. May run in another thread. Raises StorageFailed."""
        self._checkpoints.write()

    def remove_log(self, topic: str, partition: int) -> None:
        """Delete a log, also one that cannot be opened. Raises StorageFailed."""
        log = self._logs.get((topic, partition))
        if log is not None:
            log.destroy()
            return
        self._forget((topic, partition))
        path = self.path / f"{topic}-{partition}"
        try:
            if path.exists() and self._same_but_for_case(path) is None:
                self._set_aside(path)
        except OSError as error:
            raise StorageFailed(f"cannot remove {path}: {error}") from error

    def set_strays_aside(self, placed: Container[TopicPartition]) -> dict[TopicPartition, str]:
        """Rename the folders of partitions that are not in `placed`. Returns their new names. Raises StorageFailed.

        Their records stay on disk until an administrator deletes the folder; no log of that name is opened with them.
        A folder without the files of a log is not touched: `broker-1` may be the data folder of another broker.
        """
        strays: dict[TopicPartition, str] = {}
        try:
            for key in self.partitions():
                path = self.path / f"{key[0]}-{key[1]}"
                if key not in placed and key not in self._logs and _holds_log(path):
                    strays[key] = self._set_aside(path, STRAY_SUFFIX).name
                    self._forget(key)
        except OSError as error:
            raise StorageFailed(f"cannot set aside logs under {self.path}: {error}") from error
        return strays

    def remove_deleted(self) -> int:
        """Remove the files of deleted segments and the folders of deleted logs; returns how many folders.

        May run in another thread. Raises StorageFailed.
        """
        self._trash.empty()
        removed = 0
        try:
            for entry in list(os.scandir(self.path)):
                if entry.name.endswith(DELETE_SUFFIX) and entry.is_dir():
                    self._system.remove_tree(Path(entry.path))
                    removed += 1
        except OSError as error:
            raise StorageFailed(f"cannot remove deleted logs under {self.path}: {error}") from error
        return removed

    def close(self) -> None:
        """Close all logs, write the checkpoints, mark the stop as clean, release the lock. Raises StorageFailed."""
        if self._lock_fd < 0:
            return
        try:
            self.note({} if self._tracks_high_watermarks else None)
            failed = self._close_logs()
            self.checkpoint()
            if failed is not None:
                raise failed
            self._checkpoints.write_unrecovered(self._not_clean())
            self._checkpoints.forget_failed()  # all are recovered: a later crash does not find them again
            self._write_file(CLEAN_FILE, b'{"version":0,"brokerEpoch":-1}', sync=True)
        finally:
            self.abandon()

    def undo_open(self) -> None:
        """The start of the broker has failed: a folder that was closed in order is closed in order again."""
        if self._was_clean and self._is_identified:
            with suppress(StorageFailed):
                self.close()
        self.abandon()

    def abandon(self) -> None:
        """Let everything go as a crash would: nothing is written, the next start recovers."""
        for log in self._logs.values():
            log.abandon()
        self._files.close()
        self._unlock()

    def start_moved(self, log: DiskLog) -> Callable[[], None]:
        """Note the log start. Returns the call that writes it: a record that was deleted must not come back."""
        self._checkpoints.log_starts[self._key(log)] = log.log_start_offset
        return self._checkpoints.write_log_starts

    def truncation_begun(self, log: DiskLog) -> Callable[[], None]:
        """Note where the log will start and end. Returns `checkpoint`, for all logs whose truncation has begun.

        It is written before records are removed: what is appended there later was never flushed.
        """
        key, truncation = self._key(log), log.truncation
        assert truncation is not None
        self._note(key, log)
        self._lower_high_watermark(key, truncation.offset)
        return self.checkpoint

    def _lower_high_watermark(self, key: TopicPartition, offset: int) -> None:
        self._uncut[key] = high_watermark = self._checkpoints.high_watermarks.get(key, 0)
        self._checkpoints.high_watermarks[key] = min(high_watermark, offset)

    def truncation_cancelled(self, log: DiskLog) -> None:
        """The next checkpoint has the offsets of before again."""
        key = self._key(log)
        self._note(key, log)
        self._checkpoints.high_watermarks[key] = self._uncut.pop(key)

    def closed(self, log: DiskLog) -> None:
        key = self._key(log)
        self._note(key, log)
        if not self._tracks_high_watermarks:
            self._checkpoints.high_watermarks[key] = log.log_end_offset
        self._clean_logs.add(key)
        del self._logs[key]

    def destroyed(self, log: DiskLog) -> None:
        key = self._key(log)
        self._logs.pop(key, None)
        self._let_go(key, log)
        self._forget(key)
        self._set_aside(log.path)

    def _let_go(self, key: TopicPartition, log: DiskLog) -> None:
        """Another thread may change files of this log still: the next opening of its folder waits for that."""
        if log.removal is not None:
            self._removals[key] = log.removal

    def _not_clean(self) -> set[TopicPartition]:
        """Return the logs that were not closed in order since a crash. Raises StorageFailed."""
        try:
            return set(self.partitions()) - self._clean_logs
        except OSError as error:
            raise StorageFailed(f"cannot list {self.path}: {error}") from error

    def _close_logs(self) -> StorageFailed | None:
        """One that fails keeps no other from being closed. Returns the first failure."""
        failed: StorageFailed | None = None
        if self._unrecovered:
            failed = StorageFailed(f"logs under {self.path} could not be recovered: {sorted(self._unrecovered)}")
        for log in list(self._logs.values()):
            try:
                log.close()
            except StorageFailed as error:
                failed = failed or error
        return failed

    def _opened(self, key: TopicPartition, log: DiskLog, *, is_new: bool) -> None:
        if is_new:
            self._forget(key)
        self._unrecovered.discard(key)
        log.share(self._files, self._loaded, self._trash)
        log.owner = self
        self._logs[key] = log

    def _note(self, key: TopicPartition, log: DiskLog) -> None:
        self._checkpoints.recovery_points[key] = log.recovery_point
        self._checkpoints.log_starts[key] = (
            log.log_start_offset if log.truncation is None else log.truncation.start_offset
        )
        self._checkpoints.cleaned[key] = log.cleaned_until

    def _key(self, log: DiskLog) -> TopicPartition:
        key = partition_of(log.path.name)
        assert key is not None
        return key

    def _prepare_folder(self, key: TopicPartition, path: Path, topic_id: bytes | None) -> bool:
        """Create the folder unless it exists, and write the topic id to its `partition.metadata`.

        A folder of another topic id is set aside first. Returns whether the folder existed. Raises StorageFailed.
        """
        meta = path / PARTITION_META_FILE
        try:
            if (other := self._same_but_for_case(path)) is not None:
                why = "its file system does not distinguish upper and lower case"
                raise StorageFailed(f"{path} is the folder {other}, of another topic: {why}")
            found = read_topic_id(meta.read_bytes()) if meta.exists() else None
            if found is not None and topic_id is not None and found != topic_id:
                self._set_aside(path)
            is_old = path.exists()
            if not is_old:
                path.mkdir()
            if topic_id is not None and found != topic_id:
                self._system.write_file(meta, write_topic_id(topic_id))
        except OSError as error:
            raise StorageFailed(f"cannot open {path}: {error}") from error
        return is_old

    def _same_but_for_case(self, path: Path) -> str | None:
        """A11. Return the name of the folder that this path leads to, if its case is another one. Raises OSError."""
        if self.ignores_case and path.exists():
            names = os.listdir(self.path)
            if path.name not in names:
                return next((name for name in names if name.lower() == path.name.lower()), None)
        return None

    def _forget(self, key: TopicPartition) -> None:
        """Remove the checkpoints of an old log of the same name."""
        self._clean_logs.discard(key)
        self._unrecovered.discard(key)
        self._checkpoints.forget(key)

    def _set_aside(self, path: Path, suffix: str = DELETE_SUFFIX) -> Path:
        """Rename a folder, by default for deletion; return its new path. Raises OSError."""
        suffix = f".{os.urandom(ID_BYTES).hex()}{suffix}"
        renamed = path.with_name(path.name[: NAME_BYTES_MAX - len(suffix)] + suffix)
        self._system.replace(path, renamed)
        return renamed

    def _lock(self) -> None:
        self._lock_fd = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DirectoryInUse(f"another broker runs on {self.path}: {LOCK_FILE} is held") from error

    def _unlock(self) -> None:
        if self._lock_fd >= 0:
            fd, self._lock_fd = self._lock_fd, -1
            os.close(fd)

    def _read_meta(self) -> tuple[str, str]:
        """Return the cluster that the directory belongs to, "" when it is new, and the id of the directory.

        The id of a directory that another program has written without one is "".
        """
        meta = self.path / META_FILE
        if not meta.exists():
            return "", new_id()
        found = read_properties(meta.read_text(errors="replace"))
        if "node.id" not in found:
            raise StorageFailed(
                f"{meta} is damaged: it has no node.id; restore the file, or start with an empty folder in log.dirs"
            )
        if found["node.id"] != str(self._node_id):
            raise WrongDirectory(f"{self.path} belongs to node {found['node.id']}, this is node {self._node_id}")
        return found.get("cluster.id", ""), found.get("directory.id", "")

    def _write_file(self, name: str, data: bytes, *, sync: bool) -> None:
        try:
            self._system.write_file(self.path / name, data, sync=sync)
            if sync:
                self._system.sync_path(self.path)
        except OSError as error:
            raise StorageFailed(f"cannot write {self.path / name}: {error}") from error


class LogOpening:
    """The opening of one log: the directory's owner begins it, any thread runs it, the owner finishes it."""

    def __init__(
        self,
        directory: LogDirectory,
        key: TopicPartition,
        config: LogConfig,
        known: RecoveryCheckpoint,
        topic_id: bytes | None,
        now_ms: int,
        removal: Removal | None,
    ) -> None:
        self._directory, self._key, self._config, self._known = directory, key, config, known
        self._topic_id, self._now_ms, self._removal = topic_id, now_ms, removal
        self.high_watermark_before = known.high_watermark or 0
        self._log: DiskLog | None = None
        self._is_new = False

    def run(self) -> None:
        """Open the log, and recover it if it was not closed in order. Raises StorageFailed."""
        directory, (topic, partition) = self._directory, self._key
        if self._removal is not None:
            self._removal.wait_stopped()
        path = directory.path / f"{topic}-{partition}"
        self._is_new = not directory._prepare_folder(self._key, path, self._topic_id)
        if self._is_new:  # it has nothing of what the checkpoints say of an old one of its name
            self._known = RecoveryCheckpoint()
        files = OpenFiles(system=directory._system)
        log = DiskLog.open(path, self._config, self._known, files=files, now_ms=self._now_ms)
        if self._config.flush_messages is not None:
            log.flush()  # what a crash has left was acknowledged: it must not be less readable than before
        self._log = log

    @property
    def log_end_offset(self) -> int:
        """The end of the log after `run`."""
        assert self._log is not None, "run comes first"
        return self._log.log_end_offset

    def finish(self) -> DiskLog:
        """The log, which belongs to the directory from now on."""
        assert self._log is not None, "run comes first"
        self._directory._opened(self._key, self._log, is_new=self._is_new)
        return self._log


def _holds_log(folder: Path) -> bool:
    """Raises OSError."""
    return any(name == PARTITION_META_FILE or name.endswith(".log") for name in os.listdir(folder))
