"""Lags from a source that a test controls: ages, trends, unknown values, and how seldom the source is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from rota.coordinator.observe import lag_service
from rota.coordinator.observe.lag import UNKNOWN, Committed, GroupOffsets, Key
from rota.coordinator.observe.lag_service import CACHE_MS, NEVER_MS, TREND_MS_MAX, Lag


class World:
    """A LagSource whose offsets, ends and times a test sets, and the clocks."""

    def __init__(self) -> None:
        self.now_ms = 5_000
        self.group = GroupOffsets("Stable", {("t", 0): Committed(10, commit_ms=7)}, {("t", 0): "a"})
        self.high_watermarks: dict[Key, int] = {("t", 0): 25}
        self.times: dict[Key, int] = {("t", 0): 1_004_000}
        self.requests: list[str] = []
        self.lag = Lag(self, now_ms=lambda: self.now_ms, wall_ms=lambda: 1_000_000 + self.now_ms)

    async def offsets(self, group_id: str) -> GroupOffsets:
        self.requests.append("offsets")
        if group_id == "unknown":
            raise LookupError(group_id)
        await asyncio.sleep(0)
        return self.group

    async def ends(self, keys: list[Key]) -> Mapping[Key, int]:
        return {key: self.high_watermarks[key] for key in keys if key in self.high_watermarks}

    async def append_times(self, offsets: Mapping[Key, int]) -> Mapping[Key, int]:
        self.requests.append("times")
        return {key: self.times[key] for key in offsets if key in self.times}

    def commit(self, offset: int) -> None:
        self.group = GroupOffsets("Stable", {("t", 0): Committed(offset)}, {})


async def test_gl1_records_and_age_of_a_partition() -> None:
    world = World()
    (partition,) = (await world.lag.get("g")).partitions
    assert (partition.records, partition.age_ms, partition.member_id, partition.commit_ms) == (15, 1_000, "a", 7)
    assert not partition.has_trend


async def test_gl1_nothing_unread_has_no_age() -> None:
    world = World()
    world.commit(25)
    (partition,) = (await world.lag.get("g")).partitions
    assert (partition.records, partition.age_ms) == (0, 0)
    assert world.requests == ["offsets"]


async def test_o2_unknown_offsets_are_minus_one() -> None:
    world = World()
    world.high_watermarks.clear()
    world.group = GroupOffsets("Stable", world.group.committed, {("t", 1): "b"})
    lag = await world.lag.get("g")
    assert [(each.records, each.age_ms, bool(each.error)) for each in lag.partitions] == [(-1, -1, True)] * 2
    assert (lag.records, lag.age_ms) == (UNKNOWN, UNKNOWN)
    silent = World()
    silent.times.clear()
    assert (await silent.lag.get("g")).partitions[0].age_ms == UNKNOWN


async def test_gl2_concurrent_requests_share_one_request_to_the_cluster() -> None:
    world = World()
    await asyncio.gather(*(world.lag.get("g") for _ in range(5)))
    assert world.requests == ["offsets", "times"]
    world.now_ms += CACHE_MS
    await world.lag.get("g")
    assert world.requests == ["offsets", "times", "offsets"]  # no commit has moved
    world.now_ms += CACHE_MS
    world.commit(11)
    await world.lag.get("g")
    assert world.requests[3:] == ["offsets", "times"]


async def test_gl2_a_failing_source_is_read_once_for_concurrent_callers() -> None:
    world = World()
    answers = await asyncio.gather(*(world.lag.get("unknown") for _ in range(5)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [LookupError] * 5
    assert world.requests == ["offsets"]
    world.now_ms += CACHE_MS
    with pytest.raises(LookupError):
        await world.lag.get("unknown")
    assert world.requests == ["offsets"] * 2


async def test_a_cached_lag_has_an_age() -> None:
    world = World()
    assert world.lag.ms_since_query("g") == NEVER_MS
    lag = await world.lag.get("g")
    world.now_ms += 7
    assert world.lag.ms_since_query("g") == 7
    assert world.lag.cached("g", 7) is world.lag.cached("g") is lag
    assert world.lag.cached("g", 6) is None


async def test_the_trend_is_records_a_second() -> None:
    world = World()
    await world.lag.get("g")
    world.now_ms += 10_000
    world.high_watermarks["t", 0] = 75
    (partition,) = (await world.lag.get("g")).partitions
    assert (partition.has_trend, partition.trend) == (True, 5.0)
    world.now_ms += 10_000
    world.commit(75)
    assert (await world.lag.get("g")).partitions[0].trend == -0.75


async def test_an_old_base_is_no_base_of_a_trend() -> None:
    world = World()
    await world.lag.get("g")
    world.now_ms += TREND_MS_MAX + 1
    assert not (await world.lag.get("g")).partitions[0].has_trend
    for _ in range(20):  # asked again and again: the base moves along
        world.now_ms += TREND_MS_MAX // 4
        (partition,) = (await world.lag.get("g")).partitions
        assert partition.has_trend


async def test_an_unknown_group_raises_the_error_of_the_source() -> None:
    world = World()
    with pytest.raises(LookupError):
        await world.lag.get("unknown")
    assert world.lag.cached("unknown") is None
    assert world.lag.cached("g") is None
    assert world.lag.cached("other") is None
    lag = await world.lag.get("g")
    assert world.lag.cached("g") is lag


async def test_gl2_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_service, "GROUPS_MAX", 2)
    world = World()
    for group_id in "abc":
        await world.lag.get(group_id)
    assert [world.lag.cached(group_id) is None for group_id in "abc"] == [True, False, False]
