"""Lags between rounds: partitions that fall behind while their siblings do not are found without anybody asking."""

from __future__ import annotations

import pytest

from rota.coordinator.observe import lag_watch
from rota.coordinator.observe.lag import UNKNOWN, Committed, GroupLag, Key, PartitionLag, committed_lag, total
from rota.coordinator.observe.lag_watch import LOOK_AGAIN_MS, LagWatch


class World:
    """Groups with commits, and the ends of the partitions that live here."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.committed: dict[str, dict[Key, int]] = {}
        self.ends: dict[Key, int] = {}
        self.found: list[str] = []
        self.seconds = self.look_seconds = 0.0
        self.watch = LagWatch(
            groups=lambda: list(self.committed),
            offsets=self._offsets,
            found=self.found.append,
            now_ms=lambda: self.now_ms,
            seconds=lambda: self.seconds,
        )
        self.watch.end = lambda key: self.ends.get(key, UNKNOWN)

    def _offsets(self, group_id: str) -> GroupLag:
        self.seconds += self.look_seconds
        offsets = self.committed.get(group_id, {})
        return total(group_id, self.now_ms, "", tuple(committed_lag(key, Committed(at)) for key, at in offsets.items()))

    def look(self) -> list[str]:
        """Return the groups that one more look at all finds."""
        self.found.clear()
        self.now_ms += LOOK_AGAIN_MS
        self.watch.round()
        return list(self.found)


def one_stuck() -> World:
    world = World()
    world.committed["g"] = {("t", 0): 0, ("t", 1): 0}
    world.ends = {("t", 0): 100, ("t", 1): 100}
    world.look()
    world.committed["g"] = {("t", 0): 0, ("t", 1): 1_000}
    world.ends = {("t", 0): 1_000, ("t", 1): 1_000}
    return world


def test_hl2_a_partition_that_falls_behind_alone_is_found() -> None:
    world = one_stuck()
    assert world.look() == ["g"]
    by_index = {each.partition: each for each in world.watch.lag("g").partitions}
    assert (by_index[0].records, by_index[0].trend, by_index[0].has_trend) == (1_000, 30.0, True)
    assert by_index[1].records == 0
    assert world.watch.lag("g").records == 1_000


def test_hl2_a_group_that_reads_is_not_found() -> None:
    world = one_stuck()
    world.committed["g"][("t", 0)] = 1_000
    assert world.look() == []


def test_hl2_ends_on_other_brokers_are_those_of_the_lag_service() -> None:
    world = one_stuck()
    del world.ends[("t", 0)]
    assert world.look() == []
    known = PartitionLag(
        topic="t", partition=0, committed=0, end=900, records=900, age_ms=5, trend=7.0, has_trend=True, member_id="m"
    )
    world.watch.cached = lambda group_id: total(group_id, 0, "", (known,))
    assert world.look() == ["g"]
    assert known in world.watch.lag("g").partitions


def test_hl2_all_groups_are_looked_at_in_slices_and_again_after_a_while() -> None:
    world = World()
    world.committed = {f"g{number}": {("t", 0): 0} for number in range(10)}
    world.look_seconds = lag_watch.ROUND_SECONDS / 2
    world.seconds = 0.0
    looks = 0
    for _ in range(5):
        before = world.seconds
        world.watch.round()
        looks += round((world.seconds - before) / world.look_seconds)
        assert world.seconds - before <= lag_watch.ROUND_SECONDS * 1.5
    assert looks == 10
    before = world.seconds
    world.watch.round()
    assert world.seconds == before, "not before LOOK_AGAIN_MS is over"


def test_hl2_stored_partitions_are_bounded_and_of_existing_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_watch, "PARTITIONS_MAX", 3)
    world = World()
    world.committed = {f"g{number}": {("t", 0): 0, ("t", 1): 0} for number in range(5)}
    world.ends = {("t", 0): 1, ("t", 1): 1}
    world.look()
    assert len(world.watch) <= 3
    world.committed.clear()
    world.look()
    world.look()
    assert len(world.watch) == 0
