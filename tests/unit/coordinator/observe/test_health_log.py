"""Findings are logged once with a count, again after a while, and when they end: never a storm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from tests.unit.coordinator.observe.events import Timeline, member

from rota.coordinator.observe import health_log
from rota.coordinator.observe.finding import Code
from rota.coordinator.observe.health_log import AGAIN_MS, ROUND_MS, ROUND_SECONDS, HealthLog
from rota.protocol.group_timeline import EventType, GroupEvent


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as captured:
        monkeypatch.setattr(health_log, "log", structlog.get_logger())
        yield captured


class World:
    def __init__(self) -> None:
        self.timelines: dict[str, Timeline] = {}
        self.now_ms = 0
        self.looks: list[str] = []
        self.seconds = self.look_seconds = 0.0
        self.log = HealthLog(
            events=self._events,
            lag=lambda group_id: None,
            wall_ms=lambda: self.now_ms,
            seconds=lambda: self.seconds,
        )

    def _events(self, group_id: str) -> list[GroupEvent]:
        self.looks.append(group_id)
        self.seconds += self.look_seconds
        return self.timelines[group_id].events if group_id in self.timelines else []

    def flap(self, group_id: str, times: int = 3) -> None:
        timeline = self.timelines.setdefault(group_id, Timeline())
        for life in range(times):
            timeline.add(EventType.MEMBER_JOINED, member(f"a-{life}"))
            timeline.add(EventType.MEMBER_EXPIRED, member(f"a-{life}"))
            self.log.event_added(group_id)
        self.now_ms = timeline.now_ms


def test_hl1_a_storm_of_events_is_one_line(lines: list[Any]) -> None:
    world = World()
    for _ in range(20):
        world.flap("g")
        world.log.round()
    (line,) = lines
    assert (line["code"], line["group"], line["count"], line["log_level"]) == (Code.MEMBER_FLAPS, "g", 3, "warning")
    assert line["remedy"]
    assert [finding.code for finding in world.log.active()["g"]] == [Code.MEMBER_FLAPS]


def test_hl1_a_lasting_finding_is_logged_again_with_its_count(lines: list[Any]) -> None:
    world = World()
    world.flap("g")
    world.log.round()
    for _ in range(3):
        world.now_ms += AGAIN_MS // 3
        world.timelines["g"].now_ms = world.now_ms
        world.flap("g")
        world.log.round()
    assert len(lines) == 2
    assert lines[1]["count"] > lines[0]["count"]


def test_hl1_the_end_of_a_finding_is_logged_once(lines: list[Any]) -> None:
    world = World()
    world.flap("g")
    world.log.round()
    world.now_ms += 2 * AGAIN_MS
    world.log.round()
    world.log.round()
    assert [line["event"] for line in lines] == ["Group is not healthy", "Group is healthy again"]
    assert world.log.active() == {}


def test_hl1_the_number_of_remembered_groups_is_bounded(lines: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_log, "LOGGED_MAX", 2)
    monkeypatch.setattr(health_log, "GROUPS_PER_ROUND_MAX", 3)
    world = World()
    for group_id in "abc":
        world.flap(group_id)
    world.log.round()
    assert len(lines) == 3
    assert len(world.log._logged) == 2


def test_a_round_looks_at_few_groups_and_all_have_their_turn(lines: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_log, "GROUPS_PER_ROUND_MAX", 3)
    world = World()
    names = [f"g{number}" for number in range(6)]
    for name in names:
        world.log.event_added(name)
    world.log.round()
    assert len(world.looks) == 3
    world.log.round()
    world.log.round()
    assert sorted(world.looks) == sorted(names)


def test_hl1_a_round_ends_in_time_and_always_looks_at_one_group(lines: list[Any]) -> None:
    world = World()
    world.look_seconds = ROUND_SECONDS / 2
    for name in "abcde":
        world.log.event_added(name)
    for looks in ("ab", "abcd", "abcde"):
        world.log.round()
        assert "".join(world.looks) == looks
    world.look_seconds = 10 * ROUND_SECONDS
    world.log.event_added("f")
    world.log.round()
    assert world.looks[-1] == "f"


def test_hl3_rounds_that_take_long_are_rare(lines: list[Any]) -> None:
    world = World()
    world.flap("large")
    world.look_seconds = 0.1
    while world.seconds < 100:
        world.log.round()
        world.seconds += ROUND_MS / 1_000
    assert 15 < len(world.looks) <= 20, "2 % of the time"


def test_hl1_groups_that_never_rest_do_not_hold_up_the_end_of_a_finding(lines: list[Any]) -> None:
    world = World()
    world.look_seconds = ROUND_SECONDS
    world.flap("ended")
    world.log.round()
    assert "ended" in world.log.active()
    world.now_ms += 2 * AGAIN_MS
    for _ in range(3):
        world.log.event_added("busy-1")
        world.log.event_added("busy-2")
        world.log.round()
    assert world.log.active() == {}


def test_hl1_the_groups_that_wait_are_bounded(lines: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_log, "WAITING_MAX", 3)
    world = World()
    world.flap("a")
    world.log.round()
    for name in "bcdef":
        world.log.event_added(name)
    assert world.log.active() == {}
    world.log.round()
    assert world.looks[1:] == ["d", "e", "f"]
