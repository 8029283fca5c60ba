"""What members of the classic protocol write in JoinGroup and SyncGroup, in terms of a consumer group: topic ids.

Law
    What a member wrote is untrusted: reading raises DecodeError. Topics that do not exist are left out, both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rota.coordinator.consumer_group.member import Partitions
from rota.coordinator.consumer_group.topics import TopicDirectory
from rota.protocol.consumer_protocol import (
    VERSION_MAX,
    Assignment,
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
)

VERSION_BYTES = 2


def owned_partitions(subscription: Subscription, topics: TopicDirectory) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
    """Return the partitions that the member's subscription names as owned."""
    return tuple(_with_ids(subscription.owned_partitions, topics))


def read_assignment(raw: bytes, topics: TopicDirectory) -> tuple[Partitions, bool]:
    """Return the partitions of an assignment, and whether its assignor added data of its own. Raises DecodeError."""
    if not raw:  # the member has never got one
        return {}, False
    assignment = decode_assignment(raw)
    partitions = {
        topic_id: frozenset(indexes) for topic_id, indexes in _with_ids(assignment.assigned_partitions, topics)
    }
    return partitions, bool(assignment.user_data)


def _with_ids(listed: Iterable[TopicPartition], topics: TopicDirectory) -> Iterable[tuple[bytes, tuple[int, ...]]]:
    for of in listed:
        topic = topics.get(of.topic)
        if topic is not None:
            yield topic.topic_id, of.partitions


def write_assignment(partitions: Mapping[bytes, Iterable[int]], topics: TopicDirectory, subscription: bytes) -> bytes:
    """Return these partitions in the version of the member's subscription."""
    named = sorted(
        (topic.name, tuple(sorted(indexes)))
        for topic_id, indexes in partitions.items()
        if (topic := topics.by_id(topic_id)) is not None
    )
    assigned = tuple(TopicPartition(topic=name, partitions=indexes) for name, indexes in named)
    return encode_assignment(Assignment(assigned_partitions=assigned), _version(subscription))


def _version(raw: bytes) -> int:
    """Return the version of what a member wrote; the newest that this release knows for a newer one."""
    version = int.from_bytes(raw[:VERSION_BYTES], "big", signed=True)
    return min(max(version, 0), VERSION_MAX)
