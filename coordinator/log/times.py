"""Finding records by their timestamps, for ListOffsets. Reads segments, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.coordinator.log.contract import TimedOffset
from rota.coordinator.log.segment import Segment
from rota.protocol.records.batch import BatchHeader
from rota.protocol.records.record import Record, read_records


def first_since(segments: Iterable[Segment], timestamp_ms: int, start_offset: int) -> TimedOffset | None:
    """Return the first record at or after `start_offset` with at least that timestamp (ms). Raises CorruptBatch."""
    for segment in segments:
        if segment.next_offset <= start_offset or segment.largest_timestamp < timestamp_ms:
            continue
        for header, records in _batches_since(segment, timestamp_ms, start_offset):
            for record in records:
                if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                    return TimedOffset(record.offset, record.timestamp, header.leader_epoch)
    return None


def newest(segments: Iterable[Segment]) -> TimedOffset | None:
    """Return the first record with the largest timestamp. Raises CorruptBatch."""
    segment = max(segments, key=lambda segment: segment.largest_timestamp)
    timestamp, offset = segment.largest
    if timestamp < 0:
        return None
    for header, records in _batches_since(segment, timestamp, offset):
        for record in records:
            if record.timestamp == timestamp:
                return TimedOffset(record.offset, timestamp, header.leader_epoch)
    return None


def _batches_since(segment: Segment, timestamp_ms: int, offset: int) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Yield the decoded batches that may have such a record."""
    start = segment.offsets.floor(max(segment.times.floor(timestamp_ms), offset - 1))
    for position, header in segment.walk(start):
        if header.max_timestamp >= timestamp_ms and header.last_offset >= offset and header.count:
            yield header, read_records(segment.store.read(position, header.size_bytes))
