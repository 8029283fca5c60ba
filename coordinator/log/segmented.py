"""The log proper: segments on some medium, the producers that wrote them, the epochs they were written in.

Laws
    L1  An acknowledged batch stays at its offset; one offset has one value; the end only grows, but for `truncate`.
    L2  What is in the log is a prefix of what was appended, cut at a batch boundary, with valid checksums.
    A refused append changes nothing. A failed one raises StorageFailed, and the log is reopened before it is used.
    A5  A failed fsync is not forgotten: the recovery point stays, whatever later fsyncs say, until a reopening.
    One thread owns the log and alone changes its state; other threads run `Flush.run` and the slices of a compaction.

The file is longer than 400 lines because one class owns the state of a log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final, cast

from rota.coordinator.log.batch_validation import Batches, admit, admit_replicated, admit_sequences
from rota.coordinator.log.compaction import Compaction, SlicedWork, cleanable
from rota.coordinator.log.contract import (
    Appended,
    DamagedLog,
    LogConfig,
    OffsetOutOfRange,
    Pair,
    StorageFailed,
    TimedOffset,
)
from rota.coordinator.log.epochs import LeaderEpochs
from rota.coordinator.log.files import Buffer
from rota.coordinator.log.producers import Producers, Verification
from rota.coordinator.log.retention import expired_count
from rota.coordinator.log.segment import RELATIVE_OFFSET_MAX, Segment
from rota.coordinator.log.segment_ages import SegmentAges, unknown_ages
from rota.coordinator.log.segment_storage import SEGMENTS_AT_ONCE_MAX, SegmentStorage
from rota.coordinator.log.snapshots import write_snapshot
from rota.coordinator.log.store import Sync
from rota.coordinator.log.times import first_since, record_of_max_timestamp
from rota.coordinator.log.transactions import AbortedTransaction
from rota.coordinator.log.truncation import KeptRecords, Removal, Truncation
from rota.protocol.records.batch import (
    BATCH_HEADER_BYTES,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    headers,
    read_header,
    stamp,
    stamp_append_time,
)
from rota.protocol.records.control import Marker, read_marker, write_marker
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import encode_pairs
from rota.protocol.records.record import write_encoded

if TYPE_CHECKING:
    from rota.coordinator.log.file_part import Records

PRODUCER_CHECK_MS: Final = 600_000
SEGMENT_BYTES_MAX: Final = 0x7FFF_FFFF  # an index has positions of 31 bits


class SegmentedLog:
    """The log of one partition. `contract.Log` documents its methods."""

    __slots__ = (
        "_active",
        "_bases",
        "_cleaned_until",
        "_end",
        "_expired_ms",
        "_kept",
        "_recovery_point",
        "_removal",
        "_segments",
        "_staged",
        "_start",
        "_storage",
        "_syncing",
        "_truncations",
        "_with_aborted",
        "config",
        "epochs",
        "failure",
        "high_watermark_checkpoint",
        "producers",
        "truncation",
    )

    def __init__(
        self,
        storage: SegmentStorage,
        config: LogConfig,
        segments: list[Segment],
        *,
        epochs: LeaderEpochs,
        producers: Producers,
        start_offset: int = 0,
        recovery_point: int = 0,
        cleaned_until: int = 0,
        high_watermark: int = 0,
    ) -> None:
        self._storage, self.config, self.epochs, self.producers = storage, config, epochs, producers
        self._use(segments)
        self._end = self._active.next_offset
        self._start = min(max(start_offset, self._bases[0]), self._end)
        self._recovery_point, self._cleaned_until = min(recovery_point, self._end), min(cleaned_until, self._end)
        self._truncations = self._expired_ms = 0
        self._staged: Segment | None = None  # what a compaction is about to swap in
        self.truncation: Truncation | None = None  # it has begun and is not finished
        self._kept: KeptRecords | None = None  # of that truncation
        self._removal: Removal | None = None  # of that truncation, when its records are removed
        self.failure: str | None = None
        self.high_watermark_checkpoint = min(high_watermark, self._end)
        self._syncing = Lock()  # held by one flush at a time, so that none succeeds after another has failed

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._start}-{self._end} in {len(self._segments)} segments>"

    @property
    def log_start_offset(self) -> int:
        return self._start

    @property
    def log_end_offset(self) -> int:
        return self._end

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def recovery_point(self) -> int:
        """The offset up to which everything is on the medium."""
        return self._recovery_point

    @property
    def unflushed_messages(self) -> int:
        """Offsets that a crash of the machine may lose."""
        return self._end - self._recovery_point

    @property
    def has_unflushed_segments(self) -> bool:
        return self._recovery_point < self._active.base_offset

    @property
    def cleaned_until(self) -> int:
        """Compaction has seen everything before this offset."""
        return self._cleaned_until

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last batch; -1 when none was written."""
        return self.epochs.latest

    def append(
        self,
        batches: bytes | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        verification: Verification | None = None,
    ) -> Appended:
        found = admit(batches, self.config)
        sent = admit_sequences(found, self.producers, verification)
        if sent is not None:
            return Appended(sent.first_offset, sent.last_offset, sent.timestamp, duplicate=True)
        return self._write(bytearray(batches), found, leader_epoch, now_ms)

    def append_trusted(self, batches: bytes | memoryview, *, leader_epoch: int, now_ms: int) -> Appended:
        data = bytearray(batches)
        header = read_header(data)
        found = [(0, header)] if header.size_bytes == len(data) else list(headers(data))
        return self._write(data, found, leader_epoch, now_ms)

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
        self.producers.check_marker(producer_id, producer_epoch, marker.coordinator_epoch, is_v2=is_v2)
        data = write_marker(marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=now_ms)
        return self.append_trusted(data, leader_epoch=leader_epoch, now_ms=now_ms)

    def append_pairs(self, pairs: list[Pair], *, leader_epoch: int, now_ms: int) -> Appended:
        first = self._end
        end = self.append_encoded(encode_pairs(pairs), len(pairs), leader_epoch=leader_epoch, now_ms=now_ms)
        return Appended(first, end - 1, now_ms if self.config.log_append_time else -1)

    def append_encoded(self, records: bytes, count: int, *, leader_epoch: int, now_ms: int) -> int:
        if not count:
            raise ValueError("a batch holds at least one record")
        data = write_encoded(records, count, now_ms, self._end, leader_epoch)
        if self.config.log_append_time:
            return self.append_trusted(data, leader_epoch=leader_epoch, now_ms=now_ms).last_offset + 1
        self._check()
        try:
            return self._append_own(data, count, leader_epoch, now_ms)
        except StorageFailed as error:
            raise self._failed(error) from error

    def append_as_follower(self, batches: bytes | memoryview, *, leader_epoch: int) -> Appended | None:
        found, size_bytes = admit_replicated(batches, self._end, leader_epoch)
        if not found:
            return None
        if found[-1][1].last_offset - self._end <= RELATIVE_OFFSET_MAX:
            return self._place(batches[:size_bytes], found, found[-1][1].max_timestamp)
        first = found[0][1].base_offset
        for position, header in found:  # compaction has left a gap that the index of one segment cannot span
            self._place(batches[position : position + header.size_bytes], [(0, header)], header.max_timestamp)
        return Appended(first, self._end - 1)

    def read(
        self, offset: int, bytes_max: int, *, until: int | None = None, first_whole: bool = True, wait: bool = True
    ) -> bytes:
        return cast("bytes", self._records(offset, bytes_max, until, first_whole, wait, in_parts=False))

    def read_to_send(
        self, offset: int, bytes_max: int, *, until: int | None = None, first_whole: bool = True
    ) -> Records:
        return self._records(offset, bytes_max, until, first_whole, False, in_parts=True)

    def _records(
        self, offset: int, bytes_max: int, until: int | None, first_whole: bool, wait: bool, *, in_parts: bool
    ) -> Records:
        end = self._end if until is None else min(until, self._end)
        if not self._start <= offset <= self._end:
            raise OffsetOutOfRange(offset, self._start, self._end)
        if offset >= end or (not first_whole and bytes_max < BATCH_HEADER_BYTES):
            return b""
        try:
            return self._read(offset, bytes_max, end, first_whole, wait, in_parts)
        except CorruptBatch as error:
            raise self._damaged(offset, error) from error

    def aborted_transactions(self, offset: int, size_bytes: int, *, wait: bool = True) -> list[AbortedTransaction]:
        if not self._with_aborted:
            return []
        at = max(bisect_right(self._bases, offset) - 1, 0)
        segment = self._segments[at]
        end = segment.offset_bound(segment.position_of(offset, wait=wait), size_bytes, wait=wait)
        if end is None:
            end = self._bases[at + 1] if at + 1 < len(self._bases) else self._end
        found: list[AbortedTransaction] = []
        for segment in self._with_aborted:
            if segment.next_offset > offset:
                more, is_complete = segment.aborted.find(offset, end)
                found += more
                if is_complete:
                    break
        return found

    def offset_at(self, timestamp_ms: int, *, wait: bool = True) -> TimedOffset | None:
        try:
            return first_since(self._segments, timestamp_ms, self._start, wait=wait)
        except CorruptBatch as error:
            raise DamagedLog(f"the log is damaged: {error}") from error

    def max_timestamp(self, *, wait: bool = True) -> TimedOffset | None:
        try:
            return record_of_max_timestamp(self._segments, wait=wait)
        except CorruptBatch as error:
            raise DamagedLog(f"the log is damaged: {error}") from error

    def epoch_at(self, offset: int) -> int:
        return self.epochs.at(offset)

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        return self.epochs.end(leader_epoch, self._end)

    def delete_before(self, offset: int) -> int:
        write = self.begin_delete_before(offset)
        if write is not None:
            write()
        return self._start

    def begin_delete_before(self, offset: int) -> Callable[[], None] | None:
        if not 0 <= offset <= self._end:
            raise OffsetOutOfRange(offset, self._start, self._end)
        self._start_at(offset)
        return None

    def truncate(self, offset: int) -> None:
        self._truncate_now(self.begin_truncate(offset))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self._truncate_now(self.begin_truncate_fully_and_start_at(offset))

    def _truncate_now(self, write: Callable[[], None] | None) -> None:
        if write is not None:
            try:
                write()
            except StorageFailed as error:
                raise self._failed(error) from error
        self.finish_truncate()

    def begin_read_kept(self) -> Callable[[], None] | None:
        truncation = self.truncation
        if truncation is None or truncation.is_full:
            return None
        segments = self._segments[: bisect_right(self._bases, truncation.offset)]
        self._kept = KeptRecords(truncation.offset, segments, self._storage.snapshots)
        return self._kept.run

    def cancel_truncate(self) -> Callable[[], None] | None:
        truncation = self.truncation
        if truncation is None:
            return None
        if self._removal is not None:
            raise self._failed(StorageFailed("a truncation was interrupted while files were removed"))
        if truncation.is_full:  # its new log start may be on the medium
            raise self._failed(StorageFailed("a truncation of all records was interrupted"))
        self._truncations += 1
        self._recovery_point = max(self._recovery_point, truncation.recovery_point_before)
        self.truncation = self._kept = None
        return self.begin_delete_before(self._start) if truncation.start_offset < self._start else None

    def _end_truncation(self) -> None:
        """Finish one that removes records, or of all records: the medium may have the new log start. Cancel another."""
        self._check()
        if self._removal is not None:
            self.finish_truncate()
        elif self.truncation is not None and self.truncation.is_full:
            self._truncate_now(self._write_truncation())
        self.cancel_truncate()

    def begin_truncate(self, offset: int) -> Callable[[], None] | None:
        if offset >= self._end:
            self._forget_empty_epoch()
            return None
        keep = bisect_right(self._bases, offset)
        flushed = self._bases[keep - 1] if keep else offset  # a batch that spans `offset` goes whole
        start_offset = min(self._start, offset)
        return self._begin_truncation(Truncation(offset, start_offset, flushed, self._recovery_point, is_full=False))

    def _forget_empty_epoch(self) -> None:
        """RE6. The last epoch may have no record here any more, and be unknown to the leader.

        It is saved at once: no truncation goes on whose end the epoch of the next record would wait for.
        """
        try:
            if self.epochs.truncate(self._end):
                self._storage.save_epochs(self.epochs)
        except StorageFailed as error:
            raise self._failed(error) from error

    def begin_truncate_fully_and_start_at(self, offset: int) -> Callable[[], None] | None:
        return self._begin_truncation(Truncation(offset, offset, offset, offset, is_full=True))

    def _begin_truncation(self, truncation: Truncation) -> Callable[[], None] | None:
        self._check()
        assert self.truncation is None, "one truncation at a time"
        self.truncation = truncation
        self._truncations += 1  # a flush that runs now must not move the recovery point up again
        self._recovery_point = min(self._recovery_point, truncation.recovery_point)
        self._cleaned_until = min(self._cleaned_until, truncation.offset)
        return self._write_truncation()

    def _write_truncation(self) -> Callable[[], None] | None:
        """Return the call that writes to the medium where the log will start and end; None without a medium."""
        return None

    def begin_remove(self) -> Callable[[], None] | None:
        self._check()
        truncation = self.truncation
        if truncation is None or self._removal is not None:
            return None
        steps: list[Callable[[], None]] = []
        if self._staged is not None:  # else a start would complete its swap, with what is cut now
            steps.append(self._storage.begin_remove(self._staged))
        try:
            if truncation.is_full:
                steps += self._begin_truncate_fully(truncation.offset)
            else:
                steps += self._begin_remove_from(truncation.offset, self._read_kept())
        except StorageFailed as error:
            raise self._failed(error) from error
        self._truncations += 1
        self._staged, self._removal = None, Removal(steps)
        return self._remove

    def _remove(self) -> None:
        """Change the files, in any thread. Raises StorageFailed."""
        removal = self._removal
        assert removal is not None
        try:
            removal.run()
        except StorageFailed as error:
            raise self._failed(error) from error

    def finish_truncate(self) -> None:
        self.begin_remove()
        truncation = self.truncation
        if truncation is None:
            return
        self._remove()
        self._storage.note_names()
        if not truncation.is_full:
            self._recovery_point = min(truncation.recovery_point_before, self._end)
        self.truncation = self._kept = self._removal = None

    def _read_kept(self) -> KeptRecords:
        """Return what was read in another thread, or read it now. Raises StorageFailed."""
        kept = self._kept
        if kept is None or not kept.is_read:
            read = self.begin_read_kept()
            kept = self._kept
            assert read is not None
            assert kept is not None
            read()
        return kept

    def _begin_remove_from(self, offset: int, kept: KeptRecords) -> list[Callable[[], None]]:
        """The last segment goes first, so that a crash in between leaves a shorter log."""
        keep = bisect_right(self._bases, offset)
        steps = [self._storage.begin_remove(segment) for segment in reversed(self._segments[keep:])]
        if not keep:
            steps.append(self._begin_only_segment(offset))
        else:
            self._use(self._segments[:keep])
        if kept.cut is not None:
            steps.append(self._active.begin_truncate(kept.cut))
        self._end = self._active.next_offset
        self._start = min(self._start, self._end)
        self._cleaned_until = min(self._cleaned_until, self._end)
        if self.epochs.truncate(self._end):
            steps.append(self._storage.begin_save_epochs(self.epochs))
        snapshots, whole = self._storage.snapshots, kept.snapshots.offsets()
        steps += [snapshots.begin_remove(at) for at in snapshots.offsets() if at > self._end or at not in whole]
        ended = self.producers.ended_before(self._end)
        self.producers.replace(kept.producers)
        self.producers.add_ended(ended)
        return steps

    def _begin_truncate_fully(self, offset: int) -> list[Callable[[], None]]:
        """The last segment goes first. A log without segments starts at the start that is on the medium."""
        steps = [self._storage.begin_remove(segment) for segment in reversed(self._segments)]
        steps.append(self._begin_only_segment(offset))
        self._start = self._end = self._recovery_point = self._cleaned_until = offset
        self.epochs.truncate(0)
        steps.append(self._storage.begin_save_epochs(self.epochs))
        self.producers.clear()
        snapshots = self._storage.snapshots
        return [*steps, *[snapshots.begin_remove(at) for at in snapshots.offsets()]]

    def _begin_only_segment(self, offset: int) -> Callable[[], None]:
        """Use one empty segment. The call makes its file, which may have the name of one that is removed before."""
        segment, create = self._storage.begin_create(offset, self.config.index_interval_bytes, -1)
        self._use([segment])
        return create

    def begin_read_ages(self, now_ms: int) -> SegmentAges | None:
        self._check()
        if self.truncation is not None:
            return None
        truncations = self._truncations
        return unknown_ages(
            self._segments,
            self.config,
            max(self._cleaned_until, self._start),
            now_ms,
            lambda: truncations == self._truncations and self.failure is None,
        )

    def retain(self, now_ms: int, *, high_watermark: int | None = None) -> int:
        before = self.size_bytes
        for _ in self.retention(now_ms, high_watermark=high_watermark):
            pass
        return before - self.size_bytes

    def retention(self, now_ms: int, *, high_watermark: int | None = None) -> Generator[None, None, None]:
        if abs(now_ms - self._expired_ms) >= PRODUCER_CHECK_MS:  # a wall clock that stepped back holds nothing up
            self._expired_ms = now_ms
            self.producers.expire(now_ms, self.config.producer_id_expiration_ms)
        truncations = self._truncations
        while self.truncation is None and truncations == self._truncations:  # else the high watermark is outdated
            count = expired_count(self._segments, self.config, self._start, now_ms, high_watermark)
            if count == len(self._segments):
                self._roll(now_ms)
            self._remove_first(min(count, SEGMENTS_AT_ONCE_MAX))
            if count <= SEGMENTS_AT_ONCE_MAX:
                return
            yield

    def _remove_first(self, count: int) -> None:
        removed = 0
        try:
            for segment in self._segments[:count]:
                self._storage.remove(segment)
                removed += 1
        finally:
            if removed:
                self._use(self._segments[removed:])
                self._start_at(self._bases[0])
        for at in self._storage.snapshots.offsets():
            if removed and at < self._bases[0]:
                self._storage.snapshots.remove(at)

    def compact(self, now_ms: int, *, force: bool = False, high_watermark: int | None = None) -> int:
        before = self.size_bytes
        for work in self.compaction(now_ms, force=force, high_watermark=high_watermark):
            work()
        return before - self.size_bytes

    def compaction(
        self, now_ms: int, *, force: bool = False, high_watermark: int | None = None
    ) -> Generator[Callable[[], None], None, None]:
        if self.truncation is not None:  # what it has read of the segments must stay true until its end
            return
        first_dirty = max(self._cleaned_until, self._start)
        ends = [self.producers.first_unstable_offset, high_watermark]
        unstable = min((end for end in ends if end is not None), default=None)
        found = cleanable(self._segments, self.config, first_dirty, now_ms, force=force, unstable_offset=unstable)
        if found is None:
            return
        segments, truncations = self._segments[:-1], self._truncations
        aborted = [segment.aborted.copy() for segment in self._with_aborted]
        compaction = Compaction(self.config, found, self.producers.last_batches(), now_ms, aborted=aborted)
        mapping = SlicedWork(compaction.map_keys([segment.reader() for segment in segments]))
        while not mapping.is_done:
            yield mapping.advance
            if truncations != self._truncations:
                return
        for group in compaction.groups(segments):
            if not (yield from self._compact_group(compaction, group, truncations)):
                return  # the pass has not met all batches of the transactions that end in the next groups
        self._cleaned_until = max(self._cleaned_until, compaction.cleaned_until)

    def _compact_group(
        self, compaction: Compaction, group: list[Segment], truncations: int
    ) -> Generator[Callable[[], None], None, bool]:
        """Write these segments again as one and swap it in, unless one was removed from the log meanwhile.

        Return whether it was swapped in.
        """

        def is_current() -> bool:
            return truncations == self._truncations and all(segment in self._segments for segment in group)

        if not is_current():
            return False
        staged = self._storage.stage(group[0].base_offset, group[0].index_interval_bytes)
        is_swapping = False
        try:
            cleaning = SlicedWork(compaction.clean([segment.reader() for segment in group], staged))
            while not cleaning.is_done:
                yield cleaning.advance
                if not is_current():
                    return False
            self._staged = staged
            self._storage.prepare_swap(staged)
            yield LogFlush(self, self._recovery_point, [self._storage.begin_sync_names()]).run
            if is_current():
                is_swapping = True  # from here on `staged` may be the only copy
                self._swap(group, staged)
                self._staged = None
        finally:
            if not is_swapping and self.failure is None:  # a failed log leaves its files to its recovery
                self._discard(staged)
        return is_swapping

    def _discard(self, staged: Segment) -> None:
        """Remove the files; a failure is ignored, or the files are removed before the next truncation."""
        with suppress(StorageFailed):
            self._storage.discard(staged)
            self._staged = None

    def begin_flush(self, *, rolled: bool = False) -> LogFlush:
        self._check()
        end = self._active.base_offset if rolled else self._end
        if self.truncation is not None:
            end = min(end, self.truncation.recovery_point)
        return LogFlush(self, end, self._unflushed(end))

    def flush(self) -> None:
        flush = self.begin_flush()
        flush.run()
        flush.finish()

    def close(self) -> None:
        self._end_truncation()
        self.flush()
        self._snapshot()
        self._active.seal()

    def destroy(self) -> None:
        for segment in self._segments:
            self._storage.remove(segment)

    def _damaged(self, offset: int, error: CorruptBatch) -> StorageFailed:
        kind = DamagedLog if offset < self._recovery_point else StorageFailed
        return kind(f"the log is damaged near offset {offset}: {error}")

    def _check(self) -> None:
        if self.failure is not None:
            raise StorageFailed(f"the log has to be recovered: {self.failure}")

    def _failed(self, error: StorageFailed) -> StorageFailed:
        """Note that the log cannot be used any more. The first reason stays."""
        self.failure = self.failure or str(error)
        return error

    def _unflushed(self, end: int) -> list[Sync]:
        """Return the syncs of the segments between the recovery point and `end`.

        L2. The oldest segment first: a loss of power between two of them must leave no hole.
        """
        if end <= self._recovery_point:
            return []
        first = max(bisect_right(self._bases, self._recovery_point) - 1, 0)
        segments = [segment for segment in self._segments[first:] if segment.base_offset < end]
        syncs = [sync for segment in segments for sync in segment.begin_sync()]
        return [*syncs, self._storage.begin_sync_names()]

    def _write(self, data: bytearray, found: Batches, leader_epoch: int, now_ms: int) -> Appended:
        offset = self._end
        append_time_ms = now_ms if self.config.log_append_time else -1
        for position, header in found:
            stamp(data, position, base_offset=offset, leader_epoch=leader_epoch)
            header.base_offset, header.leader_epoch = offset, leader_epoch
            if append_time_ms >= 0:
                stamp_append_time(data, position, append_time_ms=append_time_ms)
                header.max_timestamp = append_time_ms
                header.attributes |= LOG_APPEND_TIME_BIT
            offset += header.last_offset_delta + 1
        return self._place(data, found, now_ms, append_time_ms)

    def _place(self, data: Buffer, found: Batches, now_ms: int, append_time_ms: int = -1) -> Appended:
        """Write batches that have their offsets and their epochs."""
        self._check()
        assert self.truncation is None, "a truncation has begun and is not finished"
        try:
            return self._append(data, found, now_ms, append_time_ms)
        except StorageFailed as error:
            raise self._failed(error) from error

    def _append(self, data: Buffer, found: Batches, now_ms: int, append_time_ms: int) -> Appended:
        end = found[-1][1].next_offset
        if self._is_full(len(data), end - 1, max([header.max_timestamp for _, header in found]), now_ms):
            self._roll_before(found[0][1].base_offset, end - 1, now_ms)
        self._active.append(data, found)
        is_new_epoch = False
        for position, header in found:
            if header.producer_id >= 0:
                if header.attributes & CONTROL_BIT:
                    self._record_marker(data, position, header)
                else:
                    self.producers.record(header)
            if header.leader_epoch != self.epochs.latest:
                is_new_epoch |= self.epochs.assign(header.leader_epoch, header.base_offset)
        self._end = end
        if is_new_epoch:
            self._storage.save_epochs(self.epochs)
        return Appended(found[0][1].base_offset, end - 1, append_time_ms)

    def _record_marker(self, data: Buffer, position: int, header: BatchHeader) -> None:
        """Record a control batch that was appended to the active segment."""
        aborted = self.producers.record(header, read_marker(data, position))
        if aborted is not None:
            self._active.aborted.append(aborted)
            self._find_aborted()

    def _append_own(self, data: bytes, count: int, leader_epoch: int, now_ms: int) -> int:
        """As `_append`, of one batch of `append_encoded`: no producer, one epoch, one timestamp. Returns the end."""
        first = self._end
        last = first + count - 1
        if self._is_full(len(data), last, now_ms, now_ms):
            self._roll(now_ms, first)
        self._active.append_own(data, first, last, now_ms)
        self._end = last + 1
        if leader_epoch != self.epochs.latest and self.epochs.assign(leader_epoch, first):
            self._storage.save_epochs(self.epochs)
        return last + 1

    def _read(self, offset: int, bytes_max: int, end: int, first_whole: bool, wait: bool, in_parts: bool) -> Records:
        at = max(bisect_right(self._bases, offset) - 1, 0)
        while at < len(self._segments):
            segment = self._segments[at]
            position = segment.position_of(offset, wait=wait)
            limit = segment.size_bytes if end >= segment.next_offset else segment.position_of(end, wait=wait)
            if position < limit:
                if in_parts and (part := segment.part(position, bytes_max, limit)) is not None:
                    return part
                return segment.read(position, bytes_max, limit, first_whole=first_whole, wait=wait)
            at += 1
        return b""

    def _is_full(self, size_bytes: int, last_offset: int, newest_ms: int, now_ms: int) -> bool:
        active, held_bytes = self._active, self._active.store.size_bytes
        if not active.can_hold(last_offset):
            return True
        if not held_bytes:
            return False
        if held_bytes + size_bytes > self.config.segment_bytes:
            return held_bytes + size_bytes > SEGMENT_BYTES_MAX or not self._storage.has_many_unsynced
        first_ms = active.first_timestamp
        if first_ms >= 0:
            is_old = newest_ms - first_ms > self.config.rolls_after_ms
        else:
            is_old = active.created_ms >= 0 and now_ms - active.created_ms > self.config.rolls_after_ms
        return is_old and not self._storage.has_many_unsynced

    def _roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Begin a segment at `base_offset`, by default at the log end. An empty active segment is replaced."""
        base_offset = self._end if base_offset is None else base_offset
        try:
            if self._active.size_bytes:
                self._active.seal()
                self._snapshot()
                self._use([*self._segments, self._new_segment(base_offset, now_ms)])
            elif self._active.base_offset != base_offset:
                empty, kept = self._active, self._segments[:-1]
                self._use([*kept, self._new_segment(base_offset, now_ms)])  # first: a crash must leave one of the two
                self._storage.remove(empty)
        except StorageFailed as error:
            raise self._failed(error) from error

    def _roll_before(self, first_offset: int, last_offset: int, now_ms: int) -> None:
        """Begin the segment of these offsets at the log end, if its indexes can hold them.

        L2. A gap that a follower copies is then within a segment: between two it would end the log after a loss of
        power.
        """
        is_near = last_offset - self._end <= RELATIVE_OFFSET_MAX
        self._roll(now_ms, self._end if is_near else first_offset)

    def _new_segment(self, base_offset: int, now_ms: int = -1) -> Segment:
        return self._storage.create(base_offset, self.config.index_interval_bytes, now_ms)

    def _snapshot(self) -> None:
        """Producer state as of the end, so that a start has not to read the log for it."""
        snapshots = self._storage.snapshots
        taken = snapshots.offsets()
        if not self._end or (taken and taken[-1] >= self._end):
            return
        snapshots.save(self._end, write_snapshot(self.producers.all()))
        for at in taken:
            if at not in self._bases:
                snapshots.remove(at)

    def _start_at(self, offset: int) -> None:
        if offset > self._start:
            self._start = offset
            if self.epochs.begin(offset):
                self._storage.save_epochs(self.epochs)

    def _swap(self, group: list[Segment], staged: Segment) -> None:
        at = self._segments.index(group[0])
        try:
            self._storage.swap(group, staged)
        except StorageFailed as error:
            raise self._failed(error) from error
        self._use([*self._segments[:at], staged, *self._segments[at + len(group) :]])

    def _use(self, segments: list[Segment]) -> None:
        self._segments, self._bases = segments, [segment.base_offset for segment in segments]
        self._active = segments[-1]
        self._find_aborted()

    def _find_aborted(self) -> None:
        self._with_aborted = [segment for segment in self._segments if segment.aborted]


class LogFlush:
    """See `contract.Flush`."""

    __slots__ = ("_end", "_log", "_syncs", "_truncations")

    def __init__(self, log: SegmentedLog, end: int, syncs: list[Sync]) -> None:
        self._log, self._end, self._syncs, self._truncations = log, end, syncs, log._truncations

    def run(self) -> None:
        log = self._log
        with log._syncing:
            log._check()
            try:
                for sync in self._syncs:
                    sync.run()
            except StorageFailed as error:
                raise log._failed(error) from error

    def finish(self) -> None:
        log = self._log
        for sync in self._syncs:
            sync.finish()
        if self._truncations == log._truncations:
            log._recovery_point = max(log._recovery_point, self._end)
