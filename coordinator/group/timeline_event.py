"""Turns the notes of a group into the events of its timeline. Pure.

Laws
    A text of a client is cut to TEXT_CHARS_MAX, and MEMBERS_MAX members are named: events and lines of the log have
    a bounded size.
    Notes without a type here are for the log alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rota.coordinator.group import notes
from rota.coordinator.runtime.contract import Note
from rota.protocol.group_timeline import EventMember, EventType, GroupEvent, Move

TEXT_CHARS_MAX: Final = 256  # ids and reasons are the clients' own, and may be a hundred times as long
MEMBERS_MAX: Final = 32

TYPES: Final[Mapping[str, EventType]] = {
    notes.MEMBER_ADDED: EventType.MEMBER_JOINED,
    notes.PENDING_JOINED: EventType.MEMBER_JOINED,
    notes.STATIC_ADDED: EventType.MEMBER_JOINED,
    notes.STATIC_REPLACED: EventType.STATIC_MEMBER_REPLACED,
    notes.STATIC_KEPT: EventType.STATIC_MEMBER_KEPT,
    notes.GROUP_FULL: EventType.MEMBER_REFUSED,
    notes.PROTOCOLS_REFUSED: EventType.MEMBER_REFUSED,
    notes.RECORD_TOO_LARGE: EventType.MEMBER_REFUSED,
    notes.PREPARING: EventType.REBALANCE_STARTED,
    notes.LEADER_ELECTED: EventType.LEADER_ELECTED,
    notes.NO_MEMBER_REJOINED: EventType.NOBODY_REJOINED,
    notes.NOT_REJOINED: EventType.MEMBERS_NOT_REJOINED,
    notes.STABILIZED: EventType.GENERATION_STARTED,
    notes.ASSIGNED: EventType.ASSIGNED,
    notes.NOT_SYNCED: EventType.MEMBERS_NOT_SYNCED,
    notes.NOW_EMPTY: EventType.EMPTIED,
    notes.LEFT: EventType.MEMBER_LEFT,
    notes.PENDING_LEFT: EventType.MEMBER_LEFT,
    notes.FAILED: EventType.MEMBER_EXPIRED,
    notes.PENDING_EXPIRED: EventType.MEMBER_EXPIRED,
    notes.FENCED: EventType.REQUESTS_REFUSED,
    notes.COMMIT_REFUSED: EventType.REQUESTS_REFUSED,
    notes.HEARTBEAT_REFUSED: EventType.REQUESTS_REFUSED,
    notes.INSTANCE_IN_USE: EventType.REQUESTS_REFUSED,
    notes.RECONCILING: EventType.RECONCILIATION_STARTED,
    notes.RECONCILED: EventType.RECONCILED,
    notes.NOT_REVOKED: EventType.MEMBERS_NOT_REVOKED,
    notes.LOADED: EventType.LOADED,
    notes.OFFSETS_EXPIRED: EventType.OFFSETS_EXPIRED,
    notes.DELETED: EventType.DELETED,
    notes.UPGRADED: EventType.UPGRADED,
    notes.DOWNGRADED: EventType.DOWNGRADED,
}
COPIED: Final = ("state", "reason", "client_reason", "operation", "protocol", "leader", "generation", "count")


def event_of(note: Note, time_ms: int, broker: int) -> GroupEvent | None:
    """Return the event of a note, without its sequence; None for a note that is for the log alone."""
    event_type = TYPES.get(note.event)
    if event_type is None:
        return None
    fields = note.fields
    values: dict[str, Any] = {name: fields[name] for name in COPIED if fields.get(name) is not None}
    if isinstance(fields.get("members"), int):
        values["member_count"] = fields["members"]
    if "offsets" in fields:
        values["count"] = fields["offsets"]
    values |= note.timeline
    for name, value in values.items():
        if type(value) is str and len(value) > TEXT_CHARS_MAX:
            values[name] = _cut(value)  # of a name that is there: the loop goes on
    if "members" in values:
        values["members"] = _members(values["members"])
    if "moves" in values:
        values["moves"] = tuple(map(_move, values["moves"]))
    return GroupEvent(time_ms=time_ms, type=event_type, broker=broker, **values)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > TEXT_CHARS_MAX:
        return value[: TEXT_CHARS_MAX - 1] + "…"
    return value


def _members(members: Sequence[EventMember]) -> tuple[EventMember, ...]:
    return tuple([_member(member) for member in members[:MEMBERS_MAX]])


def _member(member: EventMember) -> EventMember:
    texts = (member.member_id, member.instance_id or "", member.client_id, member.client_host)
    if max(map(len, texts)) <= TEXT_CHARS_MAX:
        return member
    return replace(
        member,
        member_id=_cut(member.member_id),
        instance_id=_cut(member.instance_id),
        client_id=_cut(member.client_id),
        client_host=_cut(member.client_host),
    )


def _move(move: Move) -> Move:
    return move if len(move.member_id) <= TEXT_CHARS_MAX else replace(move, member_id=_cut(move.member_id))


def brief(note: Note) -> Note:
    """Return the note, for the log: texts are cut to TEXT_CHARS_MAX, of a list MEMBERS_MAX are named."""
    for value in note.fields.values():
        kind = type(value)
        if kind is str:
            if len(value) > TEXT_CHARS_MAX:  # type: ignore[arg-type]
                break
        elif kind is not int and isinstance(value, list | str):
            break
    else:
        return note
    return Note(note.event, {name: _brief(value) for name, value in note.fields.items()})


def _brief(value: Any) -> Any:
    if not isinstance(value, list):
        return _cut(value)
    shown = [_cut(each) for each in value[:MEMBERS_MAX]]
    return shown if len(value) <= MEMBERS_MAX else [*shown, f"and {len(value) - MEMBERS_MAX} more"]
