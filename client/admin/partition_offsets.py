"""Offsets of partitions: the start, the end, and the offset of a timestamp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rota.client.admin.call_results import CallResults, ErrorContext
from rota.client.admin.partition_lookup import find_leaders
from rota.client.admin.requests import Deadline
from rota.client.errors import KafkaError
from rota.client.network.cluster import Cluster
from rota.client.offsets import list_offsets as logs
from rota.client.offsets.list_offsets import EARLIEST, LATEST, each_offset
from rota.client.types import OffsetAndTimestamp, TopicPartition
from rota.protocol.errors import ErrorCode

REMEDIES: Final = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check topic and partition against describe_topics()."}


async def list_offsets(
    cluster: Cluster, times: Mapping[TopicPartition, int], deadline: Deadline, *, isolation_level: str
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Return the offset of EARLIEST, LATEST, MAX_TIMESTAMP or of the first record at or after a time in ms; None when
    there is no such record. Raises AdminFailed."""
    results = CallResults[TopicPartition, OffsetAndTimestamp | None](
        "listing offsets", 2, times, lambda key: ErrorContext(*key), remedies=REMEDIES
    )
    if times:
        await find_leaders(cluster, results, deadline)
    try:
        await each_offset(
            cluster,
            {key: times[key] for key in results.pending()},
            results.succeed,
            isolation_level=isolation_level,
            timeout_ms=deadline.remaining_ms,
        )
    except KafkaError as failure:
        results.fail_pending(failure)
    return results.all_or_raise()


async def bounds(
    cluster: Cluster, partitions: Iterable[TopicPartition], deadline: Deadline
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the start offset and the high watermark of each partition, without the partitions that do not exist or
    have no leader. Raises TimedOut, UnknownTopic, BrokerError."""
    results = CallResults[TopicPartition, None]("listing offsets", 2, partitions, lambda key: ErrorContext(*key))
    leaders = await find_leaders(cluster, results, deadline) if results.pending() else {}
    led = tuple(key for key in results.pending() if key in leaders)
    starts, ends = [
        await logs.list_offsets(cluster, dict.fromkeys(led, at), timeout_ms=deadline.remaining_ms)
        for at in (EARLIEST, LATEST)
    ]
    return {key: (_offset(starts[key]), _offset(ends[key])) for key in led}


def _offset(found: OffsetAndTimestamp | None) -> int:
    assert found is not None, "a log has a start and an end"
    return found.offset
