"""From offset ranges to the pieces that Spark's tasks read. Pure.

Laws
    The pieces of a range are the range: in order, without gap or overlap.
    minPartitions is reached when there are records enough; a piece is never longer than maxRecordsPerPartition.
    The shares are in proportion to the ranges' lengths, so that no task has much more to do than another.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from rota.spark_connector.offsets import OffsetRange


def pieces(
    ranges: Iterable[OffsetRange], *, partitions_min: int | None = None, records_max: int | None = None
) -> tuple[OffsetRange, ...]:
    """Each range as one piece or several; empty ranges are left out."""
    wanted = [one for one in ranges if one.length > 0]
    if records_max is not None:
        wanted = [piece for one in wanted for piece in _cut(one, -(-one.length // records_max))]
    if not wanted or partitions_min is None or len(wanted) >= partitions_min:
        return tuple(wanted)
    return tuple(
        piece for one, parts in zip(wanted, _parts(wanted, partitions_min), strict=True) for piece in _cut(one, parts)
    )


def _parts(wanted: list[OffsetRange], partitions_min: int) -> list[int]:
    """How many pieces each range becomes: in proportion, at least one, together at least `partitions_min` if it can."""
    total = sum(one.length for one in wanted)
    parts = [max(1, one.length * partitions_min // total) for one in wanted]
    missing = partitions_min - sum(parts)
    while missing > 0:
        longest = max(range(len(wanted)), key=lambda at: (wanted[at].length / parts[at], -at))
        if parts[longest] >= wanted[longest].length:
            break
        parts[longest] += 1
        missing -= 1
    return parts


def _cut(one: OffsetRange, parts: int) -> Iterable[OffsetRange]:
    parts = min(parts, one.length)
    edges = [one.start + one.length * part // parts for part in range(parts + 1)]
    for start, end in pairwise(edges):
        yield OffsetRange(one.topic, one.partition, start, end)
