"""Applies the records of one partition to its machines: when a shard loads, and on a standby while its log grows.

Laws
    G5  replay(log) = replay(compact(log)): of the records that are read before they are applied only the last of each
        key is decoded.
    CO1 One call of `advance` reads at most SLICE_BYTES or applies at most APPLY_RECORDS_MAX records (a few
        milliseconds), so that other shards keep their latency.
    F11 A replay reads what the page cache has. For other records the caller brings them there, in another thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Generic, NamedTuple, Protocol

from rota.coordinator.log.errors import NotCached
from rota.coordinator.runtime.contract import Hosting, M
from rota.protocol.records.batch import BatchHeader, headers
from rota.protocol.records.control import read_marker
from rota.protocol.records.fast import keep_newest, take_entries
from rota.protocol.records.record import read_records

SLICE_BYTES: Final = 256 * 1024
APPLY_RECORDS_MAX: Final = 128
LOADS_MAX: Final = 4  # loads of one slice (indexes, records) before its read waits for the disk
APPLY_BYTES_MAX: Final = 256 * 1024  # a slice ends with the record that exceeds it: one record may be larger


class _Pending(NamedTuple):
    """A record of a transaction, which no other record replaces before the transaction has ended."""

    producer_id: int
    offset: int
    key: bytes


class _Ended(NamedTuple):
    """The marker of a transaction."""

    producer_id: int
    offset: int
    is_commit: bool


Key = bytes | _Pending | _Ended


class Readable(Protocol):
    """The part of a log that a replay needs."""

    @property
    def log_start_offset(self) -> int:
        """The first offset."""

    @property
    def log_end_offset(self) -> int:
        """The offset after the last record."""

    def read(self, offset: int, bytes_max: int, *, wait: bool = True) -> bytes:
        """Return whole batches from the one that holds `offset`; the last one may be cut short.

        Raises NotCached if `wait` is false and the bytes are not in the page cache.
        """


class Replay(Generic[M]):
    """Reads a log from its start and applies its records to `machines`, in order. Reading is ahead of applying."""

    __slots__ = (
        "_applying",
        "_has_transactions",
        "_hosting",
        "_loads",
        "_newest",
        "machines",
        "offset",
        "records_read",
        "transactions",
        "work",
    )

    def __init__(
        self, hosting: Hosting[M], machines: dict[str, M], transactions: dict[int, set[str]] | None = None
    ) -> None:
        """`transactions` are the machines with pending records, by producer id."""
        self._hosting, self.machines = hosting, machines
        self.transactions: dict[int, set[str]] = {} if transactions is None else transactions
        self.offset = 0  # of the next record to read
        self.records_read = 0
        self._loads = 0  # of the records at `offset`
        self._newest: dict[Key, bytes | None] = {}  # read, not applied: the last value of each key
        self._applying: Iterator[tuple[Key, bytes | None]] | None = None
        self._has_transactions = False  # some entries are of transactions
        self.work = 0.0  # of the last `advance`: its share of what it may do at most

    def is_at(self, end: int) -> bool:
        """Return whether all records before offset `end` are applied."""
        return self.offset >= end and not self._newest and self._applying is None

    def advance(self, log: Readable, end: int) -> bool:
        """Do one slice of the work; return True when all records before offset `end` are applied.

        Raises StorageFailed, CorruptBatch and DecodeError, and NotCached if the next records have to be loaded first;
        where the page cache does not keep what is loaded, the read waits for the disk after LOADS_MAX loads.
        """
        self.work = 0.0
        if self.offset < end:
            self._read(log, end)
        elif self._newest or self._applying is not None:
            self._apply()
        return self.is_at(end)

    def _read(self, log: Readable, end: int) -> None:
        start = max(self.offset, log.log_start_offset)
        try:
            data = log.read(start, SLICE_BYTES, wait=self._loads >= LOADS_MAX)
        except NotCached:
            self._loads += 1
            raise
        self.work = len(data) / SLICE_BYTES
        batches = self._loads = 0
        for position, header in headers(data, cut=True):
            batches += 1
            if header.base_offset >= end:
                self.offset = end
                return
            if header.is_control:
                self._take_marker(data, position, header)
            elif header.is_transactional:
                self._take_pending(data, position, header)
            else:
                self._take(data, position)
            self.offset = header.next_offset
        assert batches or not data, f"the log returned no whole batch at offset {start}"
        if not batches:  # compaction left nothing between `start` and `end`
            self.offset = end

    def _take(self, data: bytes, position: int) -> None:
        records = read_records(data, position)
        self.records_read += len(records)
        keep_newest(records, self._newest)  # in the order of the last writes, as in the leader

    def _take_pending(self, data: bytes, position: int, header: BatchHeader) -> None:
        """Take records of a transaction. Each is applied: a later one may belong to a transaction that is aborted."""
        self._has_transactions = True
        for record in read_records(data, position):
            self.records_read += 1
            if record.key is not None:
                self._newest[_Pending(header.producer_id, record.offset, record.key)] = record.value

    def _take_marker(self, data: bytes, position: int, header: BatchHeader) -> None:
        self._has_transactions = True
        marker = read_marker(data, position)
        if marker is not None:
            self._newest[_Ended(header.producer_id, header.base_offset, marker.is_commit)] = None

    def _apply(self) -> None:
        if self._applying is None:
            self._applying, self._newest = iter(self._newest.items()), {}
        entries, is_last = take_entries(self._applying, APPLY_RECORDS_MAX, APPLY_BYTES_MAX)
        if is_last:
            self._applying = None
        value_bytes = sum(len(value) for _, value in entries if value is not None)
        self.work = max(len(entries) / APPLY_RECORDS_MAX, value_bytes / APPLY_BYTES_MAX)
        if not self._has_transactions:
            self._apply_plain(entries)
            return
        for key, value in entries:
            if isinstance(key, bytes):
                self._apply_plain([(key, value)])
            else:
                self._apply_in_transaction(key, value)

    def _apply_plain(self, entries: list[tuple[bytes, bytes | None]]) -> None:
        for record in (self._hosting.decode_many or self._decode_each)(entries):
            self._apply_record(record)

    def _decode_each(self, entries: list[tuple[bytes, bytes | None]]) -> Iterator[Any]:
        for key, value in entries:
            record = self._hosting.codec.decode(key, value)
            if record is not None:
                yield record

    def _apply_in_transaction(self, key: _Pending | _Ended, value: bytes | None) -> None:
        if isinstance(key, _Ended):
            self._end_transaction(key.producer_id, is_commit=key.is_commit)
            return
        record = self._hosting.codec.decode(key.key, value)
        if record is not None:
            self._apply_record(record, key.producer_id)

    def _end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for machine_id in self.transactions.pop(producer_id, ()):
            machine = self.machines.get(machine_id)
            if machine is not None and self._hosting.transactional is not None:
                self._hosting.transactional(machine).end_transaction(producer_id, is_commit=is_commit)
                if machine.is_vacant:
                    del self.machines[machine_id]

    def _apply_record(self, record: Any, producer_id: int | None = None) -> None:
        """Apply a record, in the transaction of the producer if there is one."""
        record_type = self._hosting.record_types[type(record)]
        machine_id = record_type.machine_id(record)
        machine = self.machines.get(machine_id)
        if machine is None:
            if record.value is None:
                return
            machine = self.machines[machine_id] = record_type.create(machine_id)
        if producer_id is not None and self._hosting.transactional is not None:
            self.transactions.setdefault(producer_id, set()).add(machine_id)
            self._hosting.transactional(machine).replay_in_transaction(producer_id, (record,))
            return
        machine.replay(record)
        if record.value is None and machine.is_vacant:
            del self.machines[machine_id]
