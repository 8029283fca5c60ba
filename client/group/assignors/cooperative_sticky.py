"""cooperative-sticky: as sticky, and members go on reading what they keep (KIP-429). Pure.

A partition that is to move is given to nobody in the first round: its owner sees that it is gone, gives it up, and
joins again, which starts the second round, in which the partition is free.

Laws
    A partition is given to no member while another one still owns it.
    What a member owns stands in its subscription; the generation too (version 2, KIP-792), or in its user data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription, RebalanceProtocol
from rota.client.group.assignors.claims import Claim
from rota.client.group.assignors.sticky import Shares, share
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.sticky_user_data import decode_cooperative, encode_cooperative


class CooperativeStickyAssignor:
    """Remembers its member's generation."""

    def __init__(self) -> None:
        self._generation_id = -1

    @property
    def name(self) -> str:
        return "cooperative-sticky"

    @property
    def supports(self) -> frozenset[RebalanceProtocol]:
        return frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """The generation, -1 before the first."""
        return encode_cooperative(self._generation_id)

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        claims = {member_id: claim_of(subscription) for member_id, subscription in members.items()}
        return GroupAssignment(withheld(share(topics, members, claims), claims))

    def on_assignment(self, partitions: Sequence[TopicPartition], user_data: bytes | None, generation_id: int) -> None:
        self._generation_id = generation_id


def claim_of(subscription: MemberSubscription) -> Claim:
    """What a member owns, and since when."""
    generation_id: int | None = subscription.generation_id
    if subscription.generation_id < 0 and subscription.user_data:
        generation_id = decode_cooperative(subscription.user_data)
    return Claim(subscription.owned, -1 if generation_id is None else generation_id)


def withheld(shares: Shares, claims: Mapping[str, Claim]) -> Shares:
    """Without the partitions that somebody else has to give up first."""
    claimants: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member_id, claim in claims.items():
        for partition in dict.fromkeys(claim.partitions):
            claimants.setdefault(partition, []).append((claim.generation_id, member_id))

    def is_free(partition: TopicPartition, member_id: str) -> bool:
        known = sorted(claimants.get(partition, ()), reverse=True)
        if not known:
            return True
        in_doubt = len(known) > 1 and known[0][0] == known[1][0]
        return known[0][1] == member_id and not in_doubt

    return {
        member_id: [partition for partition in mine if is_free(partition, member_id)]
        for member_id, mine in shares.items()
    }
