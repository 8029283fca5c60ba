"""Rules about refused requests, where conversations with the machines (test_consumer_health.py) do not lead."""

from __future__ import annotations

from tests.unit.coordinator.observe.events import Timeline, member

from rota.coordinator.observe.finding import Code, Finding
from rota.coordinator.observe.health import findings
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember, EventType


def found(timeline: Timeline, after_ms: int = 1) -> dict[str, Finding]:
    return {each.code: each for each in findings(timeline.events, None, timeline.now_ms + after_ms)}


def test_an_assignor_that_the_broker_does_not_have() -> None:
    timeline = Timeline().add(
        EventType.MEMBER_REFUSED,
        member("a-1"),
        operation="heartbeat",
        error_code=ErrorCode.UNSUPPORTED_ASSIGNOR,
        reason="ServerAssignor sticky is not supported. Supported assignors: uniform, range.",
    )
    mismatch = found(timeline)[Code.ASSIGNOR_MISMATCH]
    assert "Supported assignors: uniform, range." in mismatch.sentence
    assert "group.remote.assignor" in mismatch.remedy


def test_a_static_id_counts_as_used_twice_only_while_nobody_with_it_has_gone() -> None:
    timeline = Timeline().add(
        EventType.REQUESTS_REFUSED,
        member("a-1", instance="i"),
        member("b-1", instance="i"),
        operation="heartbeat",
        error_code=ErrorCode.UNRELEASED_INSTANCE_ID,
        count=1,
    )
    assert found(timeline, after_ms=59_000) == {}
    assert list(found(timeline, after_ms=60_000)) == [Code.STATIC_ID_USED_TWICE]
    timeline.add(EventType.MEMBER_EXPIRED, member("b-1", instance="i"))
    assert found(timeline, after_ms=60_000) == {}


def test_fenced_requests_that_are_counted_together_accuse_no_static_id() -> None:
    """Beyond the limit of members a refusal has no member."""
    timeline = Timeline().add(
        EventType.REQUESTS_REFUSED,
        EventMember(member_id=""),
        operation="heartbeat",
        error_code=ErrorCode.FENCED_INSTANCE_ID,
        count=1,
    )
    assert found(timeline) == {}
