"""What a running query has lost, and where it goes on behind it. Pure.

Laws
    What cannot be read any more is told by partition, with its offsets.
    A log that was made anew is read from its begin. The micro-batch that goes back ends before it starts, and no other
    does: so the checkpoint alone says what it reads, and no record of the new log is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rota.client.types import TopicPartition
from rota.spark_connector.offsets import OffsetRange, Offsets, limited

Told = dict[TopicPartition, str]  # by partition what became of it


def lost(begin: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], anew: Collection[str]) -> Told:
    """Partitions that were read up to `begin` and are not what they were; `anew`: topics that have another id now."""
    told: Told = {}
    for one, at in sorted(begin.items()):
        if one not in latest:
            told[one] = f"{one} is gone, which was read up to offset {at}"
        elif one.topic in anew:
            told[one] = f"{one} was read up to offset {at}, and its topic was deleted and made anew"
        elif latest[one] < at:
            told[one] = f"{one} was read up to offset {at}, and its log ends at {latest[one]} now"
    return told


def back(
    begin: Mapping[TopicPartition, int], told: Iterable[TopicPartition], first: Mapping[TopicPartition, int]
) -> Offsets:
    """Where the logs that were made anew begin, when that is before what was read."""
    return {one: first[one] for one in told if one in first and first[one] < begin[one]}


def ends(
    begin: Mapping[TopicPartition, int],
    again: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    records_max: int | None,
) -> Offsets:
    """Where the next micro-batch ends: `begin` has every partition of `latest`; those in `again` go back."""
    start = {one: again.get(one, begin[one]) for one in latest}
    there = {one: max(at, start[one]) for one, at in latest.items()}
    found = there if records_max is None else limited(start, there, records_max)
    return {one: min(at, begin[one] - 1) if one in again else at for one, at in found.items()}


def readable(
    wanted: Iterable[OffsetRange], first: Mapping[TopicPartition, int], last: Mapping[TopicPartition, int]
) -> tuple[list[OffsetRange], Told]:
    """What of the ranges lies in the logs, and what became of the rest."""
    kept: list[OffsetRange] = []
    told: Told = {}
    for one in wanted:
        start, end = max(one.start, first.get(one.of, one.end)), min(one.end, last.get(one.of, one.start))
        if one.of not in first:
            told[one.of] = f"{one.of} is gone with its offsets {one.start} to {one.end - 1}"
        elif start > one.start or end < one.end:
            missing = [(one.start, min(start, one.end) - 1)] if start > one.start else []
            missing += [(max(end, one.start), one.end - 1)] if end < one.end else []
            gone = ", ".join(f"{low} to {high}" for low, high in missing)
            told[one.of] = f"{one.of} lacks offsets {gone}: its log begins at {first[one.of]}, ends at {last[one.of]}"
        if start < end:
            kept.append(OffsetRange(one.topic, one.partition, start, end))
    return kept, told
