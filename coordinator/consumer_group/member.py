"""One member of a consumer group, as its records have it: its own fields, and its current assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import IntEnum
from typing import Final

from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import EventMember

LEFT_EPOCH: Final = -1
STATIC_LEFT_EPOCH: Final = -2  # a static member that will come back

Partitions = Mapping[bytes, frozenset[int]]  # by topic id
Owned = Mapping[bytes, Mapping[int, int]]  # by topic id: partition and the epoch in which it was assigned (KIP-1251)


class MemberState(IntEnum):
    """The value is that of the record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to revoke partitions before it moves to the next epoch
    UNRELEASED_PARTITIONS = 2  # others still own partitions of its target assignment
    UNKNOWN = 127  # written by a newer broker


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """What only a member of the classic protocol has."""

    session_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # assignors with its subscription, the preferred one first

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.protocols)

    @property
    def preferred(self) -> tuple[str, bytes]:
        """Return the assignor that JoinGroup is answered with, and its subscription."""
        return self.protocols[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An immutable member: `replace` makes another. `regex` is empty without one."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    classic: ClassicMember | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    pending: Owned = field(default_factory=dict)  # to be revoked

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has its target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    @property
    def has_to_revoke(self) -> bool:
        """Return whether it has to revoke partitions. A static member that left for a while keeps its state alone."""
        return self.state is MemberState.UNREVOKED_PARTITIONS and self.epoch != STATIC_LEFT_EPOCH

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which it got a partition that it owns or has to revoke; None for any other."""
        for owned in (self.assigned, self.pending):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def as_event_member(self) -> EventMember:
        return EventMember(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
        )


def is_subset(partitions: Iterable[tuple[bytes, Iterable[int]]], owned: Owned) -> bool:
    """Return whether all these partitions, listed by topic id, are among `owned`."""
    return all(set(indexes) <= owned.get(topic_id, {}).keys() for topic_id, indexes in partitions)
