"""The assignment of a group's partitions to its members: waiting until it is stable."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka.admin import AdminClient, ConsumerGroupDescription
from tests.interop.kit import PATIENCE_S, until
from tests.interop.members import Member


def layout(members: Sequence[Member]) -> list[set[int]]:
    """The partition numbers that each member owns."""
    return [member.partitions for member in members]


def until_layout(members: Sequence[Member], *expected: set[int]) -> None:
    """Wait until each member owns exactly that."""
    until(lambda: layout(members) == list(expected), f"the layout {expected}")


def until_sizes(members: Sequence[Member], *expected: int, seconds: float = PATIENCE_S) -> None:
    """Wait until the members own that many partitions each, and no partition has two owners."""

    def settled() -> bool:
        owned = layout(members)
        return [len(part) for part in owned] == list(expected) and len(set().union(*owned)) == sum(expected)

    until(settled, f"sizes {expected}", seconds=seconds)


def describe(admin: AdminClient, group: str) -> ConsumerGroupDescription:
    """What DescribeGroups says."""
    return admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
