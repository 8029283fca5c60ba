"""Searches for records by their timestamps, for ListOffsets. Reads segments, changes nothing.

Every search raises CorruptBatch, and NotCached when `wait` is false and it needs bytes that are not in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.coordinator.log.contract import Load, NotCached, TimedOffset
from rota.coordinator.log.segment import Segment
from rota.protocol.records.batch import BatchHeader
from rota.protocol.records.record import Record, read_records


def first_since(
    segments: Iterable[Segment], timestamp_ms: int, start_offset: int, *, wait: bool = True
) -> TimedOffset | None:
    """Return the first record at or after `start_offset` with at least that timestamp (ms); None when all are older."""
    for segment in _segments_since(segments, timestamp_ms, start_offset, wait):
        for header, records in _batches_since(segment, timestamp_ms, start_offset, wait):
            for record in records:
                if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                    return TimedOffset(record.offset, record.timestamp, header.leader_epoch)
    return None


def record_of_max_timestamp(segments: Iterable[Segment], *, wait: bool = True) -> TimedOffset | None:
    """Return the first record with the largest timestamp; None when no record has a timestamp."""
    found, loads = list[tuple[tuple[int, int], Segment]](), list[Load]()
    for segment in segments:
        try:
            found.append((segment.find_largest(wait=wait), segment))
        except NotCached as cold:
            loads += cold.loads
    if loads:
        raise NotCached(*loads)
    (timestamp, offset), segment = max(found, key=lambda largest: largest[0][0])
    if timestamp < 0:
        return None
    for header, records in _batches_since(segment, timestamp, offset, wait):
        for record in records:
            if record.timestamp == timestamp:
                return TimedOffset(record.offset, timestamp, header.leader_epoch)
    return None


def _segments_since(segments: Iterable[Segment], timestamp_ms: int, start_offset: int, wait: bool) -> Iterator[Segment]:
    """Yield the segments that may have such a record. NotCached names the loads of all segments up to the first."""
    loads: list[Load] = []
    for segment in segments:
        if segment.next_offset <= start_offset:
            continue
        try:
            is_old = segment.find_largest(wait=wait)[0] < timestamp_ms
        except NotCached as cold:
            loads += cold.loads
            continue
        if is_old:
            continue
        if loads:
            break
        yield segment
    if loads:
        raise NotCached(*loads)


def _batches_since(
    segment: Segment, timestamp_ms: int, offset: int, wait: bool
) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Yield the decoded batches that may have such a record."""
    for position, header in segment.walk(segment.position_since(timestamp_ms, offset, wait=wait), wait=wait):
        if header.max_timestamp >= timestamp_ms and header.last_offset >= offset and header.count:
            yield header, read_records(segment.store.read(position, header.size_bytes, wait=wait))
