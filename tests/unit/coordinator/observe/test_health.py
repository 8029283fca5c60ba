"""Each rule finds its fault in a timeline, and nothing in that of a healthy group."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.observe.events import START_MS, Timeline, member

from rota.coordinator.observe import health
from rota.coordinator.observe.finding import Code, Finding, Severity
from rota.coordinator.observe.health import findings
from rota.coordinator.observe.lag import GroupLag, PartitionLag, total
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventType, Trigger

STABLE = {"member_count": 2, "partition_count": 4, "duration_ms": 20}


def rebalance(timeline: Timeline, *, after_ms: int = 1_000, **assigned: int) -> Timeline:
    timeline.add(EventType.REBALANCE_STARTED, member("a-1"), trigger=Trigger.MEMBER_JOINED, after_ms=after_ms)
    timeline.add(EventType.GENERATION_STARTED, generation=1, duration_ms=50, leader="a-1")
    return timeline.add(EventType.ASSIGNED, member("a-1"), **{**STABLE, **assigned})


def found(timeline: Timeline, lag: GroupLag | None = None, *, after_ms: int = 60_000) -> dict[str, Finding]:
    return {finding.code: finding for finding in findings(timeline.events, lag, timeline.now_ms + after_ms)}


def partition(index: int, *, trend: float, records: int = 1_000, expires_ms: int = -1) -> PartitionLag:
    return PartitionLag(
        topic="t",
        partition=index,
        committed=10,
        end=10 + records,
        records=records,
        age_ms=5,
        trend=trend,
        has_trend=True,
        commit_ms=START_MS,
        expires_ms=expires_ms,
    )


def lag_of(*partitions: PartitionLag) -> GroupLag:
    return total("g", START_MS, "Stable", partitions)


def test_a_healthy_group_has_no_finding() -> None:
    timeline = rebalance(Timeline().add(EventType.MEMBER_JOINED, member("a-1")))
    timeline.add(EventType.MEMBER_LEFT, member("a-1"), client_reason="the consumer is being closed")
    timeline.add(EventType.MEMBER_JOINED, member("a-2"))
    rebalance(timeline)
    lag = lag_of(partition(0, trend=-1), partition(1, trend=2), partition(2, trend=3))
    assert found(timeline, lag) == {}


def test_a_member_that_flaps() -> None:
    timeline = Timeline()
    for life in range(3):
        timeline.add(EventType.MEMBER_JOINED, member(f"a-{life}"))
        timeline.add(EventType.MEMBER_EXPIRED, member(f"a-{life}"))
    finding = found(timeline)[Code.MEMBER_FLAPS]
    assert (finding.subject, finding.count, finding.severity) == ("member a (10.0.0.1)", 3, Severity.WARNING)
    assert "3 times without a heartbeat" in finding.sentence
    assert len(finding.evidence) == 3
    assert found(timeline, after_ms=600_000) == {}


def test_several_members_of_one_host_that_leave_once_do_not_flap() -> None:
    timeline = Timeline()
    for number in range(4):
        timeline.add(EventType.MEMBER_JOINED, member(f"a-{number}"))
    for number in range(4):
        timeline.add(EventType.MEMBER_LEFT, member(f"a-{number}"))
    assert found(timeline) == {}


def test_a_member_that_polls_too_late() -> None:
    timeline = Timeline()
    for life in range(2):
        timeline.add(EventType.MEMBER_JOINED, member(f"a-{life}"))
        timeline.add(EventType.MEMBER_LEFT, member(f"a-{life}"), client_reason="consumer poll timeout has expired.")
    assert found(timeline)[Code.POLL_INTERVAL_EXCEEDED].count == 2
    again = Timeline()
    for life in range(2):
        again.add(EventType.MEMBERS_NOT_REJOINED, member(f"a-{life}"))
    assert list(found(again)) == [Code.POLL_INTERVAL_EXCEEDED]


def test_a_static_id_that_is_used_twice() -> None:
    timeline = Timeline()
    old, new = member("a-1", instance="i"), member("a-2", instance="i", host="/10.0.0.2")
    timeline.add(EventType.STATIC_MEMBER_REPLACED, new, old)
    assert found(timeline) == {}
    code = int(ErrorCode.FENCED_INSTANCE_ID)
    timeline.add(EventType.REQUESTS_REFUSED, old, operation="heartbeat", error_code=code, count=1)
    finding = found(timeline)[Code.STATIC_ID_USED_TWICE]
    assert finding.subject == "static member i"
    assert "from 10.0.0.1, 10.0.0.2" in finding.sentence


def test_a_leader_that_is_slow_to_assign() -> None:
    timeline = rebalance(Timeline(), duration_ms=4_000)
    assert found(timeline) == {}
    finding = found(rebalance(timeline, duration_ms=9_000))[Code.SLOW_ASSIGNMENT]
    assert "up to 9.0 s" in finding.sentence


def test_an_assignor_that_the_group_does_not_share() -> None:
    code = int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    timeline = Timeline().add(
        EventType.MEMBER_REFUSED, member("b-1"), error_code=code, reason="it supports sticky, the group range", count=1
    )
    finding = found(timeline)[Code.ASSIGNOR_MISMATCH]
    assert "it supports sticky, the group range" in finding.sentence
    assert finding.severity == Severity.ERROR


def test_more_members_than_partitions() -> None:
    timeline = rebalance(Timeline(), member_count=5)
    assert "5 members share 4 partitions: 1 member" in found(timeline)[Code.IDLE_MEMBERS].sentence
    timeline.add(EventType.EMPTIED)
    assert found(timeline) == {}
    assert found(rebalance(Timeline(), member_count=5, partition_count=-1)) == {}


def test_a_partition_whose_lag_grows_while_its_siblings_shrink() -> None:
    lag = lag_of(partition(0, trend=-5), partition(1, trend=20), partition(2, trend=0, records=0))
    finding = found(Timeline(), lag)[Code.STUCK_PARTITION]
    assert (finding.subject, "20.0 records/s" in finding.sentence) == ("t-1", True)
    assert found(Timeline(), lag_of(partition(0, trend=5), partition(1, trend=20))) == {}
    assert found(Timeline(), lag_of(partition(0, trend=-5), partition(1, trend=20, records=3))) == {}
    assert found(Timeline(), lag_of(partition(1, trend=20))) == {}


def test_offsets_that_expire_soon() -> None:
    lag = lag_of(partition(0, trend=0, expires_ms=START_MS + 3_600_000), partition(1, trend=0))
    assert found(Timeline(), lag)[Code.OFFSETS_EXPIRE_SOON].count == 1
    assert found(Timeline(), lag_of(partition(0, trend=0, expires_ms=START_MS + 10 * 86_400_000))) == {}


def test_a_group_that_never_stabilizes() -> None:
    timeline = Timeline()
    for _ in range(30):
        rebalance(timeline, after_ms=10_000)
    finding = found(timeline, after_ms=1_000)[Code.NEVER_STABLE]
    assert finding.count == 30
    assert "most of them by member a" in finding.sentence
    assert found(timeline, after_ms=30_000) == {}


@pytest.mark.parametrize("state", ["Stable", "Empty"])
def test_a_group_that_was_loaded_at_rest_amid_a_rebalance_has_settled(state: str) -> None:
    timeline = Timeline().add(EventType.REBALANCE_STARTED, member("a-1"), trigger=Trigger.MEMBER_JOINED)
    timeline.add(EventType.LOADED, broker=2, state=state, generation=1)
    assert found(timeline, after_ms=3_600_000) == {}


def test_a_group_that_is_loaded_again_and_again_does_not_stabilize() -> None:
    timeline = Timeline()
    for _ in range(40):
        timeline.add(EventType.REBALANCE_STARTED, member("a-1"), trigger=Trigger.MEMBER_JOINED, after_ms=10_000)
        timeline.add(EventType.LOADED, broker=2, state="Stable", generation=1)
    assert Code.NEVER_STABLE in found(timeline, after_ms=1_000)


def test_a_rolling_start_is_not_a_group_that_never_stabilizes() -> None:
    timeline = Timeline()
    for _ in range(10):
        rebalance(timeline, after_ms=10_000)
    assert found(timeline, after_ms=1_000) == {}


def test_commits_that_are_refused() -> None:
    timeline = Timeline()
    for count in (1, 10):
        timeline.add(
            EventType.REQUESTS_REFUSED,
            member("a-1"),
            operation="offset-commit",
            error_code=int(ErrorCode.ILLEGAL_GENERATION),
            count=count,
            generation=3,
        )
        assert (Code.COMMITS_REFUSED in found(timeline)) == (count == 10)
    assert found(timeline)[Code.COMMITS_REFUSED].count == 10


def test_the_worst_finding_comes_first() -> None:
    timeline = rebalance(Timeline(), member_count=5)
    code = int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    timeline.add(EventType.MEMBER_REFUSED, member("b-1"), error_code=code, reason="x", count=1)
    assert list(found(timeline)) == [Code.ASSIGNOR_MISMATCH, Code.IDLE_MEMBERS]


def test_the_rules_look_at_each_member_of_an_event_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full timeline of distinct members took seconds of the event loop."""
    timeline, looks = Timeline(), []
    for number in range(64):
        left = [member(f"m{number}x{other}-1") for other in range(8)]
        timeline.add(EventType.MEMBER_LEFT, *left, after_ms=1)
    identity = health.identity
    monkeypatch.setattr(health, "identity", lambda member: (looks.append(1), identity(member))[1])
    assert found(timeline, after_ms=1) == {}
    assert len(looks) <= 4 * 64 * 8
