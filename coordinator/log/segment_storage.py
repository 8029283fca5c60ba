"""The interface of a log to its medium. There are two: a folder of files, and memory.

Laws
    After `swap` either the old segments are there or the new one, whatever moment the machine stopped at.
    A4  No method waits for the disk. The log's thread changes names, because what reads or truncates the log must meet
        the files of one state. A rename costs about as much as an append, and few segments are renamed at once. A
        truncation may have to remove many: `begin_remove` and its like leave the work on files to another thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from rota.coordinator.log.epochs import LeaderEpochs
from rota.coordinator.log.segment import Segment
from rota.coordinator.log.snapshots import Snapshots
from rota.coordinator.log.store import MemoryStore, Sync, do_nothing

SEGMENTS_AT_ONCE_MAX: Final = 16  # removed in one go: the names of each are changed in about 0.2 ms


class SegmentStorage(Protocol):
    """Makes and unmakes segments. Methods raise StorageFailed."""

    snapshots: Snapshots

    @property
    def has_many_unsynced(self) -> bool:
        """Whether so many rolled segments wait for their sync that no further one should be rolled."""

    def create(self, base_offset: int, index_interval_bytes: int, now_ms: int) -> Segment:
        """An empty segment to write."""

    def stage(self, base_offset: int, index_interval_bytes: int) -> Segment:
        """An empty segment that does not count until `swap`."""

    def prepare_swap(self, staged: Segment) -> None:
        """Let a start complete the swap from now on: `staged` is sealed and synced. `discard` can still undo it."""

    def swap(self, old: list[Segment], staged: Segment) -> None:
        """`staged` takes the place of the old ones, whose first has the same base offset.

        Between `prepare_swap` and this the caller syncs the names.
        """

    def discard(self, staged: Segment) -> None:
        """The staged segment is not wanted after all. Twice is fine."""

    def remove(self, segment: Segment) -> None:
        """Drop a segment; its files are unlinked later. A segment that cannot be removed is still whole."""

    def save_epochs(self, epochs: LeaderEpochs) -> None: ...

    def begin_create(
        self, base_offset: int, index_interval_bytes: int, now_ms: int
    ) -> tuple[Segment, Callable[[], None]]:
        """As `create`. The call makes the file, in any thread, before anything is written."""

    def begin_remove(self, segment: Segment) -> Callable[[], None]:
        """As `remove`, of a segment that nothing uses any more. The call renames its files, in any thread."""

    def begin_save_epochs(self, epochs: LeaderEpochs) -> Callable[[], None]:
        """As `save_epochs`. The call writes the epochs of this moment, in any thread."""

    def note_names(self) -> None:
        """A thread has changed names: only a sync that begins from now on covers them."""

    def begin_sync_names(self) -> Sync:
        """The sync of the names of the segments made so far, so that they survive a crash."""


class MemorySegmentStorage:
    """Segments in memory."""

    __slots__ = ("snapshots",)

    has_many_unsynced = False

    def __init__(self, snapshots: Snapshots) -> None:
        self.snapshots = snapshots

    def create(self, base_offset: int, index_interval_bytes: int, now_ms: int) -> Segment:
        return Segment(base_offset, MemoryStore(), None, index_interval_bytes=index_interval_bytes, created_ms=now_ms)

    def stage(self, base_offset: int, index_interval_bytes: int) -> Segment:
        return self.create(base_offset, index_interval_bytes, -1)

    def prepare_swap(self, staged: Segment) -> None:
        pass

    def swap(self, old: list[Segment], staged: Segment) -> None:
        for segment in old:
            segment.store.remove()

    def discard(self, staged: Segment) -> None:
        staged.store.remove()

    def remove(self, segment: Segment) -> None:
        segment.store.remove()

    def save_epochs(self, epochs: LeaderEpochs) -> None:
        pass

    def begin_create(
        self, base_offset: int, index_interval_bytes: int, now_ms: int
    ) -> tuple[Segment, Callable[[], None]]:
        return self.create(base_offset, index_interval_bytes, now_ms), do_nothing

    def begin_remove(self, segment: Segment) -> Callable[[], None]:
        self.remove(segment)
        return do_nothing

    def begin_save_epochs(self, epochs: LeaderEpochs) -> Callable[[], None]:
        return do_nothing

    def note_names(self) -> None:
        pass

    def begin_sync_names(self) -> Sync:
        return NoSync()


class NoSync:
    """A sync that has nothing to do."""

    __slots__ = ()

    def run(self) -> None:
        pass

    def finish(self) -> None:
        pass
