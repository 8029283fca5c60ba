"""The assignment of new partitions' replicas to brokers. Pure: brokers are ids.

Replicas are assigned round-robin: partition p starts at the broker after the one where p-1 started, so that leaders
spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.coordinator.metadata.topic import PartitionState, Refusal
from rota.protocol.errors import ErrorCode

PARTITIONS_PER_REQUEST_MAX = 10_000  # Kafka's bound on the records of one controller operation

Assignment = Sequence[tuple[int, Sequence[int]]]  # (partition index, broker ids, the preferred leader first)


def assign_round_robin(
    brokers: Sequence[int], first: int, count: int, replication: int
) -> tuple[PartitionState, ...] | Refusal:
    """Return partitions `first` to `first + count - 1`, assigned round-robin to the live brokers, or an error."""
    if replication > len(brokers):
        why = f"only {len(brokers)} broker(s) are registered"
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication} cannot be reached because {why}.",
        )
    ring = sorted(brokers)
    return tuple(
        _state(index, tuple(ring[(index + step) % len(ring)] for step in range(replication)))
        for index in range(first, first + count)
    )


def assign_manually(
    brokers: Sequence[int], first: int, assignment: Assignment, replication: int | None = None
) -> tuple[PartitionState, ...] | Refusal:
    """Return the partitions of a manual assignment, or an error. Indexes are `first`, `first + 1`, … in any order."""
    states: dict[int, PartitionState] = {}
    for index, replicas in assignment:
        if index in states:
            return _refuse(f"Found multiple manual partition assignments for partition {index}")
        why = _invalid_replicas(replicas, brokers, replication)
        if why is not None:
            return _refuse(f"The manual partition assignment includes {why}")
        replication = len(replicas)
        states[index] = _state(index, tuple(replicas))
    if sorted(states) != list(range(first, first + len(states))):
        return _refuse("partitions should be a consecutive 0-based integer sequence")
    return tuple(states[index] for index in sorted(states))


def _state(index: int, replicas: tuple[int, ...]) -> PartitionState:
    return PartitionState(index=index, leader=replicas[0], replicas=replicas, isr=replicas)


def _refuse(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _invalid_replicas(replicas: Sequence[int], brokers: Sequence[int], replication: int | None) -> str | None:
    if not replicas:
        return "an empty replica list."
    for broker in sorted(replicas):
        if broker not in brokers:
            return f"broker {broker}, but no such broker is registered."
        if replicas.count(broker) > 1:
            return f"the broker {broker} more than once."
    if replication is not None and len(replicas) != replication:
        return (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {replication} replica(s)."
        )
    return None
