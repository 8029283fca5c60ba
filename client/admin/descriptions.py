"""Descriptions of groups, from the responses of DescribeGroups and ConsumerGroupDescribe. Pure.

Laws
    Metadata and assignments that cannot be decoded leave their fields empty; they never raise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from rota.client.network.metadata import BrokerInfo
from rota.client.types import TopicPartition
from rota.protocol.consumer_protocol import PROTOCOL_TYPE, Subscription, decode_assignment, decode_subscription
from rota.protocol.consumer_protocol import TopicPartition as TopicPartitions
from rota.protocol.dataclass import dataclass
from rota.protocol.messages import consumer_group_describe as newer
from rota.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from rota.protocol.wire import DecodeError

CLASSIC, CONSUMER = "classic", "consumer"  # group types, as in ListGroups


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member. `topics`, `owned` and `rack` come from its subscription, `assignment` from its assignment. They are
    empty when the group is not a consumer group, while it rebalances, and when the bytes cannot be decoded. `metadata`
    and `raw_assignment` are the undecoded bytes. `topic_regex` is the regular expression that the broker evaluates
    (KIP-848): the topics that match it are not in `topics`."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    topics: tuple[str, ...] = ()
    assignment: tuple[TopicPartition, ...] = ()
    owned: tuple[TopicPartition, ...] = ()
    rack: str | None = None
    metadata: bytes = field(default=b"", repr=False)
    raw_assignment: bytes = field(default=b"", repr=False)
    topic_regex: str | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group. `state` is Empty, PreparingRebalance, CompletingRebalance or Stable; Assigning or Reconciling are
    possible when `type` is "consumer" (KIP-848). `protocol` is the name of the assignor."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberDescription, ...]
    coordinator: BrokerInfo | None
    type: str = CLASSIC


def from_consumer_group_describe(group: newer.DescribedGroup, coordinator: BrokerInfo | None) -> GroupDescription:
    """Convert a group of a ConsumerGroupDescribe response (KIP-848)."""
    members = tuple(
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.subscribed_topic_names,
            tuple(
                TopicPartition(topic.topic_name, number)
                for topic in member.assignment.topic_partitions
                for number in topic.partitions
            ),
            rack=member.rack_id,
            topic_regex=member.subscribed_topic_regex or None,
        )
        for member in group.members
    )
    return GroupDescription(
        group.group_id, group.group_state, PROTOCOL_TYPE, group.assignor_name, members, coordinator, CONSUMER
    )


def from_describe_groups(group: DescribedGroup, coordinator: BrokerInfo | None) -> GroupDescription:
    """Convert a group of a DescribeGroups response."""
    members = tuple(_member(member, group.protocol_type) for member in group.members)
    return GroupDescription(
        group.group_id, group.group_state, group.protocol_type, group.protocol_data, members, coordinator
    )


def _member(member: DescribedGroupMember, protocol_type: str) -> MemberDescription:
    consumes = protocol_type == PROTOCOL_TYPE
    subscription = _subscription(member.member_metadata) if consumes else Subscription()
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        subscription.topics,
        _partitions(_assigned(member.member_assignment)) if consumes else (),
        _partitions(subscription.owned_partitions),
        subscription.rack_id,
        member.member_metadata,
        member.member_assignment,
    )


def _subscription(raw: bytes) -> Subscription:
    try:
        return decode_subscription(raw)
    except DecodeError:
        return Subscription()


def _assigned(raw: bytes) -> tuple[TopicPartitions, ...]:
    try:
        return decode_assignment(raw).assigned_partitions
    except DecodeError:
        return ()


def _partitions(topics: Iterable[TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.topic, partition) for topic in topics for partition in topic.partitions)
