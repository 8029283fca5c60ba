"""sticky: balanced first, and then as few partitions change hands as possible; eager. Pure.

Members send their partitions and the generation in their user data (protocol/sticky_user_data.py), so that the next
leader knows them. All subscriptions equal: constrained.py; different ones: general.py, as in AbstractStickyAssignor.

Laws
    A member whose user data cannot be decoded owns nothing.
    When racks are used (rack_info.py), a member loses partitions without a replica in its rack: more of them move.
    Between members that are equal otherwise, the member id decides, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription, RebalanceProtocol
from rota.client.group.assignors.constrained import constrained_assign
from rota.client.group.assignors.general import general_assign
from rota.client.group.assignors.owned_partitions import MemberData, resolve_owned_partitions
from rota.client.group.assignors.rack_info import rack_info
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.consumer_protocol import TopicPartition as TopicPartitions
from rota.protocol.sticky_user_data import StickyUserData, decode_sticky, encode_sticky

Assignment = dict[str, list[TopicPartition]]


class StickyAssignor:
    """Remembers the partitions of its member, as user data."""

    def __init__(self) -> None:
        self._user_data: bytes | None = None

    @property
    def name(self) -> str:
        return "sticky"

    @property
    def supports(self) -> frozenset[RebalanceProtocol]:
        return frozenset({RebalanceProtocol.EAGER})

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """None before the first assignment."""
        return self._user_data

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        member_data = {member_id: member_data_of(subscription.user_data) for member_id, subscription in members.items()}
        return GroupAssignment(sticky_assign(topics, members, member_data))

    def on_assignment(self, partitions: Sequence[TopicPartition], user_data: bytes | None, generation_id: int) -> None:
        numbers: dict[str, list[int]] = {}
        for topic, number in partitions:
            numbers.setdefault(topic, []).append(number)
        previous = tuple(TopicPartitions(topic=topic, partitions=tuple(mine)) for topic, mine in numbers.items())
        self._user_data = encode_sticky(StickyUserData(previous_assignment=previous, generation=generation_id))


def member_data_of(user_data: bytes | None) -> MemberData:
    """Decode a member's user data; nothing is owned when it is missing or garbage."""
    decoded = decode_sticky(user_data) if user_data else None
    if decoded is None:
        return MemberData()
    previous = [
        TopicPartition(topic.topic, number) for topic in decoded.previous_assignment for number in topic.partitions
    ]
    return MemberData(previous, decoded.generation)


def sticky_assign(
    topics: Mapping[str, Sequence[PartitionInfo]],
    members: Mapping[str, MemberSubscription],
    member_data: Mapping[str, MemberData],
) -> Assignment:
    """Return the sticky assignment. `members` and `member_data` have the same member ids."""
    if not members:
        return {}
    subscribed = {topic for member in members.values() for topic in member.topics}
    partitions = [
        TopicPartition(name, partition.partition) for name in sorted(subscribed) for partition in topics.get(name, ())
    ]
    owned = resolve_owned_partitions(member_data, frozenset(partitions))
    racks = rack_info((partition for name in subscribed for partition in topics.get(name, ())), members)
    if len({frozenset(member.topics) for member in members.values()}) == 1:
        return constrained_assign(partitions, owned.owned, racks)
    return general_assign(partitions, members, owned, racks)
