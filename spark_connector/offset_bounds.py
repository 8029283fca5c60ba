"""Where a query starts and ends, from its options and what the brokers say.

Laws
    The answer has an offset for each partition that is read, and for no other.
    A start below the log's begin and an end beyond its end is data loss: an error that says what was lost, or, with
    failOnDataLoss=false, a warning and what there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from rota.client.log import logger
from rota.client.types import TopicPartition
from rota.spark_connector.errors import DataLost, OptionError
from rota.spark_connector.offsets import EARLIEST, LATEST, Offsets, named
from rota.spark_connector.options import Edge, ReadOptions

_log = logger("rota.spark")
REMEDY: Final = "Set failOnDataLoss=false to go on with what there is."


class Asked(Protocol):
    """What is asked of the brokers: see broker.py."""

    def earliest(self, partitions: tuple[TopicPartition, ...]) -> Offsets: ...

    def latest(self, partitions: tuple[TopicPartition, ...]) -> Offsets: ...

    def latest_at_least(
        self, ends: Mapping[TopicPartition, int], partitions: tuple[TopicPartition, ...]
    ) -> Offsets: ...

    def at_times(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]: ...

    def committed(self, group: str, partitions: tuple[TopicPartition, ...]) -> Mapping[TopicPartition, int | None]: ...


def starts(options: ReadOptions, partitions: tuple[TopicPartition, ...], asked: Asked) -> Offsets:
    """Where each partition starts. Raises OptionError, DataLost, KafkaError."""
    edge = options.starting
    if edge.from_group:
        assert options.group_id is not None
        found = asked.committed(options.group_id, partitions)
        known = {one: at for one, at in found.items() if at is not None}
        rest = tuple(one for one in partitions if one not in known)
        return within(
            {**known, **_everywhere(edge, rest, asked)}, partitions, asked, lossy=not options.fail_on_data_loss
        )
    if edge.time_ms is not None or edge.times is not None:
        missing = "latest" if options.latest_when_no_time else "error"
        return _at_times(edge, partitions, asked, missing)
    if edge.offsets is None:
        return _everywhere(edge, partitions, asked)
    return within(_given(edge, partitions, asked), partitions, asked, lossy=not options.fail_on_data_loss)


def can_be_found_again(options: ReadOptions) -> bool:
    """Whether the start will be the same when it is asked for later, but for what a log loses at its beginning: the
    ends of logs and the offsets of a group move."""
    edge = options.starting
    if edge.from_group or edge.everywhere == LATEST:
        return False
    if edge.time_ms is not None or edge.times is not None:
        return not options.latest_when_no_time
    return edge.offsets is None or LATEST not in edge.offsets.values()


def ends(options: ReadOptions, partitions: tuple[TopicPartition, ...], asked: Asked, start: Offsets) -> Offsets:
    """Where each partition ends. Waits while the end of a log is below `start`. Raises OptionError, DataLost,
    KafkaError."""
    edge = options.ending
    if edge.time_ms is not None or edge.times is not None:
        return _at_times(edge, partitions, asked, "latest", start)
    if edge.offsets is None:
        return asked.latest_at_least(start, partitions) if partitions else {}
    given = _given(edge, partitions, asked, start)
    return within(given, partitions, asked, lossy=not options.fail_on_data_loss)


def within(offsets: Offsets, partitions: tuple[TopicPartition, ...], asked: Asked, *, lossy: bool) -> Offsets:
    """Offsets that are in the log: what lies outside is lost. Raises DataLost unless `lossy`."""
    first, last = asked.earliest(partitions), asked.latest_at_least(offsets, partitions)
    outside = {one: at for one, at in offsets.items() if not first.get(one, 0) <= at <= last.get(one, at)}
    if not outside:
        return offsets
    told = ", ".join(f"{one}: {at} is not in {first.get(one)}-{last.get(one)}" for one, at in sorted(outside.items()))
    if not lossy:
        raise DataLost(f"offsets that are no longer in the log, or not yet ({told}). {REMEDY}")
    _log.warning("Reading what there is: offsets are outside of the log", offsets=told)
    return {one: min(max(at, first.get(one, at)), last.get(one, at)) for one, at in offsets.items()}


def _everywhere(edge: Edge, partitions: tuple[TopicPartition, ...], asked: Asked) -> Offsets:
    if not partitions:
        return {}
    return asked.earliest(partitions) if edge.everywhere == EARLIEST else asked.latest(partitions)


def _given(edge: Edge, partitions: tuple[TopicPartition, ...], asked: Asked, start: Offsets | None = None) -> Offsets:
    """By partition, each of them; -2 and -1 are asked for."""
    assert edge.offsets is not None
    if set(edge.offsets) != set(partitions):
        raise OptionError(
            edge.option, named(edge.offsets), f"an offset for each partition that is read: {named(partitions)}"
        )
    first = tuple(one for one, at in edge.offsets.items() if at == EARLIEST)
    last = tuple(one for one, at in edge.offsets.items() if at == LATEST)
    asked_for = {
        **(asked.earliest(first) if first else {}),
        **(asked.latest_at_least(start or {}, last) if last else {}),
    }
    return {**edge.offsets, **asked_for}


def _at_times(
    edge: Edge, partitions: tuple[TopicPartition, ...], asked: Asked, missing: str, start: Offsets | None = None
) -> Offsets:
    """The first offset at or after the time; `missing`: what happens when there is none."""
    times = dict.fromkeys(partitions, edge.time_ms) if edge.time_ms is not None else dict(edge.times or {})
    if set(times) != set(partitions):
        raise OptionError(edge.option, named(times), f"a time for each partition that is read: {named(partitions)}")
    found = dict(asked.at_times({one: at for one, at in times.items() if at is not None and at >= 0}))
    before_epoch = tuple(one for one, at in times.items() if at is not None and at < 0)
    found |= asked.earliest(before_epoch) if before_epoch else {}  # every record is at or after such a time
    nothing = tuple(one for one in partitions if found.get(one) is None)
    if nothing and missing == "error":
        right = f"a time at or after which {named(nothing)} has records, or startingOffsetsByTimestampStrategy=latest"
        raise OptionError(edge.option, edge.time_ms if edge.time_ms is not None else times[nothing[0]], right)
    last = asked.latest_at_least(start or {}, nothing) if nothing else {}
    return {one: at if (at := found.get(one)) is not None else last[one] for one in partitions}
