"""Which old segments go. Pure.

Laws
    Only whole segments go, the oldest first, none after one that stays.
    What lies below the log start always goes; time and size count only where the policy is `delete`.
    A segment's age is that of its newest record; a log with retention by size keeps at least that size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rota.coordinator.log.contract import LogConfig


class Aged(Protocol):
    """What retention looks at in a segment."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def next_offset(self) -> int: ...

    @property
    def largest_timestamp(self) -> int: ...


def expired_count(segments: Sequence[Aged], config: LogConfig, log_start_offset: int, now_ms: int) -> int:
    """How many of the segments go, from the first; the last one only with everything that it holds."""
    count = _below_start(segments, log_start_offset)
    if config.delete and config.retention_ms is not None:
        count = max(count, _old(segments, now_ms - config.retention_ms))
    if config.delete and config.retention_bytes is not None:
        count = max(count, _too_many(segments, config.retention_bytes))
    return count


def _below_start(segments: Sequence[Aged], log_start_offset: int) -> int:
    count = 0
    for segment in segments:
        if segment.next_offset > log_start_offset or not segment.size_bytes:
            break
        count += 1
    return count


def _old(segments: Sequence[Aged], oldest_ms: int) -> int:
    """A segment without any timestamp stays: nobody can say how old it is."""
    count = 0
    for segment in segments:
        if not segment.size_bytes or not 0 <= segment.largest_timestamp < oldest_ms:
            break
        count += 1
    return count


def _too_many(segments: Sequence[Aged], retention_bytes: int) -> int:
    over = sum(segment.size_bytes for segment in segments) - retention_bytes
    count = 0
    for segment in segments:
        if not segment.size_bytes or over < segment.size_bytes:
            break
        over -= segment.size_bytes
        count += 1
    return count
