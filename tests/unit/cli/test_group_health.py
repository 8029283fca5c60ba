"""What the health rules learn of a lag over the protocol."""

from __future__ import annotations

from typing import Any

import pytest

from rota.cli.group_health import expires_ms, health_lag, is_possibly_stuck, trends
from rota.client import GroupDescription
from rota.coordinator.observe.finding import DEFAULTS
from rota.coordinator.observe.health import findings
from rota.protocol.group_timeline import EventType, GroupEvent

STUCK = DEFAULTS.stuck_records
NOW_MS = 1_700_000_000_000


def offset(partition: int, lag: int | None, *, topic: str = "t", committed: int | None = 0) -> dict[str, Any]:
    end = None if lag is None or committed is None else committed + lag
    return {"topic": topic, "partition": partition, "committed": committed, "start": 0, "end": end, "lag": lag,
            "lag_seconds": None, "member": None}  # fmt: skip


def group(state: str = "Empty", protocol_type: str = "consumer") -> GroupDescription:
    return GroupDescription("g", state, protocol_type, "", (), None)


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([offset(0, STUCK), offset(1, 0)], True),
        ([offset(0, STUCK - 1), offset(1, 0)], False),
        ([offset(0, STUCK)], False),
        ([offset(0, STUCK), offset(1, None)], False),
        ([offset(0, STUCK), offset(0, 0, topic="u")], False),
        ([], False),
    ],
)
def test_cl15_a_second_look_is_for_a_partition_that_may_be_stuck(offsets: list[dict[str, Any]], expected: bool) -> None:
    assert is_possibly_stuck(offsets) is expected


def test_cl15_a_trend_is_known_where_both_looks_know_the_lag() -> None:
    before = [offset(0, 100), offset(1, None), offset(2, 9)]
    now = [offset(0, 150), offset(1, 5), offset(2, None), offset(3, 5)]
    assert trends(before, now, 2.0) == {("t", 0): 25.0}
    assert trends(before, now, 0.0) == {}


def test_cl15_a_partition_whose_lag_grows_alone_is_stuck() -> None:
    before, now = [offset(0, STUCK), offset(1, 0)], [offset(0, STUCK + 50), offset(1, 0)]
    lag = health_lag("g", NOW_MS, now, trends(before, now, 2.0), None)
    (found,) = findings([], lag, NOW_MS)
    assert (found.code, found.subject) == ("stuck-partition", "t-0")
    assert "25.0 records/s" in found.sentence
    assert findings([], health_lag("g", NOW_MS, now, {}, None), NOW_MS) == ()


def test_cl16_the_offsets_of_an_empty_group_expire_from_when_it_became_empty() -> None:
    def event(sequence: int, kind: EventType, time_ms: int) -> GroupEvent:
        return GroupEvent(sequence=sequence, time_ms=time_ms, type=kind)

    events = [
        event(0, EventType.EMPTIED, 100),
        event(1, EventType.MEMBER_JOINED, 150),
        event(2, EventType.EMPTIED, 200),
        event(3, EventType.LOADED, 900),
    ]
    assert expires_ms(group(), events, 1_000) == 1_200
    for unknown in (group("Stable"), group(protocol_type=""), None):
        assert expires_ms(unknown, events, 1_000) is None
    assert expires_ms(group(), events, None) is None
    assert expires_ms(group(), events[1:2], 1_000) is None


def test_cl16_offsets_that_expire_soon_are_found() -> None:
    offsets = [offset(0, 1), offset(1, None, committed=None)]
    (found,) = findings([], health_lag("g", NOW_MS, offsets, {}, NOW_MS + 1_000), NOW_MS)
    assert (found.code, found.count, found.evidence) == ("offsets-expire-soon", 1, ())
    assert findings([], health_lag("g", NOW_MS, offsets, {}, None), NOW_MS) == ()


def test_an_unknown_lag_stays_unknown() -> None:
    lag = health_lag("g", NOW_MS, [offset(0, None, committed=None)], {}, None)
    assert (lag.records, lag.age_ms, lag.partitions[0].committed, lag.partitions[0].expires_ms) == (-1, -1, -1, -1)
