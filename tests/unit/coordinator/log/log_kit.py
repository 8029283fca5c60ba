"""Short ways to batches and to what a log holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rota.coordinator.log.contract import Log
from rota.coordinator.log.store import Store
from rota.protocol.records.batch import headers
from rota.protocol.records.control import Marker
from rota.protocol.records.fast import Record
from rota.protocol.records.record import read_all, write_batch

Pair = tuple[bytes | None, bytes | None]


def batch(*pairs: Pair, timestamp: int = 1000, **fields: Any) -> bytes:
    """One batch of (key, value), all at one time."""
    return write_batch([Record(0, timestamp, key, value) for key, value in pairs], **fields)


def values(count: int, timestamp: int = 1000, **fields: Any) -> bytes:
    """One batch of `count` keyless records."""
    return batch(*((None, b"value-%d" % number) for number in range(count)), timestamp=timestamp, **fields)


def fill(log: Log, batches: int, *, timestamps: Sequence[int] = (1000,), key: bytes | None = None) -> None:
    """Batches of one record of 100 bytes, at these times in turn."""
    for number in range(batches):
        data = batch((key, b"%0100d" % number), timestamp=timestamps[number % len(timestamps)])
        log.append(data, leader_epoch=0, now_ms=0)


def flush_rolled(log: Log) -> None:
    """Flush all but the active segment."""
    flush = log.begin_flush(rolled=True)
    flush.run()
    flush.finish()


def sync(store: Store) -> None:
    """One whole sync."""
    begun = store.begin_sync()
    begun.run()
    begun.finish()


def held(log: Log) -> list[Record]:
    """Every record, as a consumer reads them."""
    records: list[Record] = []
    offset = log.log_start_offset
    while data := log.read(offset, 1 << 20):
        records += [record for record in read_all(data) if record.offset >= offset]
        offset = [header.next_offset for _, header in headers(data, cut=True)][-1]
    return records


def offsets(log: Log) -> list[int]:
    return [record.offset for record in held(log)]


def append_transactional(log: Log, producer_id: int, sequence: int, *pairs: Pair, epoch: int = 0) -> int:
    """Append a batch of the producer's transaction, verified; return its base offset."""
    verification = log.producers.begin_verification(producer_id, epoch, sequence, 0)
    data = batch(*pairs, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=True)
    return log.append(data, leader_epoch=0, now_ms=0, verification=verification).base_offset


def append_marker(log: Log, producer_id: int, *, is_commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> int:
    """End the producer's transaction; return the offset of the marker."""
    marker = Marker(is_commit, coordinator_epoch)
    return log.append_marker(
        marker, producer_id=producer_id, producer_epoch=epoch, leader_epoch=0, now_ms=0
    ).base_offset
