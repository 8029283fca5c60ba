"""The choice of the segments that retention deletes. Pure.

Laws
    Only whole segments are deleted, the oldest first, none after one that stays.
    Segments below the log start are always deleted; time and size apply only if the policy is `delete`.
    A segment's age is that of its newest record; a log with retention by size keeps at least that size.
    A segment that compaction has emptied holds back none after it. The last segment stays while it is empty.
    RT3 A segment with records that are not committed stays, as in Kafka: who is elected without them would use their
        offsets again, while consumers and producers took them for committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rota.coordinator.log.contract import LogConfig


class AgedSegment(Protocol):
    """The attributes of a segment that retention uses."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def next_offset(self) -> int: ...

    @property
    def largest_timestamp(self) -> int: ...


def expired_count(
    segments: Sequence[AgedSegment],
    config: LogConfig,
    log_start_offset: int,
    now_ms: int,
    high_watermark: int | None = None,
) -> int:
    """Return how many segments, from the first, are to be deleted; the last one only when all its records are.

    Without a high watermark everything is committed.
    """
    count = _below_start(segments, log_start_offset)
    if config.delete and config.retention_ms is not None:
        count = max(count, _expired_by_time(segments, now_ms - config.retention_ms))
    if config.delete and config.retention_bytes is not None:
        count = max(count, _expired_by_size(segments, config.retention_bytes))
    return count if high_watermark is None else _committed(segments[:count], high_watermark)


def _committed(segments: Sequence[AgedSegment], high_watermark: int) -> int:
    return next((at for at, segment in enumerate(segments) if segment.next_offset > high_watermark), len(segments))


def _below_start(segments: Sequence[AgedSegment], log_start_offset: int) -> int:
    count = 0
    for segment in segments:
        if segment.next_offset > log_start_offset or (not segment.size_bytes and segment is segments[-1]):
            break
        count += 1
    return count


def _expired_by_time(segments: Sequence[AgedSegment], oldest_ms: int) -> int:
    """A segment without a timestamp stays: its age is unknown."""
    count = 0
    for place, segment in enumerate(segments, 1):
        if not segment.size_bytes:
            continue
        if not 0 <= segment.largest_timestamp < oldest_ms:
            break
        count = place
    return count


def _expired_by_size(segments: Sequence[AgedSegment], retention_bytes: int) -> int:
    over = sum(segment.size_bytes for segment in segments) - retention_bytes
    count = 0
    for place, segment in enumerate(segments, 1):
        if not segment.size_bytes:
            continue
        if over < segment.size_bytes:
            break
        over -= segment.size_bytes
        count = place
    return count
