"""What the health rules share."""

from __future__ import annotations

from tests.unit.coordinator.observe.events import START_MS, Timeline, member

from rota.coordinator.observe.facts import EVIDENCE_MAX, by_member, by_sender, finding, identity, of_type
from rota.coordinator.observe.finding import Code, Severity
from rota.protocol.group_timeline import EventMember, EventType


def test_a_member_is_known_across_restarts() -> None:
    assert identity(member("a-1")) == identity(member("a-2"))
    assert identity(member("a-1")) != identity(member("a-1", host="/10.0.0.2"))
    assert identity(member("a-1", instance="i")) == identity(member("b-1", instance="i"))
    assert identity(EventMember(member_id="x")) == ("member", "x")


def test_events_are_those_of_each_member_or_of_the_sender_alone() -> None:
    sender, holder = member("a-1"), member("b-1")
    refused = Timeline().add(EventType.REQUESTS_REFUSED, sender, holder).events
    assert [each for each, _ in by_member(refused)] == [sender, holder]
    assert [each for each, _ in by_sender(refused)] == [sender]


def test_a_finding_shows_the_last_events_and_counts_them_all() -> None:
    timeline = Timeline()
    for _ in range(EVIDENCE_MAX + 2):
        timeline.add(EventType.MEMBER_LEFT, member("a-1"))
    events = of_type([*timeline.events, *Timeline().add(EventType.LOADED).events], EventType.MEMBER_LEFT)
    found = finding(Code.MEMBER_FLAPS, Severity.WARNING, "a", "it left", "look", events)
    assert (found.sentence, found.count, len(found.evidence)) == ("It left.", EVIDENCE_MAX + 2, EVIDENCE_MAX)
    assert found.last_ms == START_MS + (EVIDENCE_MAX + 2) * 1_000
