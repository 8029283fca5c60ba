"""What an assignor is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from rota.coordinator.consumer_group.member import Partitions
from rota.protocol.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSpec:
    """`topic_ids` are existing topics that the member subscribes to; `target` is its last target assignment."""

    topic_ids: frozenset[bytes]
    instance_id: str | None = None
    target: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """`is_homogeneous`: all members subscribe to the same topics. `partition_counts` by topic id."""

    members: Mapping[str, MemberSpec]
    is_homogeneous: bool
    partition_counts: Mapping[bytes, int]


def uuid_order(topic_id: bytes) -> tuple[int, int]:
    """Kafka compares the halves of an id as signed numbers."""
    return int.from_bytes(topic_id[:8], signed=True), int.from_bytes(topic_id[8:], signed=True)
