"""The interface of assignors. Pure.

Laws
    An assignment gives each partition of the subscribed topics to exactly one member that subscribes to its topic.
    Same input, same output, whatever the order of the mapping: the leader may change between two generations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Protocol

from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.dataclass import dataclass


class RebalanceProtocol(Enum):
    """EAGER: a member revokes all partitions before it joins. COOPERATIVE: it keeps its partitions (KIP-429)."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The subscription of one member in its JoinGroup."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = -1
    group_instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The partitions of each member, in the order in which they are sent; `user_data` for some members."""

    partitions: Mapping[str, Sequence[TopicPartition]]
    user_data: Mapping[str, bytes] = field(default_factory=dict)


class Assignor(Protocol):
    """One strategy. An instance belongs to one consumer and may remember (sticky ones do)."""

    @property
    def name(self) -> str:
        """The name in JoinGroup: members choose a name that all of them have."""

    @property
    def supports(self) -> frozenset[RebalanceProtocol]:
        """The consumer uses the highest protocol that all its assignors support."""

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Return the user data for the subscription of this member."""

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        """Called at the leader. `topics`: every subscribed topic that exists, with its partitions in order.
        `members`: by member id."""

    def on_assignment(self, partitions: Sequence[TopicPartition], user_data: bytes | None, generation_id: int) -> None:
        """Handle the assignment of this member."""
