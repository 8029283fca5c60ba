"""Resolve where a query starts and ends, from its options and the brokers' offsets.

Laws
    The result has an offset for each partition that is read, and for no other.
    A given offset outside the log is data loss: DataLost, or with failOnDataLoss=false a warning and the nearest offset
    of the log. A high watermark that is only behind is waited for (high_watermark.py).
    No time below 0 is looked up: in ListOffsets these have other meanings. Every record is at or after such a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Protocol

from rota.client.log import logger
from rota.client.types import TopicPartition
from rota.spark_connector.errors import REMEDY, DataLost, OptionError
from rota.spark_connector.offsets import EARLIEST, LATEST, Offsets, format_partitions
from rota.spark_connector.options import OffsetBound, ReadOptions

_log = logger("rota.spark")
Partitions = tuple[TopicPartition, ...]
NO_ENDS: Final[Offsets] = {}


class OffsetSource(Protocol):
    """The offsets of the brokers; DriverClient in broker.py."""

    def earliest(self, partitions: Partitions) -> Offsets: ...

    def latest(self, partitions: Partitions) -> Offsets: ...

    def latest_at_least(self, ends: Mapping[TopicPartition, int], partitions: Partitions) -> Offsets: ...

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]: ...

    def committed(self, group: str, partitions: Partitions) -> Mapping[TopicPartition, int | None]: ...


def starting_offsets(options: ReadOptions, partitions: Partitions, source: OffsetSource) -> Offsets:
    """Return where each partition starts. Raises OptionError, DataLost, KafkaError."""
    bound, lossy = options.starting, not options.fail_on_data_loss
    if bound.from_group:
        return clamp_to_log(_group_offsets(options, partitions, source), partitions, source, lossy=lossy)
    if bound.has_time:
        return _offsets_for_times(bound, partitions, source, "latest" if options.latest_when_no_time else "error")
    if bound.offsets is None:
        return _same_bound(bound, partitions, source)
    return clamp_to_log(_given_offsets(bound, partitions, source), partitions, source, lossy=lossy)


def is_reproducible(options: ReadOptions) -> bool:
    """Whether the start resolves to the same offsets later, except for records that the log loses at its start. The end
    of a log and the offsets of a group move."""
    bound = options.starting
    if bound.from_group or bound.offset == LATEST:
        return False
    if bound.has_time:
        return not options.latest_when_no_time
    return bound.offsets is None or LATEST not in bound.offsets.values()


def ending_offsets(options: ReadOptions, partitions: Partitions, source: OffsetSource, start: Offsets) -> Offsets:
    """Return where each partition ends. Waits while the end of a log is below `start`. Raises OptionError, DataLost,
    KafkaError."""
    bound = options.ending
    if bound.has_time:
        return _offsets_for_times(bound, partitions, source, "latest", start)
    if bound.offsets is None:
        return source.latest_at_least(start, partitions) if partitions else {}
    given = _given_offsets(bound, partitions, source, start)
    return clamp_to_log(given, partitions, source, lossy=not options.fail_on_data_loss)


def clamp_to_log(offsets: Offsets, partitions: Partitions, source: OffsetSource, *, lossy: bool) -> Offsets:
    """The offsets, moved into their logs. Raises DataLost when one is outside, unless `lossy`."""
    earliest, latest = source.earliest(partitions), source.latest_at_least(offsets, partitions)
    outside = {
        partition: offset
        for partition, offset in offsets.items()
        if not earliest.get(partition, 0) <= offset <= latest.get(partition, offset)
    }
    if not outside:
        return offsets
    described = ", ".join(
        f"{partition}: {offset} is not in {earliest.get(partition)}-{latest.get(partition)}"
        for partition, offset in sorted(outside.items())
    )
    if not lossy:
        raise DataLost(f"offsets are outside of the log ({described}). {REMEDY}")
    _log.warning("Offsets are outside of the log, reading the records that exist", offsets=described)
    return {
        partition: min(max(offset, earliest.get(partition, offset)), latest.get(partition, offset))
        for partition, offset in offsets.items()
    }


def _group_offsets(options: ReadOptions, partitions: Partitions, source: OffsetSource) -> Offsets:
    """Return the committed offsets of the group; the default of the query for the other partitions."""
    assert options.group_id is not None
    found = source.committed(options.group_id, partitions)
    committed = {partition: offset for partition, offset in found.items() if offset is not None}
    others = tuple(partition for partition in partitions if partition not in committed)
    return {**committed, **_same_bound(options.starting, others, source)}


def _same_bound(bound: OffsetBound, partitions: Partitions, source: OffsetSource) -> Offsets:
    """`earliest` or `latest` for all partitions."""
    if not partitions:
        return {}
    return source.earliest(partitions) if bound.offset == EARLIEST else source.latest(partitions)


def _given_offsets(
    bound: OffsetBound, partitions: Partitions, source: OffsetSource, start: Offsets = NO_ENDS
) -> Offsets:
    """The offset of each partition as the option gives it; -2 and -1 are looked up."""
    assert bound.offsets is not None
    if set(bound.offsets) != set(partitions):
        expected = f"an offset for each partition that is read: {format_partitions(partitions)}"
        raise OptionError(bound.option, format_partitions(bound.offsets), expected)
    first = tuple(partition for partition, offset in bound.offsets.items() if offset == EARLIEST)
    last = tuple(partition for partition, offset in bound.offsets.items() if offset == LATEST)
    earliest = source.earliest(first) if first else {}
    latest = source.latest_at_least(start, last) if last else {}
    return {**bound.offsets, **earliest, **latest}


def _offsets_for_times(
    bound: OffsetBound,
    partitions: Partitions,
    source: OffsetSource,
    missing: Literal["error", "latest"],
    start: Offsets = NO_ENDS,
) -> Offsets:
    """Return the first offset at or after each partition's time. `missing`: the action if no record is that new."""
    times = bound.times_of(partitions)
    if set(times) != set(partitions):
        expected = f"a time for each partition that is read: {format_partitions(partitions)}"
        raise OptionError(bound.option, format_partitions(times), expected)
    found = dict(source.offsets_for_times({partition: time for partition, time in times.items() if time >= 0}))
    before_epoch = tuple(partition for partition, time in times.items() if time < 0)
    found |= source.earliest(before_epoch) if before_epoch else {}
    without = tuple(partition for partition in partitions if found.get(partition) is None)
    if without and missing == "error":
        expected = (
            f"a time at or after which {format_partitions(without)} has records, or used together with "
            f"startingOffsetsByTimestampStrategy=latest"
        )
        raise OptionError(bound.option, times[without[0]], expected)
    latest = source.latest_at_least(start, without) if without else {}
    return {
        partition: offset if (offset := found.get(partition)) is not None else latest[partition]
        for partition in partitions
    }
