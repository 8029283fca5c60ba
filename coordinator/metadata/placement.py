"""The assignment of new partitions' replicas to brokers, as Kafka's AdminUtils makes it. Pure.

Law
    PL1  Leaders are spread evenly over the brokers, and the replicas of a partition over as many racks as there are.
    PL2  Where live brokers are too few, those that are absent get the last replicas, outside of the ISR and in turns.

The brokers form a ring that alternates between racks. Partition p starts at the broker after the one where p-1 started,
so that leaders spread evenly; with each lap of the ring the followers shift by one, so that the partitions of a broker
that dies get leaders on all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from zlib import crc32

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.topic import PartitionState, Refusal
from rota.protocol.errors import ErrorCode

PARTITIONS_PER_REQUEST_MAX = 10_000  # Kafka's bound on the records of one controller operation

Assignment = Sequence[tuple[int, Sequence[int]]]  # (partition index, broker ids, the preferred leader first)
Brokers = Mapping[int, BrokerRegistration]  # the live ones


def start_of(name: str) -> int:
    """Where in the ring the partitions of a topic start: topics of one partition do not all have the same leader."""
    return crc32(name.encode())


def assign_round_robin(
    brokers: Brokers, first: int, count: int, replication: int, *, start: int = 0, absent: Collection[int] = ()
) -> tuple[PartitionState, ...] | Refusal:
    """Return partitions `first` to `first + count - 1`, assigned round-robin to the live brokers, or an error.

    `absent` are brokers that are not live, and are expected to come back (PL2).
    """
    if not brokers or replication > len(brokers) + len(absent):
        why = f"only {len(brokers) + len(absent)} broker(s) are registered"
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication} cannot be reached because {why}.",
        )
    racks = {broker: _rack(registration) for broker, registration in brokers.items()}
    order = _alternate_racks(racks)
    turns = len(order) * max(len(order) - 1, 1)  # after which the same brokers are chosen again
    chosen = [
        _spread(list(_candidates(order, turn)), racks, min(replication, len(order)))
        for turn in (start + first + step for step in range(min(count, turns)))
    ]
    missing, others = max(replication - len(order), 0), sorted(absent)
    return tuple(
        _state(index, chosen[step % turns] + _next_of(others, start + index, missing), brokers)
        for step, index in enumerate(range(first, first + count))
    )


def _next_of(brokers: list[int], start: int, count: int) -> tuple[int, ...]:
    """Return so many of the brokers, in a circle from `start` on, which the next partition moves on by one (PL2)."""
    return tuple(brokers[(start + step) % len(brokers)] for step in range(count))


def _rack(registration: BrokerRegistration) -> tuple[str, int]:
    """A broker without a rack is in a rack of its own."""
    return ("", registration.broker_id) if registration.rack is None else (registration.rack, -1)


def _alternate_racks(racks: Mapping[int, tuple[str, int]]) -> list[int]:
    by_rack: dict[tuple[str, int], list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    columns = [by_rack[rack] for rack in sorted(by_rack)]
    return [broker for row in zip_longest(*columns) for broker in row if broker is not None]


def _candidates(order: Sequence[int], turn: int) -> Iterator[int]:
    """All brokers, in the order in which the partition of that turn prefers them."""
    count = len(order)
    lap, at = divmod(turn, count)
    yield order[at]
    for step in range(count - 1):
        yield order[(at + 1 + (lap + step) % (count - 1)) % count]


def _spread(candidates: list[int], racks: Mapping[int, tuple[str, int]], replication: int) -> tuple[int, ...]:
    """Choose the first candidate of each rack, then the second of each, and so on."""
    chosen = list[int]()
    while len(chosen) < replication:
        used = set[tuple[str, int]]()
        for broker in list(candidates):
            if racks[broker] not in used and len(chosen) < replication:
                used.add(racks[broker])
                chosen.append(broker)
                candidates.remove(broker)
    return tuple(chosen)


def assign_manually(
    brokers: Brokers,
    first: int,
    assignment: Assignment,
    replication: int | None = None,
    *,
    absent: Collection[int] = (),
) -> tuple[PartitionState, ...] | Refusal:
    """Return the partitions of a manual assignment, or an error. Indexes are `first`, `first + 1`, … in any order."""
    states: dict[int, PartitionState] = {}
    for index, replicas in assignment:
        if index in states:
            return _refuse(f"Found multiple manual partition assignments for partition {index}")
        refusal = refuse_replicas(replicas, {*brokers, *absent}, replication)
        if refusal is not None:
            return refusal
        if brokers.keys().isdisjoint(replicas):
            return _refuse(
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in"
                " controlled shutdown."
            )
        replication = len(replicas)
        states[index] = _state(index, tuple(replicas), brokers)
    if sorted(states) != list(range(first, first + len(states))):
        return _refuse("partitions should be a consecutive 0-based integer sequence")
    return tuple(states[index] for index in sorted(states))


def refuse_replicas(
    replicas: Sequence[int], brokers: Collection[int], replication: int | None = None
) -> Refusal | None:
    """Check the replicas that a client has chosen for a partition."""
    why = _invalid_replicas(replicas, brokers, replication)
    return None if why is None else _refuse(f"The manual partition assignment includes {why}")


def _state(index: int, replicas: tuple[int, ...], brokers: Brokers) -> PartitionState:
    isr = tuple(broker for broker in replicas if broker in brokers)
    epoch = brokers[isr[0]].epoch
    return PartitionState(index=index, leader=isr[0], replicas=replicas, isr=isr, leader_broker_epoch=epoch)


def _refuse(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _invalid_replicas(replicas: Sequence[int], brokers: Collection[int], replication: int | None) -> str | None:
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
