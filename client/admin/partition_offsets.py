"""Offsets of partitions: where they begin and end, where a time lies in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rota.client.admin.asking import Deadline
from rota.client.admin.outcomes import Outcomes, Place
from rota.client.admin.places import leaders_of
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
    """EARLIEST, LATEST, MAX_TIMESTAMP or a time in ms; None where no record is that young. Raises AdminFailed."""
    outcomes = Outcomes[TopicPartition, OffsetAndTimestamp | None](
        "listing offsets", 2, times, lambda key: Place(*key), remedies=REMEDIES
    )
    if times:
        await leaders_of(cluster, outcomes, deadline)
    try:
        await each_offset(
            cluster,
            {key: times[key] for key in outcomes.open()},
            outcomes.succeed,
            isolation_level=isolation_level,
            timeout_ms=deadline.left_ms,
        )
    except KafkaError as failure:
        outcomes.give_up(failure)
    return outcomes.results()


async def bounds(
    cluster: Cluster, partitions: Iterable[TopicPartition], deadline: Deadline
) -> dict[TopicPartition, tuple[int, int]]:
    """Where each begins and ends (its high watermark); what is gone or has no leader is left out. Raises TimedOut,
    UnknownTopic, BrokerError."""
    wanted = Outcomes[TopicPartition, None]("listing offsets", 2, partitions, lambda key: Place(*key))
    led = await leaders_of(cluster, wanted, deadline) if wanted.open() else {}
    asked = tuple(key for key in wanted.open() if key in led)
    starts, ends = [
        await logs.list_offsets(cluster, dict.fromkeys(asked, at), timeout_ms=deadline.left_ms)
        for at in (EARLIEST, LATEST)
    ]
    return {key: (_offset(starts[key]), _offset(ends[key])) for key in asked}


def _offset(found: OffsetAndTimestamp | None) -> int:
    assert found is not None, "a log has a start and an end"
    return found.offset
