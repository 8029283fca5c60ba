"""The timestamp of the oldest unread record, from the batches of a Fetch response.

Laws
    GL1 The time is that of the first record at the offset or after it: the broker's in a batch with LogAppendTime, else
        the producer's. Of a batch above DECODED_BYTES_MAX, or above DECOMPRESSED_BYTES_MAX without its compression,
        which is not decoded, it is that of its first record where this is the one, else the batch's largest. The
        markers of transactions are no records. What is not in the data is not known: None, never 0.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from rota.protocol.records.batch import BatchHeader, Buffer, headers
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import read_records

DECODED_BYTES_MAX: Final = 64 * 1024  # of one batch
DECOMPRESSED_BYTES_MAX: Final = 1 << 20  # 4 KiB may be 125 MiB, and a broker reads them in its loop


def unread_time_ms(data: Buffer, offset: int) -> int | None:
    """Return the timestamp of the first record at `offset` or after it, in ms since the epoch; None: not known."""
    with suppress(CorruptBatch):  # no batches: a log of an older format, or garbage
        for position, header in headers(data, cut=True):
            if header.next_offset > offset and not header.is_control:
                time_ms = _time_ms(data, position, header, offset)
                if time_ms is not None:
                    return time_ms if time_ms >= 0 else None
    return None


def has_batch(data: Buffer) -> bool:
    """Return whether the data of a response begin with a whole batch."""
    with suppress(CorruptBatch):
        return any(True for _ in headers(data, cut=True))
    return False


def _time_ms(data: Buffer, position: int, header: BatchHeader, offset: int) -> int | None:
    """Return the time of the batch's first record from `offset` on; -1: it has none; None: there is no such record."""
    if header.is_log_append_time or header.max_timestamp < 0:
        return header.max_timestamp
    if header.size_bytes <= DECODED_BYTES_MAX:
        with suppress(CorruptBatch):
            records = read_records(data, position, limit_bytes=DECOMPRESSED_BYTES_MAX)
            return next((record.timestamp for record in records if record.offset >= offset), None)
    is_first = offset <= header.base_offset and header.delete_horizon_ms is None and header.base_timestamp >= 0
    return header.base_timestamp if is_first else header.max_timestamp
