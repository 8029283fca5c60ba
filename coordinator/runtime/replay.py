"""Reading one partition of `__consumer_offsets` back into groups.

Laws
    G5  replay(log) = replay(compact(log)): a record is the whole truth for its key, so only the last of each counts.
    The log is read in slices, so that a long one does not hold up the broker's loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from rota.coordinator.group.effects import Record
from rota.coordinator.runtime.records import decode
from rota.protocol.records.batch import headers
from rota.protocol.records.record import read_records

SLICE_BYTES: Final = 1 << 20


class Readable(Protocol):
    """The part of a log that a replay needs."""

    @property
    def log_start_offset(self) -> int:
        """First offset."""

    @property
    def log_end_offset(self) -> int:
        """Offset after the last."""

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Whole batches, of which the last may be cut short."""


class Replay:
    """The last value of each key, gathered slice by slice."""

    __slots__ = ("_end", "_log", "_newest", "offset", "records_read")

    def __init__(self, log: Readable) -> None:
        self._log, self._end = log, log.log_end_offset
        self.offset = log.log_start_offset
        self.records_read = 0
        self._newest: dict[bytes, bytes | None] = {}

    def advance(self) -> bool:
        """Read one slice; True when the end is reached."""
        if self.offset >= self._end:
            return True
        data = self._log.read(self.offset, SLICE_BYTES)
        came_from = self.offset
        for position, header in headers(data, cut=True):
            if not header.is_control:
                self._take(data, position)
            self.offset = header.next_offset
        assert self.offset > came_from, f"the log gave no whole batch at offset {came_from}"
        return self.offset >= self._end

    def _take(self, data: bytes, position: int) -> None:
        for record in read_records(data, position):
            self.records_read += 1
            if record.key is not None:
                self._newest.pop(record.key, None)  # the order of the last writes, as live
                self._newest[record.key] = record.value

    def records(self) -> Iterator[Record]:
        """What is left to apply, in the order of writing."""
        for key, value in self._newest.items():
            if value is not None:
                record = decode(key, value)
                if record is not None:
                    yield record
