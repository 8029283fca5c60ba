"""The partitions that each member gained, lost and kept in an assignment. Pure; used by the timeline only.

Laws
    There are no moves for protocol types other than `consumer`, and for assignments that cannot be read.
    Counts are exact. At most MEMBERS_NAMED_MAX members and PARTITIONS_NAMED_MAX partitions are named in one event;
    the counts of other members are summed up in a last Move without a member id.
    There are none above MEMBERS_COMPARED_MAX members or PARTITIONS_COMPARED_MAX partitions (10 ms of work).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rota.coordinator.group.events import MemberId
from rota.protocol.consumer_protocol import decode_assignment
from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import NONE, Move, MovedPartitions
from rota.protocol.wire import DecodeError

MEMBERS_COMPARED_MAX: Final = 500
MEMBERS_NAMED_MAX: Final = 100
PARTITIONS_NAMED_MAX: Final = 400  # of one event: gained ones first, then lost, then kept ones
PARTITIONS_COMPARED_MAX: Final = 5_000
ASSIGNMENTS_BYTES_MAX: Final = 128 * 1024  # of all members; more are not decoded


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves of each member, and how many partitions are assigned in all; -1: not known."""

    by_member: tuple[Move, ...] = ()
    partition_count: int = NONE


Owned = Mapping[str, frozenset[tuple[str, int]]]  # by member id
Partitions = list[tuple[str, int]]
Change = tuple[Partitions, Partitions, Partitions]  # gained, lost, kept
UNKNOWN: Final = Moves()


def _owned(assignments: Mapping[MemberId, bytes]) -> Owned | None:
    """Return the partitions of each member; None when they cannot be read or are too many to compare."""
    if len(assignments) > MEMBERS_COMPARED_MAX or sum(map(len, assignments.values())) > ASSIGNMENTS_BYTES_MAX:
        return None
    owned: dict[str, frozenset[tuple[str, int]]] = {}
    count = 0
    try:
        for member_id, raw in assignments.items():
            topics = decode_assignment(raw).assigned_partitions if raw else ()
            owned[member_id] = frozenset((topic.topic, index) for topic in topics for index in topic.partitions)
            count += len(owned[member_id])
            if count > PARTITIONS_COMPARED_MAX:
                return None
    except DecodeError:
        return None
    return owned


def moves(old_parts: Mapping[MemberId, bytes] | None, new_parts: Mapping[MemberId, bytes]) -> Moves:
    """Return the changes between two assignments, by member id; without moves if the old one is not known."""
    new = _owned(new_parts)
    if new is None:
        return UNKNOWN
    old = None if old_parts is None else _owned(old_parts)
    if old is None:
        return Moves((), sum(map(len, new.values())))
    return compare(old, new)


def compare(old: Owned, new: Owned) -> Moves:
    """Return the changes from `old` to `new`, by member id; both are small enough to be compared."""
    count = sum(map(len, new.values()))
    nothing: frozenset[tuple[str, int]] = frozenset()
    members = {**old, **new}
    changes = {member_id: _change(old.get(member_id, nothing), new.get(member_id, nothing)) for member_id in members}
    changed_first = sorted(changes, key=lambda member_id: not any(changes[member_id][:2]))
    detailed = _cut({member_id: changes[member_id] for member_id in changed_first[:MEMBERS_NAMED_MAX]})
    by_member = [_move(member_id, changes[member_id], *detailed[member_id]) for member_id in detailed]
    others = [changes[member_id] for member_id in changed_first[MEMBERS_NAMED_MAX:]]
    if others:
        gained, lost, kept = (sum(len(change[kind]) for change in others) for kind in range(3))
        by_member.append(Move(member_id="", gained_count=gained, lost_count=lost, kept_count=kept))
    return Moves(tuple(by_member), count)


def _move(member_id: str, change: Change, gained: Partitions, lost: Partitions, kept: Partitions) -> Move:
    return Move(
        member_id=member_id,
        gained_count=len(change[0]),
        lost_count=len(change[1]),
        kept_count=len(change[2]),
        gained=_topics(gained),
        lost=_topics(lost),
        kept=_topics(kept),
    )


def _change(before: frozenset[tuple[str, int]], after: frozenset[tuple[str, int]]) -> Change:
    return sorted(after - before), sorted(before - after), sorted(after & before)


def _cut(changes: Mapping[str, Change]) -> dict[str, Change]:
    left = PARTITIONS_NAMED_MAX
    cut: dict[str, Change] = {member_id: ([], [], []) for member_id in changes}
    for kind in range(3):
        for member_id, change in changes.items():
            cut[member_id][kind].extend(change[kind][:left])
            left -= len(cut[member_id][kind])
    return cut


def _topics(partitions: Iterable[tuple[str, int]]) -> tuple[MovedPartitions, ...]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return tuple(MovedPartitions(topic=topic, partitions=tuple(indexes)) for topic, indexes in by_topic.items())
