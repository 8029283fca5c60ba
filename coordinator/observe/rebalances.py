"""The rebalances in the events of a group's timeline. Pure.

`rebalances(events)` gives one Rebalance for each time that the group began to rebalance, oldest first.

Laws
    A rebalance begins with REBALANCE_STARTED and ends with ASSIGNED, EMPTIED, the next REBALANCE_STARTED, a new
    coordinator, or the end of the events. What happens before its end belongs to it.
    TL13 Where members of a group of the consumer protocol have to move to the target assignment
        (RECONCILIATION_STARTED), the rebalance goes on until they have it (RECONCILED), also with another coordinator.
    TL15 A member that moves to its target later (a static one that was away) does not begin a finished one again.
    Events of unknown types, triggers and members change nothing else: a newer broker may have written them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import NONE, EventMember, EventType, GroupEvent, Move, is_end_of_rebalance

RECONCILING: Final = ("Assigning", "Reconciling")  # states of a group of the consumer protocol in a rebalance


class Outcome:
    """How a rebalance ended: the values of `outcome`."""

    STABLE: Final = "stable"
    EMPTY: Final = "empty"  # no member was left
    INTERRUPTED: Final = "interrupted"  # the next rebalance began first, or another coordinator loaded the group
    UNDER_WAY: Final = "under-way"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One rebalance. A number that is not known is -1, a text empty; times are ms since the epoch.

    `triggered_by` has the members that triggered it, `waited_for` those that joined last, or that had to revoke
    partitions of a group of the consumer protocol, slowest first, with `wait_ms` where it is known.
    """

    started_ms: int
    ended_ms: int
    coordinator: int
    from_generation: int
    generation: int
    outcome: str
    trigger: str
    reason: str
    client_reason: str | None
    previous_state: str
    triggered_by: tuple[EventMember, ...]
    joins_ms: int  # how long the group waited for its members to join
    waited_for: tuple[EventMember, ...]
    assignment_ms: int  # how long the members waited for the leader's assignment
    reconciliation_ms: int  # how long the members took to the target assignment
    leader: EventMember | None
    protocol: str
    member_count: int
    joined: tuple[EventMember, ...]  # while it was under way
    left: tuple[EventMember, ...]
    expired: tuple[EventMember, ...]  # their session ended
    not_rejoined: tuple[EventMember, ...]  # removed when the rebalance timeout was over
    not_synced: tuple[EventMember, ...]
    not_revoked: tuple[EventMember, ...]
    moves: tuple[Move, ...]
    moved: tuple[EventMember, ...]  # members that gained or lost partitions, as far as earlier events name them
    partition_count: int
    events: tuple[GroupEvent, ...]


def rebalances(events: Iterable[GroupEvent]) -> tuple[Rebalance, ...]:
    """Return the rebalances in these events of one group, both oldest first."""
    found: list[Rebalance] = []
    current: list[GroupEvent] = []
    names: dict[str, EventMember] = {}
    for event in events:
        names.update((member.member_id, member) for member in event.members)
        starts = event.type == EventType.REBALANCE_STARTED
        if current and (starts or _ends_unfinished(event)):
            found.append(_rebalance(current, event, names))
            current = []
        if event.type == EventType.RECONCILIATION_STARTED and not current and found and _is_unfinished(found[-1]):
            current = list(found.pop().events)
        if starts or current:
            current.append(event)
        if current and _ends(event, current):
            found.append(_rebalance(current, None, names))
            current = []
    if current:
        found.append(_rebalance(current, None, names))
    return tuple(found)


def _ends_unfinished(event: GroupEvent) -> bool:
    """Whether a rebalance that is under way ends with this event; in the other protocol a new coordinator goes on."""
    return event.type == EventType.DOWNGRADED or (event.type == EventType.LOADED and event.state not in RECONCILING)


def _is_unfinished(rebalance: Rebalance) -> bool:
    """Whether its last event is the target, which members have still to move to."""
    last = rebalance.events[-1]
    return last.type == EventType.ASSIGNED and not is_end_of_rebalance(last)


def _ends(event: GroupEvent, rebalance: Sequence[GroupEvent]) -> bool:
    if event.type == EventType.RECONCILED:
        return _reconciled(rebalance) is event
    return event.type in (EventType.ASSIGNED, EventType.EMPTIED)


def _reconciled(events: Sequence[GroupEvent]) -> GroupEvent | None:
    """Return the event by which the members have the target assignment of this rebalance, not of the one before."""
    assigned, reconciled = last_of(events, EventType.ASSIGNED), last_of(events, EventType.RECONCILED)
    is_of_this = assigned is not None and reconciled is not None and assigned.generation == reconciled.generation
    return reconciled if is_of_this else None


def _rebalance(
    events: Sequence[GroupEvent], interrupted_by: GroupEvent | None, names: Mapping[str, EventMember]
) -> Rebalance:
    start, last = events[0], events[-1]
    generation = last_of(events, EventType.GENERATION_STARTED)
    assigned, reconciled = last_of(events, EventType.ASSIGNED), _reconciled(events)
    joins, end = generation or last_of(events, EventType.EMPTIED), _end(events) or interrupted_by
    begun = joins or assigned  # a group of the consumer protocol has no event of its own for a new epoch
    about = assigned or generation or last
    return Rebalance(
        started_ms=start.time_ms,
        ended_ms=NONE if end is None else end.time_ms,
        coordinator=start.broker,
        from_generation=start.generation,
        generation=NONE if begun is None else begun.generation,
        outcome=_outcome(events, end),
        trigger=start.trigger,
        reason=start.reason,
        client_reason=start.client_reason,
        previous_state=start.previous_state,
        triggered_by=start.members,
        joins_ms=NONE if joins is None else joins.duration_ms,
        waited_for=_waited_for(events),
        assignment_ms=NONE if assigned is None else assigned.duration_ms,
        reconciliation_ms=NONE if reconciled is None else reconciled.duration_ms,
        leader=_leader(assigned, generation),
        protocol=about.protocol,
        member_count=about.member_count,
        joined=_members(events, EventType.MEMBER_JOINED),
        left=_members(events, EventType.MEMBER_LEFT),
        expired=_members(events, EventType.MEMBER_EXPIRED),
        not_rejoined=_members(events, EventType.MEMBERS_NOT_REJOINED),
        not_synced=_members(events, EventType.MEMBERS_NOT_SYNCED),
        not_revoked=_members(events, EventType.MEMBERS_NOT_REVOKED),
        moves=() if assigned is None else assigned.moves,
        moved=() if assigned is None else _moved_members(assigned.moves, names),
        partition_count=NONE if assigned is None else assigned.partition_count,
        events=tuple(events),
    )


def _waited_for(events: Sequence[GroupEvent]) -> tuple[EventMember, ...]:
    begun = last_of(events, EventType.GENERATION_STARTED) or last_of(events, EventType.RECONCILIATION_STARTED)
    waits = _reconciled(events) or begun
    return () if waits is None else waits.members


def _end(events: Sequence[GroupEvent]) -> GroupEvent | None:
    """Return the event by which the rebalance ended, if it did."""
    assigned, emptied = last_of(events, EventType.ASSIGNED), last_of(events, EventType.EMPTIED)
    is_reconciling = last_of(events, EventType.RECONCILIATION_STARTED) is not None
    return emptied or _reconciled(events) or (None if is_reconciling else assigned)


def last_of(events: Sequence[GroupEvent], event_type: EventType) -> GroupEvent | None:
    return next((event for event in reversed(events) if event.type == event_type), None)


def _members(events: Sequence[GroupEvent], event_type: EventType) -> tuple[EventMember, ...]:
    return tuple(member for event in events if event.type == event_type for member in event.members)


def _moved_members(moves: Iterable[Move], names: Mapping[str, EventMember]) -> tuple[EventMember, ...]:
    changed = (move.member_id for move in moves if move.gained_count or move.lost_count)
    return tuple(names[member_id] for member_id in changed if member_id in names)


def _outcome(events: Sequence[GroupEvent], end: GroupEvent | None) -> str:
    """A group that is loaded as Stable has finished: the broker before stopped before it wrote that event."""
    if end is None:
        return Outcome.UNDER_WAY
    if end.type == EventType.EMPTIED:
        return Outcome.EMPTY
    if end.type in (EventType.ASSIGNED, EventType.RECONCILED):
        return Outcome.STABLE
    is_assigned = last_of(events, EventType.ASSIGNED) is not None
    is_stable = is_assigned and end.type in (EventType.LOADED, EventType.DOWNGRADED) and end.state == "Stable"
    return Outcome.STABLE if is_stable else Outcome.INTERRUPTED


def _leader(assigned: GroupEvent | None, generation: GroupEvent | None) -> EventMember | None:
    if assigned is not None and assigned.members:
        return assigned.members[0]
    return EventMember(member_id=generation.leader) if generation is not None and generation.leader else None
