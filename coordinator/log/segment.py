"""One segment: the batches from `base_offset` up to the next segment, with their two indexes.

Laws
    Batches lie back to back in offset order; compaction leaves gaps between offsets, never between bytes.
    An index entry is written after each `index_interval_bytes` of batches; the first batch has none.
    The positions of the last batches appended are kept in memory: a read near the end needs no search.

The file is longer than 400 lines because one class owns the state of a segment.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from rota.coordinator.log.errors import NotCached, StorageFailed
from rota.coordinator.log.files import Buffer
from rota.coordinator.log.index import OffsetIndex, TimeIndex
from rota.coordinator.log.index_rebuild import IndexRebuild, Rebuilt
from rota.coordinator.log.store import Store, Sync
from rota.coordinator.log.transactions import TransactionIndex
from rota.protocol.dataclass import dataclass
from rota.protocol.records.batch import BATCH_HEADER_BYTES, BatchHeader, read_header
from rota.protocol.records.errors import CorruptBatch

if TYPE_CHECKING:
    from rota.coordinator.log.file_part import FilePart

PART_BYTES_MIN: Final = 512 * 1024  # of half of that a copy costs as much as the additional system calls
RELATIVE_OFFSET_MAX: Final = 0x7FFF_FFFF
WALK_BYTES: Final = 16 * 1024  # bytes of one read in a search for one batch
SCAN_BYTES: Final = 1 << 20  # bytes of one read in a scan of all batches
RECENT_BATCHES_MAX: Final = 512
NO_TIMESTAMP: Final = -1

Headers = list[tuple[int, BatchHeader]]


class Indexes(Protocol):
    """The files of a segment's indexes. Methods raise StorageFailed."""

    def load(self, segment: Segment, *, wait: bool = True) -> tuple[OffsetIndex, TimeIndex] | None:
        """Return the indexes; None when they are missing or damaged, and have to be rebuilt from the batches.

        Raises NotCached when `wait` is false and the files are not in the page cache.
        """

    def last_time(self, segment: Segment, *, wait: bool = True) -> tuple[int, int] | None:
        """Return the last entry of the time index without loading the index; None when the batches have to be read.

        Raises NotCached when `wait` is false and the entry is not in the page cache.
        """

    def save(self, segment: Segment, offsets: OffsetIndex, times: TimeIndex) -> None: ...

    def save_aborted(self, segment: Segment) -> None:
        """Save the index of aborted transactions; one without entries has no file."""

    def begin_sync(self) -> Sync:
        """Begin the sync of the files that were saved so far."""

    def reader(self) -> Indexes:
        """Return a copy for another thread, which saves nothing."""


@dataclass(frozen=True, slots=True)
class SegmentCut:
    """What stays of a segment: the first `size_bytes`, up to `next_offset`, with the indexes of these batches."""

    size_bytes: int
    next_offset: int
    offsets: OffsetIndex
    times: TimeIndex
    largest: tuple[int, int]


class Segment:
    """The batches with offsets from `base_offset` up to, but without, `next_offset`."""

    __slots__ = (
        "_first_timestamp",
        "_largest",
        "_offsets",
        "_rebuild",
        "_recent_offsets",
        "_recent_positions",
        "_since_entry_bytes",
        "_times",
        "_unsaved",
        "aborted",
        "active",
        "base_offset",
        "created_ms",
        "has_aborted",
        "index_interval_bytes",
        "indexes",
        "next_offset",
        "store",
    )

    def __init__(
        self,
        base_offset: int,
        store: Store,
        indexes: Indexes | None,
        *,
        index_interval_bytes: int,
        created_ms: int = -1,
    ) -> None:
        self.base_offset = self.next_offset = base_offset
        self.store, self.indexes = store, indexes
        self.index_interval_bytes, self.created_ms = index_interval_bytes, created_ms
        self.active = True
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._largest: tuple[int, int] | None = None
        self._first_timestamp: int | None = None
        self._since_entry_bytes = 0
        self._unsaved = False
        self._rebuild: IndexRebuild | None = None
        self.aborted = TransactionIndex()
        self.has_aborted = True  # False: `aborted` has to be restored from the batches
        self._forget_recent()

    def __repr__(self) -> str:
        return f"<Segment {self.base_offset}-{self.next_offset} {self.size_bytes} bytes>"

    @property
    def size_bytes(self) -> int:
        return self.store.size_bytes

    @property
    def offsets(self) -> OffsetIndex:
        if self._offsets is None:
            self._load()
        assert self._offsets is not None
        return self._offsets

    @property
    def times(self) -> TimeIndex:
        if self._times is None:
            self._load()
        assert self._times is not None
        return self._times

    @property
    def largest(self) -> tuple[int, int]:
        """Return (largest timestamp in ms, last offset of its batch); (-1, base offset) without timestamps."""
        return self.find_largest()

    @property
    def largest_timestamp(self) -> int:
        return self.largest[0]

    @property
    def known_largest(self) -> tuple[int, int] | None:
        """`largest` if it is in memory, else None."""
        return self._largest

    def note_largest(self, largest: tuple[int, int]) -> None:
        """Keep what an `index_reader` of it has found as `largest`, unless it is known by now."""
        if self._largest is None:
            self._largest = largest

    @property
    def known_first(self) -> int | None:
        """`first_timestamp` if it is in memory, else None."""
        return self._first_timestamp

    def note_first(self, first_timestamp: int) -> None:
        """Keep what a reader of it has found as `first_timestamp`, unless it is known by now."""
        if self._first_timestamp is None:
            self._first_timestamp = first_timestamp

    @property
    def first_timestamp(self) -> int:
        """Return the largest timestamp of the first batch, in ms; `segment.ms` starts there. -1 if empty."""
        if self._first_timestamp is None:
            for _, header in self.walk():
                self._first_timestamp = header.max_timestamp
                return header.max_timestamp
            return NO_TIMESTAMP
        return self._first_timestamp

    def find_largest(self, *, wait: bool = True) -> tuple[int, int]:
        """As `largest`. Raises NotCached when `wait` is false and it takes reads from the disk."""
        if self._largest is None:
            self._largest = self._last_indexed_time(wait) or self._walk_largest(wait=wait)
        return self._largest

    def position_since(self, timestamp_ms: int, offset: int, *, wait: bool = True) -> int:
        """Return a batch's position such that every batch before it is older than `timestamp_ms` or below `offset`.

        Raises NotCached when `wait` is false and the indexes are not in memory or in the page cache.
        """
        if self._offsets is None or self._times is None:
            self._load(wait=wait)
        return self.offsets.floor(max(self.times.floor(timestamp_ms), offset - 1))

    def can_hold(self, last_offset: int) -> bool:
        """Return whether the indexes can hold that offset: it is at most 2^31-1 above the base offset."""
        return last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def append(self, data: Buffer, batches: Headers) -> None:
        """Append batches with their final offsets. `batches` has (position in `data`, header). Raises StorageFailed."""
        start = self._write(data)
        for position, header in batches:
            self.note(start + position, header)

    def append_own(self, data: bytes, base_offset: int, last_offset: int, timestamp_ms: int) -> None:
        """Append one batch that the broker built, without reading its header. All its records have one timestamp.

        Raises StorageFailed.
        """
        self._note(self._write(data), base_offset, last_offset, len(data), timestamp_ms)

    def _write(self, data: Buffer) -> int:
        """Write `data` at the end of the batches. Return its position in bytes."""
        if self._offsets is None:
            self._load()
        position = self.store.size_bytes
        self._unsaved = True
        self.store.append(data)
        return position

    def note(self, position: int, header: BatchHeader) -> None:
        """Add a batch, whose bytes are at `position`, to the indexes."""
        newest_ms = header.max_timestamp if header.count else NO_TIMESTAMP
        self._note(position, header.base_offset, header.last_offset, header.size_bytes, newest_ms)

    def _note(self, position: int, base_offset: int, last_offset: int, size_bytes: int, newest_ms: int) -> None:
        largest = self._largest
        if largest is None:
            largest = self.largest
        if newest_ms > largest[0]:
            self._largest = largest = (newest_ms, last_offset)
        if self._since_entry_bytes > self.index_interval_bytes:
            self.offsets.append(last_offset, position)
            self.times.append(*largest)
            self._since_entry_bytes = 0
        self._since_entry_bytes += size_bytes
        if base_offset != self.next_offset:
            self._forget_recent()
        recent = self._recent_offsets
        recent.append(base_offset)
        self._recent_positions.append(position)
        if len(recent) >= 2 * RECENT_BATCHES_MAX:
            del recent[:RECENT_BATCHES_MAX], self._recent_positions[:RECENT_BATCHES_MAX]
        self.next_offset = last_offset + 1

    def position_of(self, offset: int, *, wait: bool = True) -> int:
        """Return the position of the first batch that ends at `offset` or later; the segment's size without one.

        Raises NotCached when `wait` is false and the search needs bytes from the disk.
        """
        if offset >= self.next_offset:
            return self.size_bytes
        recent = self._recent_offsets
        if recent and offset >= recent[0]:
            return self._recent_positions[bisect_right(recent, offset) - 1]
        if self._offsets is None:
            self._load(wait=wait)
        for position, header in self.walk(self.offsets.floor(offset), wait=wait):
            if header.last_offset >= offset:
                return position
        return self.size_bytes

    def read(self, position: int, bytes_max: int, end: int, *, first_whole: bool = True, wait: bool = True) -> bytes:
        """Return about `bytes_max` bytes from a batch's position on, up to `end`.

        Returns a first batch that is larger whole, or b"" when `first_whole` is false. Raises NotCached when `wait` is
        false and the bytes are not in the page cache.
        """
        if not first_whole and bytes_max < end - position:
            header = read_header(self.store.read(position, BATCH_HEADER_BYTES, wait=wait))
            if header.size_bytes > bytes_max:
                return b""
        data = self.store.read(position, min(max(bytes_max, BATCH_HEADER_BYTES), end - position), wait=wait)
        if len(data) >= BATCH_HEADER_BYTES and bytes_max < end - position:
            size_bytes = read_header(data).size_bytes
            if size_bytes > len(data):
                return self.store.read(position, size_bytes, wait=wait)
        return data

    def part(self, position: int, bytes_max: int, end: int) -> FilePart | None:
        """Return what `read` would, unread; None if it is not many bytes, or not a part of a file, or not cached.

        Raises NotCached, StorageFailed.
        """
        count = min(bytes_max, end - position)
        if count < PART_BYTES_MIN:
            return None
        if count < end - position:
            header = read_header(self.store.read(position, BATCH_HEADER_BYTES, wait=False))
            if header.size_bytes > count:
                return None
        return self.store.part(position, count)

    def walk(self, position: int = 0, *, wait: bool = True) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of the batch at `position` and of all after it; reads headers only.

        Raises CorruptBatch, and NotCached when `wait` is false and a header is not in the page cache.
        """
        start, data = position, b""
        while position < self.size_bytes:
            if position + BATCH_HEADER_BYTES > start + len(data):
                start, data = position, self.store.read(position, WALK_BYTES, wait=wait)
            header = read_header(data, position - start)
            if position + header.size_bytes > self.size_bytes:
                raise CorruptBatch(f"the batch at {position} is cut short")
            yield position, header
            position += header.size_bytes

    def scan(self, position: int = 0) -> Iterator[tuple[int, BatchHeader, bytes]]:
        """Yield (position, header, batch); checksums are not checked. Raises CorruptBatch where there is no batch."""
        start, data = position, b""
        while position < self.size_bytes:
            at = position - start
            if at + BATCH_HEADER_BYTES > len(data):
                start, at, data = position, 0, self.store.read(position, SCAN_BYTES)
            header = read_header(data, at)
            if position + header.size_bytes > self.size_bytes:
                raise CorruptBatch(f"the batch at {position} is cut short")
            if at + header.size_bytes > len(data):
                start, at, data = position, 0, self.store.read(position, max(SCAN_BYTES, header.size_bytes))
            yield position, header, data[at : at + header.size_bytes]
            position += header.size_bytes

    def find_cut(self, offset: int) -> SegmentCut:
        """Return what stays when the batches that end at `offset` or later are removed. Cuts the reader's indexes.

        Only an `index_reader` has it. Raises CorruptBatch, StorageFailed.
        """
        position, next_offset = self.position_of(offset), offset
        if position < self.size_bytes:
            next_offset = min(offset, next(self.walk(position))[1].base_offset)
        offsets, times = self.offsets, self.times
        offsets.truncate(offset)
        times.truncate(offset)
        return SegmentCut(
            position, max(next_offset, self.base_offset), offsets, times, self._walk_largest(end=position)
        )

    def truncate(self, cut: SegmentCut) -> None:
        """Remove the batches behind the cut. It reads nothing."""
        self.begin_truncate(cut)()

    def begin_truncate(self, cut: SegmentCut) -> Callable[[], None]:
        """As `truncate`. The call cuts the file, in any thread, before the next append; it raises StorageFailed."""
        self.active = self._unsaved = True
        cut_file = self.store.begin_truncate(cut.size_bytes)
        self._offsets, self._times, self._rebuild = cut.offsets, cut.times, None
        self.aborted.truncate(cut.next_offset)
        keep = bisect_left(self._recent_positions, cut.size_bytes)
        del self._recent_offsets[keep:], self._recent_positions[keep:]
        self.next_offset, self._largest, self._first_timestamp = cut.next_offset, cut.largest, None
        self._since_entry_bytes = cut.size_bytes - (cut.offsets.last[1] if cut.offsets.last else 0)
        return cut_file

    def seal(self) -> None:
        """Seal the segment: add the largest timestamp to the time index, save the indexes and release them."""
        self.active = False
        if self._unsaved:
            self.times.append(*self.largest)
            self._save()
            if self.indexes is not None and self.has_aborted:
                self.indexes.save_aborted(self)
        self._forget_recent()
        self.release()
        self.store.seal()

    def forget_aborted(self) -> None:
        """Remove the aborted transactions; the replay of the batches restores them (`aborted_restored`)."""
        self.aborted, self.has_aborted = TransactionIndex(), False

    def aborted_restored(self) -> None:
        """The aborted transactions are those of the batches now. Does nothing if they were not forgotten."""
        if not self.has_aborted:
            self.has_aborted = True
            if self.indexes is not None and not self.active:
                self.indexes.save_aborted(self)

    def offset_bound(self, position: int, size_bytes: int, *, wait: bool = True) -> int | None:
        """Return an offset above those of the `size_bytes` from `position` on, by the index; None without an entry.

        Raises NotCached when `wait` is false and the index is not in memory or in the page cache.
        """
        if self._offsets is None:
            self._load(wait=wait)
        return self.offsets.ceiling(position + size_bytes)

    def release(self) -> None:
        """Drop the indexes of a sealed segment from memory; the next use loads them again."""
        if self.indexes is not None and not self.active:
            self._offsets = self._times = None

    def begin_sync(self) -> list[Sync]:
        """Begin the syncs of the batches and indexes that were written so far."""
        syncs = [self.store.begin_sync()]
        if self.indexes is not None and not self.active:
            syncs.append(self.indexes.begin_sync())
        return syncs

    def reader(self) -> Segment:
        """Return a copy for another thread, which may call `scan` and read offsets and size, nothing else."""
        reader = Segment(self.base_offset, self.store.reader(), None, index_interval_bytes=self.index_interval_bytes)
        reader.next_offset, reader.active = self.next_offset, False
        return reader

    def index_reader(self) -> Segment:
        """Return a copy for another thread, which may read everything but aborted transactions."""
        reader = self.reader()
        reader.indexes = None if self.indexes is None else self.indexes.reader()
        if self._offsets is not None and self._times is not None and (self.active or self.indexes is None):
            reader._offsets, reader._times = self._offsets.copy(), self._times.copy()
        return reader

    def has_lost_entries(self, offsets: OffsetIndex, times: TimeIndex, *, wait: bool = True) -> bool:
        """Return whether an index is empty that was not: a loss of power leaves a file's name without its content.

        It reads the headers of the first `index_interval_bytes`; damage there is not its matter: a read reports it.
        Raises NotCached as `walk` does.
        """
        if offsets and times:
            return False
        with suppress(CorruptBatch):
            for position, header in self.walk(wait=wait):
                if not times and not self.active and header.count and header.max_timestamp > NO_TIMESTAMP:
                    return True
                if position > self.index_interval_bytes:
                    return not offsets
        return False

    def find_end(self) -> None:
        """Set `next_offset` from the last batch. Call it after opening. Raises CorruptBatch."""
        for _, header in self.walk(self.offsets.last[1] if self.offsets.last else 0):
            self.next_offset = header.next_offset

    def rebuild(self) -> None:
        """Build the indexes from the batches. Raises CorruptBatch: they are cut short, or out of order."""
        self.forget()
        for position, header in self.walk():
            if header.base_offset < self.next_offset or not self.can_hold(header.last_offset):
                raise CorruptBatch(f"offset {header.base_offset} after {self.next_offset - 1}")
            self.note(position, header)

    def forget(self) -> None:
        """Remove all entries of the indexes."""
        self._offsets, self._times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        self._unsaved = True
        self._largest, self._first_timestamp = (NO_TIMESTAMP, self.base_offset), None
        self._since_entry_bytes, self.next_offset = 0, self.base_offset
        self._forget_recent()

    def _forget_recent(self) -> None:
        """Drop the recent positions from memory: they are wrong across a gap between offsets."""
        self._recent_offsets, self._recent_positions = array("q"), array("q")

    def _load(self, *, wait: bool = True) -> None:
        loaded = self.indexes.load(self, wait=wait) if self.indexes is not None and self.size_bytes else None
        if loaded is not None:
            self._offsets, self._times = loaded
            last = self._offsets.last
            self._since_entry_bytes = self.size_bytes - (last[1] if last else 0)
        elif wait or self.active or self.indexes is None or not self.size_bytes:
            self._rebuild_keeping_end()
        else:
            self._take_rebuilt()

    def _take_rebuilt(self) -> None:
        """Use what another thread has rebuilt. Raises NotCached before that, CorruptBatch, StorageFailed."""
        if self._rebuild is None:
            self._rebuild = IndexRebuild(self.reader().rebuilt)
        if not self._rebuild.is_done:
            raise NotCached(self._rebuild)
        rebuild, self._rebuild = self._rebuild, None
        self._offsets, self._times, self._largest = rebuild.result()
        self._unsaved = True
        self._save_rebuilt()

    def rebuilt(self) -> Rebuilt:
        """Return new indexes and `largest`, read from the batches. For the `reader` of a sealed segment."""
        self.rebuild()
        self.times.append(*self.largest)
        return self.offsets, self.times, self.largest

    def _rebuild_keeping_end(self) -> None:
        next_offset, self._rebuild = self.next_offset, None
        try:
            self.rebuild()
        except (CorruptBatch, StorageFailed):  # with half of the indexes a read would skip the rest of the records
            self._offsets = self._times = self._largest = None
            self.next_offset = next_offset
            self._forget_recent()
            raise
        self.next_offset = max(next_offset, self.next_offset)
        if not self.active:
            self.times.append(*self.largest)
            self._save_rebuilt()

    def _save_rebuilt(self) -> None:
        """A full disk does not fail a read: the next load builds them again."""
        with suppress(StorageFailed):
            self._save()

    def _save(self) -> None:
        if self.indexes is not None:
            self.indexes.save(self, self.offsets, self.times)
        self._unsaved = False

    def _last_indexed_time(self, wait: bool) -> tuple[int, int] | None:
        if self._times is None and self.indexes is not None and self.size_bytes:
            return self.indexes.last_time(self, wait=wait)
        return None

    def _walk_largest(self, *, wait: bool = True, end: int | None = None) -> tuple[int, int]:
        """Find the largest timestamp in the batch headers after the last entry of the time index, up to `end`."""
        if self._offsets is None or self._times is None:
            self._load(wait=wait)
        largest = self.times.last or (NO_TIMESTAMP, self.base_offset)
        for position, header in self.walk(self.offsets.floor(self.times.last[1]) if self.times.last else 0, wait=wait):
            if position == end:
                break
            if header.max_timestamp > largest[0] and header.count:
                largest = (header.max_timestamp, header.last_offset)
        return largest
