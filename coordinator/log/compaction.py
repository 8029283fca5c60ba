"""Compaction keeps the last value of each key, at its offset.

Laws
    G5  Replaying the compacted log gives what replaying the log gave.
        Offsets do not change, the active segment is not touched, a batch keeps its base and last offset.
        A tombstone stays for `delete_retention_ms` after the first pass that met it (its delete horizon, KIP-534).
        A producer's last batch stays, if only as a header, so that its last sequence is not forgotten.
        Work is done in slices; what happens to the log in between only ends it early: after a removed segment no later
        one is rewritten.
        A pass that fails leaves the log as it was.
    XL5 Records of aborted transactions go, and nothing from the first unstable offset on is touched. A marker, and an
        aborted transaction's entry in the index, stay while a pass still meets a batch of their transaction. Then the
        entry goes, and the marker `delete_retention_ms` later, unless it alone has its producer's last epoch.
    RT4 A record is compacted at the latest max.compaction.lag.ms after its time, however little is dirty, when a later
        record has closed its segment (KIP-354).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.producer import NO_OFFSET
from rota.coordinator.log.producers import LastBatch
from rota.coordinator.log.segment import RELATIVE_OFFSET_MAX, Headers, Segment
from rota.coordinator.log.segment_storage import SEGMENTS_AT_ONCE_MAX
from rota.coordinator.log.transactions import AbortedTransaction, TransactionIndex
from rota.protocol.dataclass import dataclass
from rota.protocol.records.batch import BatchHeader, read_header
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import Record, read_records, rewrite_batch

KEYS_PER_PASS_MAX: Final = 500_000
SLICE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets to compact: dirty from `first_dirty` up to `end`; earlier ones are clean and read again."""

    first_dirty: int
    end: int


def cleanable(
    segments: Sequence[Segment],
    config: LogConfig,
    first_dirty: int,
    now_ms: int,
    *,
    force: bool,
    unstable_offset: int | None = None,
) -> Range | None:
    """Return the offsets to clean; None when too few are dirty. The last segment is the active one.

    The segment that has the first unstable offset, and those after it, are left alone.
    """
    end = segments[-1].base_offset
    if unstable_offset is not None:
        end = max([segment.base_offset for segment in segments if segment.base_offset <= unstable_offset] or [0])
    if config.min_compaction_lag_ms > 0:
        for segment in segments[:-1]:
            if segment.next_offset > first_dirty and segment.largest_timestamp > now_ms - config.min_compaction_lag_ms:
                end = min(end, segment.base_offset)
                break
    inactive = [segment for segment in segments[:-1] if segment.base_offset < end and segment.size_bytes]
    dirty = sum(segment.size_bytes for segment in inactive if segment.next_offset > first_dirty)
    total = sum(segment.size_bytes for segment in inactive)
    is_enough = dirty > total * config.min_cleanable_dirty_ratio or has_overdue(segments, config, first_dirty, now_ms)
    if not total or not (force or (dirty and is_enough)):
        return None
    return Range(min(first_dirty, end), end)


def has_overdue(segments: Sequence[Segment], config: LogConfig, first_dirty: int, now_ms: int) -> bool:
    """RT4. Return whether a dirty segment that is not the active one has begun before max.compaction.lag.ms."""
    if config.max_compaction_lag_ms is None:
        return False
    dirty = [segment for segment in segments[:-1] if segment.next_offset > first_dirty and segment.size_bytes]
    return any(config.is_overdue(now_ms, segment.first_timestamp) for segment in dirty)


def by_producer(aborted: Iterable[AbortedTransaction]) -> dict[int, list[AbortedTransaction]]:
    """Return the aborted transactions of each producer id, in their order."""
    found: dict[int, list[AbortedTransaction]] = {}
    for transaction in aborted:
        found.setdefault(transaction.producer_id, []).append(transaction)
    return found


class TransactionsOfPass:
    """The transactions that a pass over the batches of a log, in order, meets."""

    __slots__ = ("_aborted", "_met")

    def __init__(self, aborted: Mapping[int, Sequence[AbortedTransaction]]) -> None:
        """`aborted`: the aborted transactions of each producer id, in the order of their markers."""
        self._aborted = aborted
        self._met: set[int] = set()  # producers with a batch since their last marker

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether a batch of data belongs to an aborted transaction. The pass meets it."""
        if not header.is_transactional:
            return False
        self._met.add(header.producer_id)
        return self._spanning(header) is not None

    def marker_ends(self, header: BatchHeader) -> tuple[bool, AbortedTransaction | None]:
        """Return whether the pass has met a batch of the transaction of this control batch.

        The second result is that transaction if it was aborted.
        """
        if header.producer_id not in self._met:
            return False, None
        self._met.remove(header.producer_id)
        return True, self._spanning(header)

    def _spanning(self, header: BatchHeader) -> AbortedTransaction | None:
        known = self._aborted.get(header.producer_id, ())
        at = bisect_left(known, header.last_offset, key=lambda transaction: transaction.last_offset)
        if at < len(known) and known[at].first_offset <= header.last_offset:
            return known[at]
        return None


class Compaction:
    """One pass over a log's inactive segments: `map_keys`, then `clean` for each of the `groups`.

    Both yield between slices. They read and write only what they are given, so that any thread may run them.
    """

    def __init__(
        self,
        config: LogConfig,
        what: Range,
        last_batches: dict[int, LastBatch],
        now_ms: int,
        keys_max: int = KEYS_PER_PASS_MAX,
        *,
        aborted: Sequence[TransactionIndex] = (),
    ) -> None:
        """`last_batches` are those of the log's producers, by producer id; `aborted` is the index of each segment."""
        self._config, self._range, self._now_ms = config, what, now_ms
        self._last_batches, self._keys_max = last_batches, keys_max
        self._latest: dict[bytes, int] = {}
        self._mapped_end = what.first_dirty
        self._aborted, self._mapped, self._cleaned = aborted, TransactionsOfPass({}), TransactionsOfPass({})

    @property
    def cleaned_until(self) -> int:
        """The first dirty offset for the next pass."""
        return self._mapped_end

    def map_keys(self, segments: Sequence[Segment]) -> Iterator[None]:
        """First half: the last offset of each key in the dirty part, as far as `keys_max` allows."""
        first_dirty, aborted = self._range.first_dirty, by_producer(chain.from_iterable(self._aborted))
        self._mapped, self._cleaned = TransactionsOfPass(aborted), TransactionsOfPass(aborted)
        for segment in segments:
            read_bytes = 0
            if segment.next_offset <= first_dirty or segment.base_offset >= self._range.end:
                continue
            for _, header, batch in segment.scan():
                read_bytes += header.size_bytes
                if header.last_offset >= first_dirty:
                    self._map_batch(header, batch)
                if len(self._latest) >= self._keys_max:
                    return
                if read_bytes >= SLICE_BYTES:
                    read_bytes = 0
                    yield
        self._mapped_end = self._range.end

    def _map_batch(self, header: BatchHeader, batch: bytes) -> None:
        if not header.is_control and not self._mapped.is_aborted(header):
            latest = self._latest
            for record in read_records(batch):
                if record.key is not None and record.offset >= self._range.first_dirty:
                    latest[record.key] = record.offset
        self._mapped_end = max(self._mapped_end, header.next_offset)

    def groups(self, segments: Sequence[Segment]) -> list[list[Segment]]:
        """Return the groups of adjacent segments to merge: few, and at most `segment_bytes` together."""
        groups: list[list[Segment]] = []
        size_bytes = 0
        for segment in segments:
            if segment.base_offset >= self._mapped_end or segment.base_offset >= self._range.end:
                break
            size_bytes += segment.size_bytes
            fits = bool(groups) and len(groups[-1]) < SEGMENTS_AT_ONCE_MAX
            fits = fits and segment.next_offset - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
            if fits and size_bytes <= self._config.segment_bytes:
                groups[-1].append(segment)
            else:
                groups.append([segment])
                size_bytes = segment.size_bytes
        return groups

    def clean(self, group: list[Segment], staged: Segment) -> Iterator[None]:
        """Second half, for one group: write the remaining records to `staged`, seal and sync it."""
        out, headers, read_bytes = bytearray(), list[tuple[int, BatchHeader]](), 0
        for segment in group:
            for _, header, batch in segment.scan():
                self._keep(out, headers, header, batch, staged.aborted)
                read_bytes += header.size_bytes
                if read_bytes >= SLICE_BYTES:
                    _write(staged, out, headers)
                    out, headers, read_bytes = bytearray(), [], 0
                    yield
        _write(staged, out, headers)
        staged.next_offset = group[-1].next_offset
        staged.seal()
        for sync in staged.begin_sync():
            sync.run()
            sync.finish()

    def _keep(
        self, out: bytearray, headers: Headers, header: BatchHeader, batch: bytes, aborted: TransactionIndex
    ) -> None:
        kept = self._filter_marker(header, batch, aborted) if header.is_control else self._filter(header, batch)
        if kept:
            if kept is not batch:
                header = read_header(kept)
            headers.append((len(out), header))
            out += kept

    def _filter(self, header: BatchHeader, batch: bytes) -> bytes:
        """Return the batch unchanged, rewritten, or b"" when none of it remains."""
        is_aborted = self._cleaned.is_aborted(header)
        if header.base_offset >= self._mapped_end:
            return batch
        if not header.count:
            return batch if self._holds_place(header) else b""
        if is_aborted:
            return rewrite_batch(header, ()) if self._holds_place(header) else b""
        records = read_records(batch)
        horizon = header.delete_horizon_ms
        kept = [record for record in records if self._stays(record, horizon)]
        if not kept:
            return rewrite_batch(header, kept) if self._holds_place(header) else b""
        if horizon is None and any(record.value is None for record in kept):
            return rewrite_batch(header, kept, delete_horizon_ms=self._now_ms + self._config.delete_retention_ms)
        return batch if len(kept) == len(records) else rewrite_batch(header, kept)

    def _filter_marker(self, header: BatchHeader, batch: bytes, aborted: TransactionIndex) -> bytes:
        """Filter a control batch, see `_filter`. Add the transaction that it aborts to `aborted`, if it stays."""
        is_needed, transaction = self._cleaned.marker_ends(header)
        if transaction is not None:
            aborted.append(transaction)
        if is_needed or header.base_offset >= self._mapped_end:
            return batch
        horizon = header.delete_horizon_ms
        if header.count and horizon is None:
            horizon = self._now_ms + self._config.delete_retention_ms
            return rewrite_batch(header, read_records(batch), delete_horizon_ms=horizon)
        if header.count and horizon is not None and self._now_ms < horizon:
            return batch
        if not self._holds_place(header):
            return b""
        return rewrite_batch(header, ()) if header.count else batch

    def _stays(self, record: Record, horizon_ms: int | None) -> bool:
        if record.offset >= self._mapped_end:
            return True
        if record.key is None or record.offset < self._latest.get(record.key, -1):
            return False
        return record.value is not None or horizon_ms is None or self._now_ms < horizon_ms

    def _holds_place(self, header: BatchHeader) -> bool:
        """Return whether an empty batch must stay.

        It has a producer's last sequence or epoch, or is the end of the cleaned part.
        """
        if header.next_offset == self._range.end:
            return True
        last = self._last_batches.get(header.producer_id)
        if last is None:
            return False
        last_offset, epoch = last
        if last_offset != NO_OFFSET:
            return last_offset == header.last_offset
        return header.is_control and epoch == header.producer_epoch  # only markers have its last epoch


def _write(staged: Segment, out: bytearray, headers: Headers) -> None:
    if headers:
        staged.append(out, headers)


class SlicedWork:
    """Runs a generator one step at a time, in the thread that calls `advance`."""

    __slots__ = ("_steps", "is_done")

    def __init__(self, steps: Iterator[None]) -> None:
        self._steps, self.is_done = steps, False

    def advance(self) -> None:
        """Run the generator to its next yield. Raises StorageFailed: an I/O error, or the log is damaged."""
        try:
            next(self._steps)
        except StopIteration:
            self.is_done = True
        except CorruptBatch as error:
            raise StorageFailed(f"the log is damaged: {error}") from error
