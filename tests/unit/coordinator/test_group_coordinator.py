"""Groups on the runtime: deleted topics and expired offsets are removed in slices, notes reach the timeline."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.runtime.conftest import World

from rota.coordinator.group import notes
from rota.coordinator.group.machine import Group
from rota.coordinator.observe.finding import Code
from rota.coordinator.observe.lag_watch import LOOK_AGAIN_MS
from rota.coordinator.observe.line_limit import LINES_PER_GROUP_MAX, WINDOW_MS
from rota.coordinator.runtime import broadcast as broadcast_module
from rota.coordinator.runtime.contract import Note
from rota.coordinator.runtime.coordinator import RELOAD_AFTER_MS
from rota.protocol.group_timeline import EventType

ID, OTHER_ID = b"1" * 16, b"2" * 16
GROUPS, TOPICS = 20, 10


@pytest.fixture
def world() -> World:
    world = World()
    for group in range(GROUPS):
        for topic in range(TOPICS):
            world.commit(f"g{group}", 7, topic=f"t{topic}", topic_id=ID)
    world.turn()
    return world


def topics(world: World, group_id: str) -> set[str]:
    group = world.shard(group_id).machines.get(group_id)
    return set() if group is None else {topic for topic, _ in group.offsets}


def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the group of each step from now on."""
    stepped: list[str] = []
    step = Group.step

    def noted(self: Group, event: object, now_ms: int, wall_ms: int) -> object:
        stepped.append(self.group_id)
        return step(self, event, now_ms, wall_ms)  # type: ignore[arg-type]

    monkeypatch.setattr(Group, "step", noted)
    return stepped


def test_topics_that_are_deleted_in_one_tick_are_removed_together(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepped = steps(monkeypatch)
    for topic in range(TOPICS - 1):
        world.coordinator.topics_deleted([(f"t{topic}", ID)])
    world.turn()
    assert all(topics(world, f"g{group}") == {f"t{TOPICS - 1}"} for group in range(GROUPS))
    assert sorted(stepped) == sorted(f"g{group}" for group in range(GROUPS)), "each group was looked at once"


def test_their_removal_takes_slices(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast_module, "SLICE_COST_MAX", TOPICS)
    stepped = steps(monkeypatch)
    world.coordinator.topics_deleted([("t0", ID)])
    most = 0
    while world.tick_queue:
        before = len(stepped)
        world.part_of_turn()
        most = max(most, len(stepped) - before)
    assert (most, len(stepped)) == (1, GROUPS)


def test_topics_that_are_deleted_while_others_are_removed_follow_in_one_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast_module, "SLICE_COST_MAX", TOPICS)
    stepped = steps(monkeypatch)
    world.coordinator.topics_deleted([("t0", ID)])
    for topic in range(1, TOPICS - 1):
        world.part_of_turn()
        world.coordinator.topics_deleted([(f"t{topic}", ID)])
    world.turn()
    assert len(stepped) == 2 * GROUPS
    assert topics(world, "g3") == {f"t{TOPICS - 1}"}


def test_offsets_committed_for_a_new_topic_of_that_name_are_kept(world: World) -> None:
    world.coordinator.topics_deleted([("t0", ID), ("t1", ID)])
    world.commit("g0", 1, topic="t0", topic_id=OTHER_ID)
    world.now_ms += 1
    world.turn()
    assert topics(world, "g0") == {"t0"} | {f"t{topic}" for topic in range(2, TOPICS)}
    assert "t0" not in topics(world, "g1")


def test_an_offset_without_topic_id_is_removed_if_it_is_older_than_the_deletion(world: World) -> None:
    world.commit("old", 1, topic="t0", topic_id=None)
    world.coordinator.topics_deleted([("t0", ID)])
    world.turn()
    world.now_ms += 1
    world.commit("new", 1, topic="t0", topic_id=None)
    world.turn()
    assert (topics(world, "old"), topics(world, "new")) == (set(), {"t0"})


def test_a_shard_that_loads_while_a_topic_is_deleted_removes_its_offsets_when_it_is_ready(world: World) -> None:
    index = world.shard("g0").index
    world.partitions[index].lead(1)
    world.coordinator.lead(index, 1)
    world.coordinator.topics_deleted([("t0", ID)])
    world.turn()
    assert not any("t0" in topics(world, f"g{group}") for group in range(GROUPS))


def test_a_failed_removal_of_offsets_is_repeated_after_the_reload(world: World) -> None:
    partition = world.partitions[world.shard("g0").index]
    world.coordinator.topics_deleted([("t0", ID)])
    partition.offline = "the disk is away for a moment"
    world.turn()
    partition.offline = None
    world.after(RELOAD_AFTER_MS)
    assert not any("t0" in topics(world, f"g{group}") for group in range(GROUPS))


def test_a_removal_that_fails_every_time_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(self: Group, event: object, now_ms: int, wall_ms: int) -> object:
        raise RuntimeError("a step that nobody wrote a test for")

    with monkeypatch.context() as patch, capture_logs():
        patch.setattr(Group, "step", mistaken)
        world.coordinator.topics_deleted([("t0", ID)])
        world.turn()
    assert "t0" in topics(world, "g0")


def test_expired_offsets_are_removed_in_slices(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast_module, "SLICE_COST_MAX", TOPICS)
    world.now_ms += 1_000
    world.coordinator.expire_offsets(500)
    world.part_of_turn()
    assert sum(not topics(world, f"g{group}") for group in range(GROUPS)) == 1
    world.turn()
    assert not any(topics(world, f"g{group}") for group in range(GROUPS))


async def test_the_offsets_topic_is_created_once(world: World) -> None:
    assert await world.coordinator.ensure_topic()
    world.coordinator.resign(0)
    assert await world.coordinator.ensure_topic(), "asked of the world, which says yes"


def test_tl16_who_reads_a_timeline_gets_the_notes_that_wait(world: World) -> None:
    world.coordinator.notes.add("g0", Note(notes.NOW_EMPTY, {"group": "g0", "state": "Empty"}))
    assert [event.type for event in world.coordinator.events_of("g0")] == [EventType.EMPTIED]


def test_tl1_a_mistake_in_the_timeline_breaks_no_step_of_a_group(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(world.coordinator.timelines, "add", fail)
    monkeypatch.setattr(world.coordinator.timelines, "forget", fail)
    shards = [(shard, shard.term) for shard in world.coordinator.shards]
    world.coordinator.expire_offsets(-1)
    world.turn()
    assert not list(world.coordinator.machines())
    assert all(shard.term == term for shard, term in shards), "no shard was loaded again"
    assert world.coordinator.notes.lost_events >= GROUPS


def test_hl2_a_stuck_partition_is_a_finding_of_the_health_log() -> None:
    world = World()
    ends = {("t", 0): 100, ("t", 1): 100}
    world.coordinator.lag_watch.end = ends.__getitem__
    for read in (0, 1_000):
        world.commit("g", 0, topic="t", partition=0)
        world.commit("g", read, topic="t", partition=1)
        world.turn()
        world.coordinator.look_at_health()
        ends.update({("t", 0): 1_000, ("t", 1): 1_000})
        world.now_ms += LOOK_AGAIN_MS
    (finding,) = world.coordinator.health.active()["g"]
    assert (finding.code, finding.subject) == (Code.STUCK_PARTITION, "t-0")


def test_lg5_a_group_with_many_lines_leaves_some_out_and_says_so(world: World) -> None:
    with capture_logs() as captured:
        for number in range(LINES_PER_GROUP_MAX + 5):
            world.join("g0", fresh_id=f"m{number}", known=True)
        world.join("g1", fresh_id="m", known=True)
        world.turn()
        world.coordinator.look_at_health()
        lines = [event["group"] for event in captured]
        assert (lines.count("g0"), lines.count("g1")) == (LINES_PER_GROUP_MAX, 1)
        world.after(WINDOW_MS)
        del captured[:]
        world.coordinator.look_at_health()
        world.coordinator.look_at_health()
    left_out = [(event["group"], event["lines"]) for event in captured if "left out" in event["event"]]
    assert left_out == [("g0", 5)]
