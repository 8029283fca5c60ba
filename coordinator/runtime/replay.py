"""Applies the records of one partition to its machines: when a shard loads, and on a standby while its log grows.

Laws
    G5  replay(log) = replay(compact(log)): of the records that are read before they are applied only the last of each
        key is decoded.
    CO1 One call of `advance` reads at most SLICE_BYTES or applies at most APPLY_RECORDS_MAX records (a few
        milliseconds), so that other shards keep their latency.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, Protocol

from rota.coordinator.runtime.contract import Hosting, M
from rota.protocol.records.batch import headers
from rota.protocol.records.record import read_records

SLICE_BYTES: Final = 256 * 1024
APPLY_RECORDS_MAX: Final = 128
APPLY_BYTES_MAX: Final = 256 * 1024  # a slice ends with the record that exceeds it: one record may be larger


class Readable(Protocol):
    """The part of a log that a replay needs."""

    @property
    def log_start_offset(self) -> int:
        """The first offset."""

    @property
    def log_end_offset(self) -> int:
        """The offset after the last record."""

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Return whole batches from the one that holds `offset`; the last one may be cut short."""


class Replay(Generic[M]):
    """Reads a log from its start and applies its records to `machines`, in order. Reading is ahead of applying."""

    __slots__ = ("_applying", "_hosting", "_newest", "machines", "offset", "records_read")

    def __init__(self, hosting: Hosting[M], machines: dict[str, M]) -> None:
        self._hosting, self.machines = hosting, machines
        self.offset = 0  # of the next record to read
        self.records_read = 0
        self._newest: dict[bytes, bytes | None] = {}  # read, not applied: the last value of each key
        self._applying: Iterator[tuple[bytes, bytes | None]] | None = None

    def is_at(self, end: int) -> bool:
        """Return whether all records before offset `end` are applied."""
        return self.offset >= end and not self._newest and self._applying is None

    def advance(self, log: Readable, end: int) -> bool:
        """Do one slice of the work; return True when all records before offset `end` are applied.

        Raises StorageFailed, CorruptBatch and DecodeError.
        """
        if self.offset < end:
            self._read(log, end)
        elif self._newest or self._applying is not None:
            self._apply()
        return self.is_at(end)

    def _read(self, log: Readable, end: int) -> None:
        start = max(self.offset, log.log_start_offset)
        data = log.read(start, SLICE_BYTES)
        batches = 0
        for position, header in headers(data, cut=True):
            batches += 1
            if header.base_offset >= end:
                self.offset = end
                return
            if not header.is_control:
                self._take(data, position)
            self.offset = header.next_offset
        assert batches or not data, f"the log returned no whole batch at offset {start}"
        if not batches:  # compaction left nothing between `start` and `end`
            self.offset = end

    def _take(self, data: bytes, position: int) -> None:
        newest = self._newest
        for record in read_records(data, position):
            self.records_read += 1
            if record.key is not None:
                newest.pop(record.key, None)  # the order of the last writes, as in the leader
                newest[record.key] = record.value

    def _apply(self) -> None:
        if self._applying is None:
            self._applying, self._newest = iter(self._newest.items()), {}
        size = 0
        for _ in range(APPLY_RECORDS_MAX):
            record = next(self._applying, None)
            if record is None:
                self._applying = None
                return
            key, value = record
            self._apply_record(key, value)
            size += len(key) + len(value or b"")
            if size > APPLY_BYTES_MAX:
                return

    def _apply_record(self, key: bytes, value: bytes | None) -> None:
        record = self._hosting.codec.decode(key, value)
        if record is None:
            return
        record_type = self._hosting.record_types[type(record)]
        machine_id = record_type.machine_id(record)
        machine = self.machines.get(machine_id)
        if machine is None:
            if record.value is None:
                return
            machine = self.machines[machine_id] = record_type.create(machine_id)
        machine.replay(record)
        if record.value is None and machine.is_vacant:
            del self.machines[machine_id]
