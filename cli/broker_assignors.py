"""The assignors of brokers (KIP-848), `uniform` and `range`, as `rota groups plan` needs them. Pure.

Laws
    These are the assignors of Rota's broker, which give the same assignments as Kafka's own. Members are in the order
    of their ids; Apache Kafka's are in that of a hash map, so that another one of equal members may get a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rota.client.errors import KafkaError
from rota.client.group.assignors.base import MemberSubscription
from rota.client.types import TopicPartition
from rota.coordinator.consumer_group.assignors import ASSIGNORS
from rota.coordinator.consumer_group.assignors.spec import GroupSpec, MemberSpec
from rota.coordinator.consumer_group.regular_expression import (
    InvalidExpression,
    TooExpensive,
    compile_expression,
)

if TYPE_CHECKING:
    from rota.client import MemberDescription

NAMES: Final = tuple(ASSIGNORS)
Owned = dict[str, tuple[TopicPartition, ...]]


def assign(
    name: str,
    topic_ids: Mapping[str, bytes],
    counts: Mapping[str, int],
    members: Mapping[str, MemberSubscription],
    before: Mapping[str, Sequence[TopicPartition]],
) -> Owned:
    """Return the partitions of each member; `topic_ids` and `counts` (of partitions) are by topic name."""
    names = {topic_id: topic for topic, topic_id in topic_ids.items()}
    specs = {
        member: MemberSpec(
            topic_ids=frozenset(topic_ids[topic] for topic in subscription.topics if topic in topic_ids),
            instance_id=subscription.group_instance_id,
            target=_target(before.get(member, ()), topic_ids),
        )
        for member, subscription in sorted(members.items())
    }
    spec = GroupSpec(
        members=specs,
        is_homogeneous=len({each.topic_ids for each in specs.values()}) == 1,
        partition_counts={topic_ids[topic]: count for topic, count in counts.items()},
    )
    assigned = ASSIGNORS[name](spec)
    return {
        member: tuple(
            sorted(
                TopicPartition(names[topic_id], number)
                for topic_id, numbers in assigned.get(member, {}).items()
                for number in numbers
            )
        )
        for member in members
    }


def _target(partitions: Iterable[TopicPartition], topic_ids: Mapping[str, bytes]) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for partition in partitions:
        if partition.topic in topic_ids:
            found.setdefault(topic_ids[partition.topic], set()).add(partition.partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}


def with_matching_topics(members: Iterable[MemberDescription], topics: Iterable[str]) -> tuple[MemberDescription, ...]:
    """Return the members, with the topics that match their regular expressions among their topics. Raises KafkaError
    for an expression that Rota's broker refuses: Apache Kafka takes some more."""
    names = tuple(topics)
    return tuple(
        replace(member, topics=tuple(sorted({*member.topics, *_matching(member.topic_regex, names)})))
        if member.topic_regex
        else member
        for member in members
    )


def _matching(expression: str, topics: Iterable[str]) -> list[str]:
    try:
        compiled = compile_expression(expression)
        return [topic for topic in topics if compiled.matches(topic)]
    except (InvalidExpression, TooExpensive) as refusal:
        raise KafkaError(
            f"which topics match {expression!r} is not known, so that there is no plan: {refusal}"
        ) from None
