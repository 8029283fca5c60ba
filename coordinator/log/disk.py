"""A log on disk: a folder in Kafka's own layout.

    00000000000000000000.log         batches            leader-epoch-checkpoint
    00000000000000000000.index       offset index       00000000000000000042.snapshot   producer state at offset 42
    00000000000000000000.timeindex   time index         partition.metadata              the topic's id
    00000000000000000000.txnindex    aborted transactions, if the segment has markers of any

Laws
    L2  Opening after an unclean stop cuts the log after its last whole batch; a clean stop skips the scan.
    The active segment's indexes are in memory; their files are written when it is rolled or closed.
    A partition that was never written is an empty folder. One that retention emptied has an empty segment, whose name
    says where the log goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.epochs import LeaderEpochs
from rota.coordinator.log.folder import Folder
from rota.coordinator.log.index_files import LoadedIndexes
from rota.coordinator.log.producers import Producers
from rota.coordinator.log.recovery import recover, restore_producers
from rota.coordinator.log.segment import Segment
from rota.coordinator.log.segmented import SegmentedLog
from rota.coordinator.log.store import OpenFiles
from rota.coordinator.log.trash import Trash
from rota.coordinator.log.truncation import Removal
from rota.protocol.dataclass import dataclass
from rota.protocol.records.errors import CorruptBatch


@dataclass(frozen=True, slots=True)
class RecoveryCheckpoint:
    """The checkpoints of the log directory for one log, and whether it was closed in order."""

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    cleaned_until: int = 0
    high_watermark: int | None = None  # None: not known
    lost_power: bool = False  # maybe: a later segment may have been written before the end of an earlier one
    reread: bool = False  # a write or an fsync may have failed: what the page cache holds may never reach the medium


class Owner(Protocol):
    """The log directory, which stores the checkpoints of its logs."""

    def start_moved(self, log: DiskLog) -> Callable[[], None]:
        """DeleteRecords moved the log start. Returns the call that writes it to the medium, in any thread."""

    def truncation_begun(self, log: DiskLog) -> Callable[[], None]:
        """`log.truncation` has begun. Returns the call that writes its offsets to the medium, in any thread."""

    def truncation_cancelled(self, log: DiskLog) -> None:
        """`log.truncation`, which had begun, was cancelled: the log keeps its records and its offsets."""

    def closed(self, log: DiskLog) -> None:
        """The log was closed in order, with everything on the medium."""

    def destroyed(self, log: DiskLog) -> None:
        """The log is destroyed: remove its folder. Raises OSError."""


class DiskLog(SegmentedLog):
    """One partition in a folder of its own."""

    __slots__ = ("_closed", "_folder", "cut_bytes", "owner")

    @classmethod
    def open(
        cls,
        path: Path,
        config: LogConfig,
        known: RecoveryCheckpoint | None = None,
        *,
        files: OpenFiles | None = None,
        now_ms: int = -1,
    ) -> DiskLog:
        """Open or create. Raises StorageFailed. It may run in another thread than the one that uses the log."""
        folder = Folder(path, OpenFiles() if files is None else files, LoadedIndexes())
        try:
            log = cls(folder, config, known or RecoveryCheckpoint(), now_ms)
            with suppress(StorageFailed):  # then the next start removes what recovery dropped
                folder.trash.empty()
            return log
        except CorruptBatch as error:
            raise StorageFailed(f"{path} is damaged: {error}") from error

    def __init__(self, folder: Folder, config: LogConfig, known: RecoveryCheckpoint, now_ms: int) -> None:
        segments = folder.open(config.index_interval_bytes)
        epochs = folder.load_epochs()
        before = epochs.entries()
        self.cut_bytes = _recover_segments(
            folder, segments, epochs, known, has_gaps=config.compact or not known.lost_power
        )
        if not before:
            epochs = _learned_epochs(segments)
        end = segments[-1].next_offset if segments else 0
        if not segments or end < known.log_start_offset:
            segments = _start_at(folder, segments, known.log_start_offset, config, now_ms)
            end = segments[-1].next_offset
        epochs.truncate(end)
        epochs.begin(max(known.log_start_offset, segments[0].base_offset))
        if epochs.entries() != before:
            folder.save_epochs(epochs)
        producers = _producers(folder, segments, end, known)
        self._folder, self._closed = folder, False
        self.owner: Owner | None = None
        super().__init__(
            folder,
            config,
            segments,
            epochs=epochs,
            producers=producers,
            start_offset=known.log_start_offset,
            recovery_point=end if known.clean else known.recovery_point,
            cleaned_until=known.cleaned_until,
            high_watermark=known.high_watermark or 0,
        )

    @property
    def path(self) -> Path:
        return self._folder.path

    def share(self, files: OpenFiles, loaded: LoadedIndexes, trash: Trash) -> None:
        """Use the descriptors, the loaded indexes and the trash of all logs from now on."""
        self._folder.share(self._segments, files, loaded, trash)

    def begin_delete_before(self, offset: int) -> Callable[[], None] | None:
        """A start that did not move is written, too: an earlier write may be under way, or have failed."""
        super().begin_delete_before(offset)
        return None if self.owner is None else self.owner.start_moved(self)

    def _write_truncation(self) -> Callable[[], None] | None:
        return None if self.owner is None else self.owner.truncation_begun(self)

    def cancel_truncate(self) -> Callable[[], None] | None:
        was_begun, write = self.truncation is not None, super().cancel_truncate()
        if was_begun and self.owner is not None:
            self.owner.truncation_cancelled(self)
        return write

    def close(self) -> None:
        if self._closed:
            return
        super().close()
        self.abandon()
        if self.owner is not None:
            self.owner.closed(self)
        else:
            self._folder.trash.empty()

    def destroy(self) -> None:
        self.abandon()
        try:
            if self.owner is not None:
                self.owner.destroyed(self)
            else:
                self._folder.remove_tree()
        except OSError as error:
            raise StorageFailed(f"cannot remove {self.path}: {error}") from error

    @property
    def removal(self) -> Removal | None:
        """What changes files in another thread, if a truncation does."""
        return self._removal

    def abandon(self) -> None:
        """Let its files go as a crash would: nothing is written, the next start recovers."""
        self._closed = True
        if self._removal is not None:
            self._removal.stop()
        self.failure = self.failure or "it was closed"
        for segment in self._segments:
            self._folder.release(segment)


def _recover_segments(
    folder: Folder, segments: list[Segment], epochs: LeaderEpochs, known: RecoveryCheckpoint, *, has_gaps: bool
) -> int:
    """Find the end of the log; after an unclean stop check the bytes after the recovery point. Return the bytes cut.

    `has_gaps`: gaps between segments are those of compaction. Else they are records that a loss of power has taken.
    """
    if known.clean and segments:
        try:
            segments[-1].find_end()
        except CorruptBatch:
            pass
        else:
            return 0
    next_offset, sealed = 0, list[Segment]()
    for at, segment in enumerate(segments):
        last = at == len(segments) - 1
        if not last and segment.next_offset <= known.recovery_point:
            next_offset = segment.next_offset
            continue
        if known.reread:
            segment.store.read_again()
        cut_bytes = recover(segment, next_offset, epochs)
        ends = last or cut_bytes > 0 or (not has_gaps and _ends_early(segments, at, known.cleaned_until))
        if ends and not last:
            cut_bytes += _drop(folder, segments, at + 1)
        elif not last:
            sealed.append(segment)
        next_offset = segment.next_offset
        if ends:
            for whole in sealed:
                whole.seal()
            return cut_bytes
    return 0


def _ends_early(segments: list[Segment], at: int, cleaned_until: int) -> bool:
    """Whether a recovered segment does not end where the next one begins, and compaction has not been there."""
    following = segments[at + 1].base_offset
    return following > cleaned_until and segments[at].next_offset != following


def _drop(folder: Folder, segments: list[Segment], first: int) -> int:
    """Remove what is after the damage: it cannot be trusted to follow the rest."""
    dropped = segments[first:]
    del segments[first:]
    for segment in reversed(dropped):
        folder.remove(segment)
    return sum(segment.size_bytes for segment in dropped)


def _start_at(folder: Folder, segments: list[Segment], offset: int, config: LogConfig, now_ms: int) -> list[Segment]:
    """A log that ends before its start is lost: begin at the start, so that no offset is given twice.

    The new segment is made first: a crash never leaves a folder without the offsets that were given.
    """
    first = folder.create(offset, config.index_interval_bytes, now_ms)
    for segment in reversed(segments):
        folder.remove(segment)
    return [first]


def _learned_epochs(segments: list[Segment]) -> LeaderEpochs:
    """Read the epochs from the headers of all batches, because their file is missing or damaged."""
    epochs = LeaderEpochs()
    with suppress(CorruptBatch):  # of a damaged log no more is known
        for segment in segments:
            for _, header in segment.walk():
                if header.leader_epoch > epochs.latest:
                    epochs.assign(header.leader_epoch, header.base_offset)
    return epochs


def _producers(folder: Folder, segments: list[Segment], end: int, known: RecoveryCheckpoint) -> Producers:
    """What was deleted was committed: the high watermark is not below the log start, whatever its checkpoint says."""
    producers, high_watermark = Producers(), known.high_watermark
    if high_watermark is not None:
        high_watermark = max(high_watermark, known.log_start_offset, segments[0].base_offset)
    for offset in folder.snapshots.offsets():
        if offset > end:
            folder.snapshots.remove(offset)
    restore_producers(producers, folder.snapshots, segments, end, high_watermark)
    return producers
