"""sticky: balanced first, and then as few partitions change hands as possible; eager. Pure.

Members tell in their user data what they had and in which generation (protocol/sticky_user_data.py), so that anybody
who leads next keeps it. All subscriptions equal: equal.py; different ones: unequal.py.

Laws
    User data that is garbage is no claim.
    Where racks count (racks.py), a member gives up what is far away from it, for somebody near: it moves more often.
    Between members that have equally good claims to be served first, the member id decides, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription, RebalanceProtocol
from rota.client.group.assignors.claims import Claim, settle
from rota.client.group.assignors.equal import share_equally
from rota.client.group.assignors.racks import racks
from rota.client.group.assignors.unequal import share_unequally
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.consumer_protocol import TopicPartition as Had
from rota.protocol.sticky_user_data import StickyUserData, decode_sticky, encode_sticky

Shares = dict[str, list[TopicPartition]]


class StickyAssignor:
    """Remembers what its member had."""

    def __init__(self) -> None:
        self._had: bytes | None = None

    @property
    def name(self) -> str:
        return "sticky"

    @property
    def supports(self) -> frozenset[RebalanceProtocol]:
        return frozenset({RebalanceProtocol.EAGER})

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """None before the first assignment."""
        return self._had

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        claims = {member_id: claim_of(subscription.user_data) for member_id, subscription in members.items()}
        return GroupAssignment(share(topics, members, claims))

    def on_assignment(self, partitions: Sequence[TopicPartition], user_data: bytes | None, generation_id: int) -> None:
        numbers: dict[str, list[int]] = {}
        for topic, number in partitions:
            numbers.setdefault(topic, []).append(number)
        had = tuple(Had(topic=topic, partitions=tuple(mine)) for topic, mine in numbers.items())
        self._had = encode_sticky(StickyUserData(previous_assignment=had, generation=generation_id))


def claim_of(user_data: bytes | None) -> Claim:
    """From a member's user data."""
    said = decode_sticky(user_data) if user_data else None
    if said is None:
        return Claim()
    had = [TopicPartition(one.topic, number) for one in said.previous_assignment for number in one.partitions]
    return Claim(had, said.generation)


def share(
    topics: Mapping[str, Sequence[PartitionInfo]],
    members: Mapping[str, MemberSubscription],
    claims: Mapping[str, Claim],
) -> Shares:
    """The sticky assignment. Member ids of `members` and `claims` are the same."""
    if not members:
        return {}
    wanted = {topic for member in members.values() for topic in member.topics}
    partitions = [TopicPartition(name, one.partition) for name in sorted(wanted) for one in topics.get(name, ())]
    had = settle(claims, frozenset(partitions))
    near = racks((one for name in wanted for one in topics.get(name, ())), members)
    if len({frozenset(member.topics) for member in members.values()}) == 1:
        return share_equally(partitions, had.owned, near)
    return share_unequally(partitions, members, had, near)
