"""Why did the group rebalance? Turns the events of a timeline into rebalances, and those into sentences. Pure.

`rebalances(events)` gives one Rebalance for each time that the group began to rebalance, oldest first; `sentences` says
in plain English what happened in one of them. `as_json` turns any of these, events included, into plain values.

Laws
    A rebalance begins with REBALANCE_STARTED and ends with ASSIGNED, EMPTIED, the next REBALANCE_STARTED, a new
    coordinator, or the end of the events. What happens before its end belongs to it.
    TL11 Of a group of the consumer protocol (KIP-848) it is said that the broker assigned the partitions, in a group
        epoch: such a group has no leader, no generations and no wait for joins.
    Events of unknown types, triggers and members change nothing else: a newer broker may have written them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import NONE, EventMember, EventType, GroupEvent, Move, MovedPartitions, Trigger

NAMED_MAX: Final = 3  # members or topics that a sentence names; the others are counted
SUBSCRIPTION: Final = "topics, assignors, or partitions that it owns"
LEADER_REASONS: Final = "it saw new topics or partitions, or goes on with a cooperative rebalance"
SLOW_JOIN_MS: Final = 100  # a join phase that took longer names the member that it waited for


class Outcome:
    """How a rebalance ended: the values of `outcome`."""

    STABLE: Final = "stable"
    EMPTY: Final = "empty"  # no member was left
    INTERRUPTED: Final = "interrupted"  # the next rebalance began first, or another coordinator loaded the group
    UNDER_WAY: Final = "under-way"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One rebalance. A number that is not known is -1, a text empty; times are ms since the epoch.

    `triggered_by` has the members that triggered it, `waited_for` those that joined last (with `wait_ms`), slowest
    first.
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
    leader: EventMember | None
    protocol: str
    member_count: int
    joined: tuple[EventMember, ...]  # while it was under way
    left: tuple[EventMember, ...]
    expired: tuple[EventMember, ...]  # their session ended
    not_rejoined: tuple[EventMember, ...]  # removed when the rebalance timeout was over
    not_synced: tuple[EventMember, ...]
    moves: tuple[Move, ...]
    partition_count: int
    events: tuple[GroupEvent, ...]


def rebalances(events: Iterable[GroupEvent]) -> tuple[Rebalance, ...]:
    """Return the rebalances in these events of one group, both oldest first."""
    found: list[Rebalance] = []
    current: list[GroupEvent] = []
    for event in events:
        starts = event.type == EventType.REBALANCE_STARTED
        if current and (starts or event.type == EventType.LOADED):
            found.append(_rebalance(current, event))
            current = []
        if starts or current:
            current.append(event)
        if current and event.type in (EventType.ASSIGNED, EventType.EMPTIED):
            found.append(_rebalance(current, None))
            current = []
    if current:
        found.append(_rebalance(current, None))
    return tuple(found)


def _rebalance(events: Sequence[GroupEvent], interrupted_by: GroupEvent | None) -> Rebalance:
    start, last = events[0], events[-1]
    generation = _last(events, EventType.GENERATION_STARTED)
    assigned, emptied = _last(events, EventType.ASSIGNED), _last(events, EventType.EMPTIED)
    end = assigned or emptied or interrupted_by
    joins = generation or emptied
    begun = joins or assigned  # a group of the consumer protocol has no event of its own for a new epoch
    about = assigned or generation or last
    return Rebalance(
        started_ms=start.time_ms,
        ended_ms=NONE if end is None else end.time_ms,
        coordinator=start.broker,
        from_generation=start.generation,
        generation=NONE if begun is None else begun.generation,
        outcome=_outcome(assigned, emptied, interrupted_by),
        trigger=start.trigger,
        reason=start.reason,
        client_reason=start.client_reason,
        previous_state=start.previous_state,
        triggered_by=start.members,
        joins_ms=NONE if joins is None else joins.duration_ms,
        waited_for=() if generation is None else generation.members,
        assignment_ms=NONE if assigned is None else assigned.duration_ms,
        leader=_leader(assigned, generation),
        protocol=about.protocol,
        member_count=about.member_count,
        joined=_members(events, EventType.MEMBER_JOINED),
        left=_members(events, EventType.MEMBER_LEFT),
        expired=_members(events, EventType.MEMBER_EXPIRED),
        not_rejoined=_members(events, EventType.MEMBERS_NOT_REJOINED),
        not_synced=_members(events, EventType.MEMBERS_NOT_SYNCED),
        moves=() if assigned is None else assigned.moves,
        partition_count=NONE if assigned is None else assigned.partition_count,
        events=tuple(events),
    )


def _last(events: Sequence[GroupEvent], event_type: EventType) -> GroupEvent | None:
    return next((event for event in reversed(events) if event.type == event_type), None)


def _members(events: Sequence[GroupEvent], event_type: EventType) -> tuple[EventMember, ...]:
    return tuple(member for event in events if event.type == event_type for member in event.members)


def _outcome(assigned: GroupEvent | None, emptied: GroupEvent | None, interrupted_by: GroupEvent | None) -> str:
    if assigned is not None:
        return Outcome.STABLE
    if emptied is not None:
        return Outcome.EMPTY
    return Outcome.UNDER_WAY if interrupted_by is None else Outcome.INTERRUPTED


def _leader(assigned: GroupEvent | None, generation: GroupEvent | None) -> EventMember | None:
    if assigned is not None and assigned.members:
        return assigned.members[0]
    return EventMember(member_id=generation.leader) if generation is not None and generation.leader else None


# ---- sentences


def _is_by_broker(rebalance: Rebalance) -> bool:
    """Whether the broker assigns the partitions: no generation began, and nobody led."""
    if any(event.type == EventType.GENERATION_STARTED for event in rebalance.events) or rebalance.leader is not None:
        return False
    return rebalance.assignment_ms != NONE or rebalance.previous_state in ("Assigning", "Reconciling")


def sentences(rebalance: Rebalance) -> tuple[str, ...]:
    """Return sentences about the trigger, the wait for joins, the assignment, the moved partitions and the result."""
    lines = (_why(rebalance), _joins(rebalance), *_meanwhile(rebalance), _assignment(rebalance))
    return tuple(line for line in (*lines, _moved(rebalance), _result(rebalance)) if line)


def _why(rebalance: Rebalance) -> str:
    client_reason = f' The client\'s reason: "{rebalance.client_reason}".' if rebalance.client_reason else ""
    number = f"{'group epoch' if _is_by_broker(rebalance) else 'generation'} {max(rebalance.from_generation, 0)}"
    head = f"{clock(rebalance.started_ms)}: the group left {number} because"
    return f"{head} {_cause(rebalance)}.{client_reason}"


def _cause(rebalance: Rebalance) -> str:
    members = members_named(rebalance.triggered_by)
    causes = {
        Trigger.MEMBER_JOINED: f"{members} joined",
        Trigger.MEMBER_LEFT: f"{members} left",
        Trigger.MEMBER_EXPIRED: f"the session of {members} ended: no heartbeat came in time",
        Trigger.METADATA_CHANGED: f"{members} joined again with another subscription ({SUBSCRIPTION})",
        Trigger.TOPICS_CHANGED: "topics that its members subscribe to were created, deleted or got more partitions",
        Trigger.LEADER_REJOINED: f"the leader, {members}, joined again ({LEADER_REASONS})",
        Trigger.STATIC_MEMBER_REPLACED: f"{members} replaced the member with the same group.instance.id",
        Trigger.SYNC_TIMEOUT: f"{members} joined and did not fetch its assignment in time",
        Trigger.ASSIGNMENT_TOO_LARGE: f"the assignment of {members} is too large to be stored",
        Trigger.LOADED_UNASSIGNED: "its coordinator stopped before the members had their assignment",
        Trigger.LOADED_OVER_CAPACITY: "it has more members than group.max.size allows",
    }
    return causes.get(rebalance.trigger) or rebalance.reason or "of a reason that this release does not know"


def _joins(rebalance: Rebalance) -> str:
    if rebalance.joins_ms == NONE or (rebalance.outcome == Outcome.EMPTY and rebalance.joins_ms == 0):
        return ""
    took = f"Waiting for members to join took {seconds(rebalance.joins_ms)}"
    if rebalance.previous_state == "Empty":
        return f"{took} (group.initial.rebalance.delay.ms: the group was empty)."
    slow = [member for member in rebalance.waited_for if member.wait_ms >= SLOW_JOIN_MS]
    if not slow:
        return f"{took}."
    return f"{took}: the last to join was {member_named(slow[0])}, after {seconds(slow[0].wait_ms)}."


def _meanwhile(rebalance: Rebalance) -> Iterable[str]:
    triggered_by = {member.member_id for member in rebalance.triggered_by}
    for members, verb in (
        (rebalance.joined, "joined meanwhile"),
        (rebalance.left, "left meanwhile"),
        (rebalance.expired, "stopped sending heartbeats meanwhile"),
        (rebalance.not_rejoined, "did not join again within the rebalance timeout and lost membership"),
        (rebalance.not_synced, "did not fetch the assignment in time and lost membership"),
    ):
        others = tuple(member for member in members if member.member_id not in triggered_by)
        if others:
            yield f"{sentence(members_named(others))} {verb}."


def _assignment(rebalance: Rebalance) -> str:
    if rebalance.assignment_ms == NONE:
        return ""
    if _is_by_broker(rebalance):
        leader = "the broker"
    else:
        leader = "the leader" if rebalance.leader is None else f"the leader, {member_named(rebalance.leader)},"
    assignor = f" with {rebalance.protocol}" if rebalance.protocol else ""
    return f"{sentence(leader)} assigned the partitions{assignor} in {seconds(rebalance.assignment_ms)}."


def _moved(rebalance: Rebalance) -> str:
    gained = sum(move.gained_count for move in rebalance.moves)
    lost = sum(move.lost_count for move in rebalance.moves)
    if not rebalance.moves:
        return ""
    if not gained and not lost:
        return "No partition moved."
    kept = sum(move.kept_count for move in rebalance.moves)
    changed = [move for move in rebalance.moves if move.member_id and (move.gained_count or move.lost_count)]
    names = {member.member_id: member for event in rebalance.events for member in event.members}
    parts = [_move(move, names) for move in changed[:NAMED_MAX]]
    more = len(changed) - len(parts)
    tail = f"; and {more} more members" if more > 0 else ""
    return f"Partitions: {gained} gained, {lost} lost, {kept} kept ({'; '.join(parts)}{tail})."


def _move(move: Move, names: dict[str, EventMember]) -> str:
    member = member_named(names.get(move.member_id) or EventMember(member_id=move.member_id))
    parts = []
    if move.gained_count:
        parts.append(f"gained {partitions_named(move.gained, move.gained_count)}")
    if move.lost_count:
        parts.append(f"lost {partitions_named(move.lost, move.lost_count)}")
    return f"{member} {' and '.join(parts)}"


def _result(rebalance: Rebalance) -> str:
    match rebalance.outcome:
        case Outcome.STABLE:
            took = seconds(rebalance.ended_ms - rebalance.started_ms)
            count = plural(rebalance.member_count, "member")
            if _is_by_broker(rebalance):
                return f"Group epoch {rebalance.generation} has {count}; its target assignment was there after {took}."
            return f"Generation {rebalance.generation} has {count}; the rebalance took {took}."
        case Outcome.EMPTY:
            return "No member is left: the group is empty."
        case Outcome.INTERRUPTED:
            return "It did not finish: another rebalance started, or the group got a new coordinator."
        case _:
            return "It is still under way."


def event_sentence(event: GroupEvent) -> str:
    """Return one event as a sentence, without its time."""
    members, first = members_named(event.members), members_named(event.members[:1])
    client_reason, times = f' ("{event.client_reason}")' if event.client_reason else "", plural(event.count, "time")
    texts = {
        EventType.MEMBER_JOINED: f"{members} joined{client_reason}",
        EventType.STATIC_MEMBER_REPLACED: f"{first} replaced the member with the same group.instance.id",
        EventType.STATIC_MEMBER_KEPT: f"{members} kept its assignment: no rebalance",
        EventType.MEMBER_REFUSED: f"{members} was refused ({error_name(event)}): {event.reason}",
        EventType.REBALANCE_STARTED: f"a rebalance started: {_reason(event)}{client_reason}",
        EventType.LEADER_ELECTED: f"{first} became the leader: the previous one did not join in time",
        EventType.NOBODY_REJOINED: "the rebalance continues: no member has joined yet",
        EventType.MEMBERS_NOT_REJOINED: f"{members} did not join again in time and lost membership",
        EventType.GENERATION_STARTED: f"generation {event.generation} began with {_count_of_members(event)}",
        EventType.ASSIGNED: _assigned(event),
        EventType.MEMBERS_NOT_SYNCED: f"{members} did not fetch the assignment in time and lost membership",
        EventType.EMPTIED: "the group became empty",
        EventType.MEMBER_LEFT: f"{members} left{client_reason}",
        EventType.MEMBER_EXPIRED: f"the session of {members} ended",
        EventType.REQUESTS_REFUSED: f"{event.operation} of {members} was refused {times}: {error_name(event)}",
        EventType.LOADED: f"broker {event.broker} loaded the group",
        EventType.OFFSETS_EXPIRED: f"{plural(event.count, 'offset')} expired",
        EventType.DELETED: "the group was deleted",
        EventType.UPGRADED: "the group became one of the consumer protocol, which serves its classic members, too",
        EventType.DOWNGRADED: "the group became a classic one: its last member of the consumer protocol is gone",
    }
    text = next((text for event_type, text in texts.items() if event_type == event.type), f"event {event.type}")
    return sentence(text) + "."


def _reason(event: GroupEvent) -> str:
    """The reason of a rebalance, with client ids in place of the member ids of a log line."""
    reason = event.reason or event.trigger
    for member in event.members:
        reason = reason.replace(member.member_id, member.client_id) if member.client_id else reason
    return reason.rstrip(".")


def _assigned(event: GroupEvent) -> str:
    if event.members:
        return f"the leader's assignment of generation {event.generation} arrived"
    return f"the broker assigned the partitions of group epoch {event.generation} with {event.protocol}"


def _count_of_members(event: GroupEvent) -> str:
    return plural(event.member_count, "member")


# ---- text


def error_name(event: GroupEvent) -> str:
    """Return the name of the event's error code, as in Kafka; of an unknown code, its number."""
    try:
        return ErrorCode(event.error_code).name
    except ValueError:
        return str(event.error_code)


def member_named(member: EventMember) -> str:
    """Return the name of a member as text: its instance id or client id, and its host."""
    if member.instance_id is not None:
        name = f"static member {member.instance_id}"
    else:
        name = f"member {member.client_id or member.member_id or 'without an id'}"
    return f"{name} ({member.client_host.removeprefix('/')})" if member.client_host else name


def members_named(members: Sequence[EventMember]) -> str:
    """Return the names of the members as text: the first NAMED_MAX, and the number of the others."""
    if not members:
        return "a member"
    shown = [member_named(member) for member in members[:NAMED_MAX]]
    more = len(members) - len(shown)
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def partitions_named(topics: Sequence[MovedPartitions], count: int) -> str:
    """Return `count` partitions as text, as `orders-0 orders-1`; those that are not listed are counted."""
    names = [f"{topic.topic}-{partition}" for topic in topics for partition in topic.partitions]
    shown = names[: 2 * NAMED_MAX]
    more = count - len(shown)
    return " ".join([*shown, f"and {more} more"] if more > 0 else shown)


def seconds(duration_ms: int) -> str:
    """Return a duration as text: `20 ms` or `1.5 s`."""
    return f"{duration_ms} ms" if abs(duration_ms) < 1_000 else f"{duration_ms / 1_000:.1f} s"


def clock(time_ms: int) -> str:
    """Return a time since the epoch as date and time, UTC, without a fraction of a second."""
    return datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def plural(count: int, noun: str) -> str:
    """Return `1 member` or `2 members`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def sentence(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def event_name(event: GroupEvent) -> str:
    """Return the name of the event's type, as `member-joined`; of an unknown type, its number."""
    try:
        return EventType(event.type).name.lower().replace("_", "-")
    except ValueError:
        return str(event.type)


def as_json(value: Any) -> dict[str, Any]:
    """Return an event, a rebalance, a finding or a lag as plain values; events get their type's name as `name`."""
    plain: dict[str, Any] = asdict(value)
    if isinstance(value, GroupEvent):
        plain["name"] = event_name(value)
    if isinstance(value, Rebalance):
        plain["events"] = [as_json(event) for event in value.events]
        plain["sentences"] = list(sentences(value))
    return plain
