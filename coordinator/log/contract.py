"""The contract of a log, on disk or in memory. Every implementation passes tests/contract/test_log.py.

Laws
    L1  An acknowledged batch stays at its offset; one offset has one value; the end only grows.
    L2  After any crash the log is a prefix of what was appended, cut at a batch boundary, with valid checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Protocol

from rota.coordinator.log.errors import AppendRefused, DamagedLog, Load, NotCached, OffsetOutOfRange, StorageFailed
from rota.coordinator.log.producers import Producers, Verification
from rota.coordinator.log.transactions import AbortedTransaction
from rota.protocol.dataclass import dataclass
from rota.protocol.records.batch import Codec
from rota.protocol.records.control import Marker

if TYPE_CHECKING:
    from rota.coordinator.log.file_part import Records

__all__ = [
    "AgeRead",
    "AppendRefused",
    "Appended",
    "DamagedLog",
    "Flush",
    "Load",
    "Log",
    "LogConfig",
    "NotCached",
    "OffsetOutOfRange",
    "Pair",
    "StorageFailed",
    "TimedOffset",
]

Pair = tuple[bytes | None, bytes | None]  # key and value of a record; a value of None is a tombstone


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The settings of one partition's log. Names and defaults are Kafka's topic configs; None means "no limit"."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    index_interval_bytes: int = 4096
    retention_ms: int | None = 7 * 24 * 3_600_000
    retention_bytes: int | None = None
    compact: bool = False
    delete: bool = True
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int | None = None
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = 24 * 3_600_000
    flush_messages: int | None = None
    flush_ms: int | None = None
    min_insync_replicas: int = 1
    message_bytes_max: int = 1_048_588
    log_append_time: bool = False
    producer_id_expiration_ms: int = 24 * 3_600_000
    timestamp_before_max_ms: int | None = None  # bounds of a timestamp against the clock
    timestamp_after_max_ms: int = 3_600_000
    codec: Codec | None = None  # the codec that batches are stored in; None keeps the producer's
    codec_level: int | None = None

    @property
    def rolls_after_ms(self) -> int:
        """The age at which a segment is full: records of the active segment are never compacted (RT4)."""
        lag_ms = self.max_compaction_lag_ms if self.compact else None
        return self.segment_ms if lag_ms is None else min(self.segment_ms, lag_ms)

    def is_overdue(self, now_ms: int, first_timestamp: int) -> bool:
        """RT4. Return whether a dirty segment whose first batch has that timestamp, in ms, has to be compacted."""
        return self.max_compaction_lag_ms is not None and 0 < first_timestamp < now_ms - self.max_compaction_lag_ms


@dataclass(slots=True)  # not frozen: one is made for each append, and a frozen one takes three times as long
class Appended:
    """The offsets of an appended batch. `append_time_ms` is -1 unless the log stamps its own time (LogAppendTime).

    For a duplicate it is the largest timestamp of the batch in the log, as in Kafka, with CreateTime and LogAppendTime.
    """

    base_offset: int
    last_offset: int
    append_time_ms: int = -1
    duplicate: bool = False  # the batch was in the log already; the offsets are those of the first append


@dataclass(frozen=True, slots=True)
class TimedOffset:
    """The offset that a search by timestamp finds; `timestamp` in ms since the epoch."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class Flush(Protocol):
    """One flush. The log's thread begins it, any thread runs it, and if that succeeded the log's thread finishes it."""

    def run(self) -> None:
        """Wait until everything that was appended before the flush began is on the medium.

        Raises StorageFailed: from then on the log has failed (see `Log.failure`).
        """

    def finish(self) -> None:
        """Advance the recovery point: a crash no longer loses the flushed records."""


class AgeRead(Protocol):
    """A read of segments' timestamps. The log's thread begins and finishes it, any thread runs it."""

    def run(self) -> None:
        """Read. What fails is raised by `finish`."""

    def finish(self) -> None:
        """Keep what was read, unless the log was truncated, or has failed, since the read began.

        Raises StorageFailed: a segment cannot be read, or is damaged. The log has not failed by that.
        """


class Log(Protocol):
    """One partition's records. Synchronous: a write goes to the page cache, a read comes from it."""

    config: LogConfig

    @property
    def failure(self) -> str | None:
        """Why the log cannot be used until it is reopened with recovery: a write, a truncation or an fsync failed."""

    @property
    def producers(self) -> Producers:
        """The idempotent producers that wrote here, as far as the log remembers them."""

    @property
    def log_start_offset(self) -> int:
        """First offset that may be read."""

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""

    @property
    def unflushed_messages(self) -> int:
        """Offsets that a crash of the machine may lose."""

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether a rolled segment was not flushed yet."""

    def append(
        self,
        batches: bytes | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        verification: Verification | None = None,
    ) -> Appended:
        """Check every batch (header, CRC, count, size, compaction key, producer sequence), give offsets, write.

        `batches` is one or more magic-2 batches back to back; all are written or none. The first batch of a
        transaction needs `verification`, from `producers.begin_verification`.
        Raises AppendRefused (nothing written) or StorageFailed.
        """

    def append_trusted(self, batches: bytes | memoryview, *, leader_epoch: int, now_ms: int) -> Appended:
        """Append batches that the broker itself has just built, see `append`: it checks only their header."""

    def append_marker(
        self,
        marker: Marker,
        *,
        producer_id: int,
        producer_epoch: int,
        leader_epoch: int,
        now_ms: int,
        is_v2: bool = False,
    ) -> Appended:
        """End the producer's transaction. With `is_v2` the epoch must be above that of the transaction's records.

        Raises AppendRefused (INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: nothing written), StorageFailed.
        """

    def append_pairs(self, pairs: list[Pair], *, leader_epoch: int, now_ms: int) -> Appended:
        """Write the broker's own records, at least one, as one batch: (key, value), all of the time `now_ms`.

        Raises StorageFailed.
        """

    def append_encoded(self, records: bytes, count: int, *, leader_epoch: int, now_ms: int) -> int:
        """Append records that `encode_pairs` has encoded, see `append_pairs`. Returns the log end offset."""

    def append_as_follower(self, batches: bytes | memoryview, *, leader_epoch: int) -> Appended | None:
        """Append batches of the leader's log, with their offsets, epochs and timestamps.

        Gaps between offsets, which compaction leaves, are allowed. Skips a last batch that is cut short, and everything
        from the first batch of an epoch above `leader_epoch` on. Returns None when nothing remains to be written.
        Raises AppendRefused (CORRUPT_MESSAGE, or OFFSET_OUT_OF_RANGE: not in order, or before the log end), or
        StorageFailed.
        """

    def read(
        self, offset: int, bytes_max: int, *, until: int | None = None, first_whole: bool = True, wait: bool = True
    ) -> bytes:
        """Return batches from the one that holds `offset` on, about `bytes_max` bytes; the last may be cut short.

        Returns the first batch whole even when it is larger than `bytes_max` (KIP-74); with `first_whole=False`
        returns b"" instead, without reading that batch. `until` (an offset at a batch boundary, such as the high
        watermark) ends the read; the default is the log end. Returns b"" at the end of the log.
        Raises OffsetOutOfRange, StorageFailed, and NotCached when `wait` is false and the bytes are not in the page
        cache. Raises DamagedLog when what was flushed is damaged: no recovery from the recovery point would mend it.
        """

    def read_to_send(
        self, offset: int, bytes_max: int, *, until: int | None = None, first_whole: bool = True
    ) -> Records:
        """As `read` that does not wait; many bytes of a file may come as a part of it, which is not read."""

    def aborted_transactions(self, offset: int, size_bytes: int, *, wait: bool = True) -> list[AbortedTransaction]:
        """Return the aborted transactions that have records in `size_bytes` from `offset` on; a few more, maybe.

        In the order of their markers. Raises StorageFailed, and NotCached when `wait` is false and the search needs
        bytes from the disk.
        """

    def offset_at(self, timestamp_ms: int, *, wait: bool = True) -> TimedOffset | None:
        """Return the first record with a timestamp of at least `timestamp_ms`; None when all are older.

        Raises StorageFailed, and NotCached when `wait` is false and the search needs bytes from the disk. Raises
        DamagedLog at damage, flushed or not; a read at the offset finds out which.
        """

    def max_timestamp(self, *, wait: bool = True) -> TimedOffset | None:
        """Return the first record with the largest timestamp; None in an empty log. Raises as `offset_at`."""

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at `offset`; -1 when unknown."""

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch <= leader_epoch, for truncation; (-1, -1) when unknown."""

    def delete_before(self, offset: int) -> int:
        """Move the log start, see `begin_delete_before`, and return it once it is durable. Raises StorageFailed."""

    def begin_delete_before(self, offset: int) -> Callable[[], None] | None:
        """DeleteRecords: move the log start up to `offset`, at once. Raises OffsetOutOfRange, StorageFailed.

        Returns the call that writes the log start to the medium, in any thread: it raises StorageFailed. The calls of
        logs that share a checkpoint are equal, and one of them writes for all. None when nothing has to be written.
        """

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last batch; -1 when the log has none."""

    @property
    def high_watermark_checkpoint(self) -> int:
        """The high watermark in the checkpoint file when the log was opened; 0 without one."""

    def truncate(self, offset: int) -> None:
        """`begin_truncate`, the call that it returns, and `finish_truncate` in one. Raises StorageFailed."""

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Truncate, see `truncate`, with `begin_truncate_fully_and_start_at`."""

    def begin_truncate(self, offset: int) -> Callable[[], None] | None:
        """Begin to remove all records from `offset` on, as a follower does. Raises StorageFailed.

        Returns the call that writes to the medium, in any thread, that nothing from `offset` on is flushed and that
        the log starts at or before `offset`; it raises StorageFailed. Then the records are removed, so
        that a crash at any time leaves a log that is not truncated, or is. The calls of logs that share a checkpoint
        are equal, and one of them writes for all that have begun; None when nothing has to be written.

        What has begun must be finished or cancelled before the next append, unless the log has failed meanwhile.
        """

    def begin_truncate_fully_and_start_at(self, offset: int) -> Callable[[], None] | None:
        """Begin to remove all records; the next one gets `offset`, where the leader's log starts. See `begin_truncate`.

        After a crash the log starts at `offset`.
        """

    def begin_read_kept(self) -> Callable[[], None] | None:
        """Return the call that reads, in any thread, what a truncation that has begun has to know of what stays.

        It reads the headers of at most one segment, and raises StorageFailed. None when nothing has to be read.
        """

    def begin_remove(self) -> Callable[[], None] | None:
        """Remove the records of a truncation that has begun, for all who use the log. Raises StorageFailed.

        Returns the call that removes them from the files, in any thread: if it raises StorageFailed, the log has
        failed. None unless a truncation has begun, or when its records are removed already. It reads nothing if the
        call of `begin_read_kept` has returned.
        """

    def finish_truncate(self) -> None:
        """End a truncation. Does nothing unless one has begun. Raises StorageFailed.

        It changes no file if the call of `begin_remove` has returned; else it does everything that is left.
        """

    def cancel_truncate(self) -> Callable[[], None] | None:
        """Leave the records, whether or not the truncation was written to the medium.

        Return the call that writes the log start to the medium again, in any thread, if the truncation has lowered it
        there: until then a crash brings deleted records back.
        Raises StorageFailed if it would remove all records, or removes them already: the log has to be reopened, and
        starts where it should.
        """

    def begin_read_ages(self, now_ms: int) -> AgeRead | None:
        """Return a read of timestamps that `retain` and `compaction` would read themselves; None when they know all.

        After it there may be another one. None while a truncation has begun and is not finished. Raises StorageFailed
        if the log has failed.
        """

    def retain(self, now_ms: int, *, high_watermark: int | None = None) -> int:
        """Delete whole old segments by time and size; returns bytes freed. A log that only compacts keeps all.

        Segments from the one with `high_watermark` on stay (RT3). By default everything is committed.
        Raises StorageFailed: a segment that cannot be removed stays in the log, and nothing is lost.
        """

    def retention(self, now_ms: int, *, high_watermark: int | None = None) -> Generator[None, None, None]:
        """The work of `retain` in steps of a few milliseconds, with a pause for other work between two steps.

        Every method of the log may be called between two steps.
        """

    def compact(self, now_ms: int, *, force: bool = False, high_watermark: int | None = None) -> int:
        """Keep the last value of each key in the inactive segments; returns bytes freed. Offsets do not change.

        Segments from the one with `high_watermark` on are left alone: a truncation may remove what is not committed,
        and must not find the committed value before it gone. By default everything is committed.
        """

    def compaction(
        self, now_ms: int, *, force: bool = False, high_watermark: int | None = None
    ) -> Generator[Callable[[], None], None, None]:
        """The work of `compact` in slices: call each in any thread, one after the other, then resume the generator.

        None while a truncation has begun and is not finished.

        A slice computes for a few milliseconds and may wait for the disk. Every method of the log may be called
        between slices. A slice that raises StorageFailed changes nothing, unless `failure` is set then: close the
        generator and begin again later.
        """

    def begin_flush(self, *, rolled: bool = False) -> Flush:
        """The flush of everything appended so far; `rolled`: of all but the active segment. Raises StorageFailed."""

    def flush(self) -> None:
        """Write everything that is appended so far to the medium. Raises StorageFailed."""

    def close(self) -> None:
        """Flush and release. A closed log may be opened again. Raises StorageFailed, always so after a failure."""

    def destroy(self) -> None:
        """Remove the log and its files."""
