"""The control batch that ends a transaction in one partition: one record, a commit or an abort marker (KIP-98).

Layout (big endian). Key: version i16 = 0, type i16, 0 for abort and 1 for commit. Value: version i16 = 0, epoch i32 of
the transaction coordinator.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rota.protocol.dataclass import dataclass
from rota.protocol.records.batch import Buffer
from rota.protocol.records.errors import InvalidBatch
from rota.protocol.records.fast import Record
from rota.protocol.records.record import read_records, write_batch

MARKER_VERSION: Final = 0
ABORT: Final = 0
COMMIT: Final = 1
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction, written by the transaction coordinator of that epoch."""

    is_commit: bool
    coordinator_epoch: int


def write_marker(marker: Marker, *, producer_id: int, producer_epoch: int, timestamp: int) -> bytes:
    """Return the control batch, with base offset 0; `timestamp` in ms."""
    key = _KEY.pack(MARKER_VERSION, COMMIT if marker.is_commit else ABORT)
    value = _VALUE.pack(MARKER_VERSION, marker.coordinator_epoch)
    return write_batch(
        [Record(0, timestamp, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_control=True,
        is_transactional=True,
    )


def read_marker(batch: Buffer, position: int = 0) -> Marker | None:
    """Return the marker of the control batch at `position`.

    None if compaction has emptied the batch, or if it has something else, or too few bytes: a log that has taken it can
    be opened again. Raises CorruptBatch if it is cut short or its checksum is wrong.
    """
    try:
        records = read_records(batch, position)
    except InvalidBatch:  # its checksum is right
        return None
    if not records:
        return None
    key, value = records[0].key or b"", records[0].value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        return None
    _, kind = _KEY.unpack_from(key)
    return Marker(kind == COMMIT, _VALUE.unpack_from(value)[1]) if kind in (ABORT, COMMIT) else None
