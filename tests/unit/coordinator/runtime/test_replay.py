"""G5: what comes back from the log is what was there, however the log was cut into slices or compacted."""

from __future__ import annotations

from typing import Any

import pytest

from rota.coordinator.group.machine import Group
from rota.coordinator.runtime import replay as replay_module
from rota.coordinator.runtime.replay import Replay


def states(world: Any) -> dict[str, Any]:
    return {group.group_id: (group.hard, dict(group.offsets)) for group in world.coordinator.machines()}


@pytest.mark.parametrize("slice_bytes", [1, 200, 1 << 20])
def test_a_restart_brings_every_group_back(world: Any, slice_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        world.member(f"members-{number}")
        for offset in range(3):
            world.commit(f"simple-{number}", offset)
        world.turn()
    before = states(world)
    monkeypatch.setattr(replay_module, "SLICE_BYTES", slice_bytes)
    world.start()
    assert len(before) == 40
    assert states(world) == before


def test_compaction_changes_nothing(world: Any) -> None:
    for offset in range(100):
        world.commit("g", offset)
        world.turn()
    world.member("h")
    before = states(world)
    for partition in world.partitions:
        partition.log.compact(world.now_ms, force=True)
    world.start()
    assert states(world) == before


def test_a_removed_group_stays_removed(world: Any) -> None:
    world.commit("g", 7)
    world.turn()
    world.coordinator.expire_offsets(0)
    world.now_ms += 1
    world.coordinator.expire_offsets(0)
    world.turn()
    world.start()
    assert "g" not in states(world)


def test_records_of_a_kind_that_this_release_does_not_know_are_passed_over(world: Any) -> None:
    world.commit("g", 7)
    world.turn()
    index = world.shard("g").index
    key_of_a_newer_group = (3).to_bytes(2, "big") + b"\x00\x01g"
    world.partitions[index].append_pairs([(key_of_a_newer_group, b"\x00\x00")], world.now_ms)
    world.start()
    assert world.offset("g") == 7


def test_an_empty_log_is_read_at_once(world: Any) -> None:
    replay = Replay(world.coordinator.hosting, dict[str, Group]())
    assert replay.advance(world.partitions[0].log, 0)
    assert not replay.machines
