"""The subscription of a member, as names or as a pattern, and its bytes in JoinGroup. Pure.

Laws
    Names stay as they are, known or not; a pattern stands for the known topics that have partitions.
    Topics and owned partitions are encoded in order, in version 3, as by Java's consumer (KIP-429, KIP-792, KIP-881).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from rota.client.group.assignors.base import MemberSubscription
from rota.client.network.metadata import Metadata
from rota.client.types import TopicPartition
from rota.protocol import consumer_protocol as wire

Topics = frozenset[str] | re.Pattern[str]


def topics_of(subscription: Topics, metadata: Metadata, *, exclude_internal: bool) -> frozenset[str]:
    """The topics that are subscribed to now."""
    if isinstance(subscription, frozenset):
        return subscription
    return frozenset(
        topic.name
        for topic in metadata.topics.values()
        if topic.partitions and subscription.fullmatch(topic.name) and not (exclude_internal and topic.is_internal)
    )


def is_subscribed(subscription: Topics, topic: str) -> bool:
    """Whether an assignment may contain the topic: a leader may know of a topic before this member does."""
    return topic in subscription if isinstance(subscription, frozenset) else subscription.fullmatch(topic) is not None


def grouped(partitions: Iterable[TopicPartition]) -> tuple[wire.TopicPartition, ...]:
    """The partitions by topic, both sorted."""
    return tuple(
        wire.TopicPartition(topic=topic, partitions=tuple(partition.partition for partition in of_topic))
        for topic, of_topic in groupby(sorted(partitions), key=lambda partition: partition.topic)
    )


def flat(topics: Iterable[wire.TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.topic, partition) for topic in topics for partition in topic.partitions)


def encoded_subscription(
    topics: Iterable[str], user_data: bytes | None, owned: Iterable[TopicPartition], generation: int, rack: str
) -> bytes:
    """The bytes of a subscription in JoinGroup."""
    return wire.encode_subscription(
        wire.Subscription(
            topics=tuple(sorted(topics)),
            user_data=user_data,
            owned_partitions=grouped(owned),
            generation_id=generation,
            rack_id=rack or None,
        )
    )


def decoded_subscription(metadata: bytes, instance: str | None) -> MemberSubscription:
    """A subscription of any version, from the bytes that the leader gets. Raises DecodeError."""
    subscription = wire.decode_subscription(metadata)
    return MemberSubscription(
        topics=tuple(subscription.topics),
        owned=flat(subscription.owned_partitions),
        generation_id=subscription.generation_id,
        group_instance_id=instance,
        rack=subscription.rack_id,
        user_data=subscription.user_data,
    )


Snapshot = dict[str, tuple[int, ...] | None]


def snapshot(topics: Iterable[str], metadata: Metadata) -> Snapshot:
    """The partitions of each topic, None for an unknown one."""
    return {topic: metadata.partitions(topic) for topic in topics}


def difference(before: Snapshot, now: Snapshot) -> str:
    """The changed topics, for the log."""

    def count(snapshot: Snapshot, topic: str) -> str:
        partitions = snapshot[topic]
        return "unknown" if partitions is None else f"{len(partitions)} partitions"

    changed = [topic for topic in sorted(now) if before[topic] != now[topic]]
    return "cached metadata has changed: " + "; ".join(
        f"{topic} from {count(before, topic)} to {count(now, topic)}" for topic in changed
    )
