"""Detect the records that a streaming query has lost, and plan where it continues. Pure.

Laws
    Each loss is described with its partition and its offsets.
    A topic that was created again is read from the start of its log. The micro-batch that goes back has an end below
    its start, and no other micro-batch has: the checkpoint alone defines what is read, and no record of the new log is
    left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rota.client.types import TopicPartition
from rota.spark_connector.offsets import OffsetRange, Offsets, limit_offsets

Losses = dict[TopicPartition, str]  # a description of the loss of each partition


def detect_losses(
    begin: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], recreated: Collection[str]
) -> Losses:
    """The partitions that were read up to `begin` and whose logs no longer fit; `recreated` topics have a new id."""
    losses: Losses = {}
    for partition, offset in sorted(begin.items()):
        if partition not in latest:
            losses[partition] = f"{partition} does not exist any more; the query has read it up to offset {offset}"
        elif partition.topic in recreated:
            losses[partition] = (
                f"{partition} was read up to offset {offset}, and its topic was deleted and created again"
            )
        elif latest[partition] < offset:
            losses[partition] = (
                f"{partition} was read up to offset {offset}, and its log now ends at {latest[partition]}"
            )
    return losses


def restart_offsets(
    begin: Mapping[TopicPartition, int], lost: Iterable[TopicPartition], earliest: Mapping[TopicPartition, int]
) -> Offsets:
    """The log starts of the lost partitions that start below `begin`: these are read again from there."""
    return {
        partition: earliest[partition]
        for partition in lost
        if partition in earliest and earliest[partition] < begin[partition]
    }


def next_end(
    begin: Mapping[TopicPartition, int],
    restarts: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    records_max: int | None,
) -> Offsets:
    """The end of the next micro-batch. `begin` has every partition of `latest`; `restarts` go back to their offset."""
    start = {partition: restarts.get(partition, begin[partition]) for partition in latest}
    available = {partition: max(offset, start[partition]) for partition, offset in latest.items()}
    end = available if records_max is None else limit_offsets(start, available, records_max)
    return {
        partition: min(offset, begin[partition] - 1) if partition in restarts else offset
        for partition, offset in end.items()
    }


def readable_ranges(
    ranges: Iterable[OffsetRange], earliest: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> tuple[list[OffsetRange], Losses]:
    """The parts of the ranges that are in the logs, and the losses of the other parts."""
    readable: list[OffsetRange] = []
    losses: Losses = {}
    for offsets in ranges:
        partition = offsets.topic_partition
        if partition not in earliest or partition not in latest:
            losses[partition] = (
                f"{partition} does not exist any more; its offsets {offsets.start} to {offsets.end - 1} are lost"
            )
            continue
        start, end = max(offsets.start, earliest[partition]), min(offsets.end, latest[partition])
        if start > offsets.start or end < offsets.end:
            losses[partition] = (
                f"{partition} lacks offsets {_missing(offsets, start, end)}: its log begins at {earliest[partition]} "
                f"and ends at {latest[partition]}"
            )
        if start < end:
            readable.append(OffsetRange(offsets.topic, offsets.partition, start, end))
    return readable, losses


def _missing(offsets: OffsetRange, start: int, end: int) -> str:
    missing = [(offsets.start, min(start, offsets.end) - 1)] if start > offsets.start else []
    missing += [(max(end, offsets.start), offsets.end - 1)] if end < offsets.end else []
    return ", ".join(f"{first} to {last}" for first, last in missing)
