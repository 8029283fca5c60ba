"""Offsets: committing, reading what was committed, finding offsets by time, giving positions to partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rota.client.net.cluster import Cluster
from rota.client.types import GroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3  # as ListOffsets says them


async def list_offsets(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """For each partition the offset at EARLIEST, LATEST, MAX_TIMESTAMP or the first at or after a time in ms; None when
    there is none. Asks every leader once, side by side; follows leaders that move. Raises TimedOut, UnknownTopic,
    BrokerError."""
    raise NotImplementedError


async def commit(
    cluster: Cluster,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    timeout_ms: int | None = None,
) -> None:
    """OffsetCommit until it worked. Raises CommitFailed, RebalanceInProgress, FencedInstance, BrokerError, TimedOut."""
    raise NotImplementedError


async def committed(
    cluster: Cluster,
    group: GroupMetadata,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool = True,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """What the group has committed; None where nothing is. `partitions` None: everything that it has."""
    raise NotImplementedError
