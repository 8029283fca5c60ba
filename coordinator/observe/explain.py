"""Why did the group rebalance? Turns rebalances and events of a timeline into sentences. Pure.

`sentences` says in plain English what happened in a rebalance, `event_sentence` what an event is. `as_json` turns any
of these into plain values.

Laws
    TL11 In a group of the consumer protocol (KIP-848) the sentences name the broker as the one that assigned the
        partitions, in a group epoch: such a group has no leader, no generations and no wait for joins.
    TL13 Where members of such a group had to revoke partitions, the sentences name them and the time that it took.
    Events of unknown types, triggers and members change nothing else: a newer broker may have written them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Final

from rota.coordinator.observe.rebalances import RECONCILING, Outcome, Rebalance, last_of
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import NONE, EventMember, EventType, GroupEvent, Move, MovedPartitions, Trigger

NAMED_MAX: Final = 3  # members or topics that a sentence names; the others are counted
SUBSCRIPTION: Final = "topics, assignors, or partitions that it owns"
LEADER_REASONS: Final = "it saw new topics or partitions, or goes on with a cooperative rebalance"
SLOW_JOIN_MS: Final = 100  # a join phase that took longer names the member that it waited for


# ---- sentences


def _is_by_broker(rebalance: Rebalance) -> bool:
    """Whether the broker assigns the partitions: no generation began, and there was no leader."""
    if any(event.type == EventType.GENERATION_STARTED for event in rebalance.events) or rebalance.leader is not None:
        return False
    return rebalance.assignment_ms != NONE or rebalance.previous_state in RECONCILING


def sentences(rebalance: Rebalance) -> tuple[str, ...]:
    """Return sentences about the trigger, the wait for joins, the assignment, the moved partitions and the result."""
    lines = (_why(rebalance), _joins(rebalance), *_meanwhile(rebalance), _assignment(rebalance), _moved(rebalance))
    return tuple(line for line in (*lines, *_reconciliation(rebalance), _result(rebalance)) if line)


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
        Trigger.REVOCATION_TIMEOUT: f"{members} did not give up its partitions within its rebalance timeout",
        Trigger.JOIN_TIMEOUT: f"{members} did not join again within its rebalance timeout",
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
        (rebalance.not_revoked, "did not give up its partitions within the rebalance timeout and lost membership"),
    ):
        others = tuple(member for member in members if member.member_id not in triggered_by)
        if others:
            yield f"{sentence(members_named(others))} {verb}."
    loaded = last_of(rebalance.events, EventType.LOADED)
    if loaded is not None:
        yield f"Broker {loaded.broker} loaded the group meanwhile."


def _assignment(rebalance: Rebalance) -> str:
    if rebalance.assignment_ms == NONE:
        return ""
    if _is_by_broker(rebalance):
        leader = "the broker"
    else:
        leader = "the leader" if rebalance.leader is None else f"the leader, {member_named(rebalance.leader)},"
    assignor = f" with {rebalance.protocol}" if rebalance.protocol else ""
    return f"{sentence(leader)} assigned the partitions{assignor} in {seconds(rebalance.assignment_ms)}."


def _reconciliation(rebalance: Rebalance) -> Iterable[str]:
    """Say which members had to revoke partitions, and how long after the response that takes them away."""
    slowest = rebalance.waited_for[0] if rebalance.waited_for else None
    if rebalance.reconciliation_ms != NONE:
        took = f"All members had their partitions after {seconds(rebalance.reconciliation_ms)}"
        if slowest is None:
            yield f"{took}; none had to revoke some first."
        else:
            yield f"{took}; the slowest to revoke some was {member_named(slowest)}, in {seconds(slowest.wait_ms)}."
    elif last_of(rebalance.events, EventType.RECONCILIATION_STARTED) is not None and rebalance.waited_for:
        verb = "has" if len(rebalance.waited_for) == 1 else "have"
        yield f"{sentence(members_named(rebalance.waited_for))} {verb} to revoke partitions first."


def _moved(rebalance: Rebalance) -> str:
    gained = sum(move.gained_count for move in rebalance.moves)
    lost = sum(move.lost_count for move in rebalance.moves)
    if not rebalance.moves:
        return ""
    if not gained and not lost:
        return "No partition moved."
    kept = sum(move.kept_count for move in rebalance.moves)
    changed = [move for move in rebalance.moves if move.member_id and (move.gained_count or move.lost_count)]
    names = {member.member_id: member for member in rebalance.moved}
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
                if rebalance.reconciliation_ms != NONE:
                    return f"Group epoch {rebalance.generation} has {count}; the rebalance took {took}."
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
        EventType.MEMBER_REFUSED: f"{first} was refused ({error_name(event)}): {event.reason}",
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
        EventType.REQUESTS_REFUSED: f"{event.operation} of {first} was refused {times}: {error_name(event)}",
        EventType.LOADED: f"broker {event.broker} loaded the group",
        EventType.OFFSETS_EXPIRED: f"{plural(event.count, 'offset')} expired",
        EventType.DELETED: "the group was deleted",
        EventType.UPGRADED: "the group became one of the consumer protocol, which serves its classic members, too",
        EventType.RECONCILIATION_STARTED: _reconciling(event),
        EventType.RECONCILED: f"the members have the target assignment of group epoch {event.generation}",
        EventType.MEMBERS_NOT_REVOKED: f"{members} did not give up its partitions in time and lost membership",
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


def _reconciling(event: GroupEvent) -> str:
    what = f"the members move to the target assignment of group epoch {event.generation}"
    return f"{what}; {members_named(event.members)} first revoke partitions" if event.members else what


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
    plain: dict[str, Any] = _plain(value)
    if isinstance(value, Rebalance):
        plain["sentences"] = list(sentences(value))
    return plain


def _plain(value: Any) -> Any:
    """Return a dataclass as a dict, a tuple as a list; a tenth of the time of `dataclasses.asdict`, which copies."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    kind = type(value)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    if not names:
        return value
    plain = {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, GroupEvent):
        plain["name"] = event_name(value)
    return plain


_FIELDS: Final[dict[type, tuple[str, ...]]] = {}  # the names of the fields by class; none of what is no dataclass
