"""What the health rules look at, and what they share. Pure.

Law
    The same member after a restart is known by its instance id, or by its client id and host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from rota.coordinator.observe.explain import clock, event_sentence, sentence
from rota.coordinator.observe.finding import Finding, Thresholds
from rota.coordinator.observe.lag import GroupLag
from rota.coordinator.observe.rebalances import Rebalance
from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import EventMember, EventType, GroupEvent

EVIDENCE_MAX: Final = 3  # events that a finding shows: the last ones
Identity = tuple[str, ...]
DEPARTURES: Final = (
    EventType.MEMBER_LEFT,
    EventType.MEMBER_EXPIRED,
    EventType.MEMBERS_NOT_REJOINED,
    EventType.MEMBERS_NOT_SYNCED,
    EventType.MEMBERS_NOT_REVOKED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The input of the rules: all events, those of the window, all rebalances, the lag."""

    events: Sequence[GroupEvent]
    recent: Sequence[GroupEvent]
    rebalances: Sequence[Rebalance]
    lag: GroupLag | None
    now_ms: int
    limits: Thresholds


def finding(
    code: str,
    severity: str,
    subject: str,
    text: str,
    remedy: str,
    events: Sequence[GroupEvent],
    *,
    count: int | None = None,
) -> Finding:
    ordered = sorted(events, key=lambda event: event.sequence)
    return Finding(
        code=code,
        severity=severity,
        subject=subject,
        sentence=sentence(text) + ".",
        remedy=remedy,
        evidence=tuple(f"{clock(event.time_ms)}: {event_sentence(event)}" for event in ordered[-EVIDENCE_MAX:]),
        count=len(events) if count is None else count,
        last_ms=max(event.time_ms for event in events),
    )


def of_type(events: Iterable[GroupEvent], *types: EventType) -> list[GroupEvent]:
    return [event for event in events if event.type in types]


def by_member(events: Iterable[GroupEvent]) -> list[tuple[EventMember, list[GroupEvent]]]:
    """Return the events of each member, known across restarts."""
    found: dict[Identity, tuple[EventMember, list[GroupEvent]]] = {}
    for event in events:
        for member in event.members:
            found.setdefault(identity(member), (member, []))[1].append(event)
    return list(found.values())


def by_sender(refused: Iterable[GroupEvent]) -> list[tuple[EventMember, list[GroupEvent]]]:
    """Return the refusals of each member, without the members that hold its instance."""
    return by_member(replace(event, members=event.members[:1]) for event in refused)


def identity(member: EventMember) -> Identity:
    """Return an identity that survives a restart: the instance id, else client id and host, else the member id."""
    if member.instance_id is not None:
        return "instance", member.instance_id
    if member.client_id or member.client_host:
        return "client", member.client_id, member.client_host
    return "member", member.member_id
