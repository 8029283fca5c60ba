"""The timelines in their topic: written in batches, read back, waiting while another broker leads, bounded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.observe import timeline, timeline_log
from rota.coordinator.observe.timeline_log import FLUSH_CALLS, TimelineLog
from rota.coordinator.replica.partition import Partition
from rota.coordinator.runtime import coordinator
from rota.coordinator.runtime.coordinator import COMMIT_TIMEOUT_MS, RELOAD_AFTER_MS
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.scheduling.timers import TimerHeap
from rota.protocol.group_timeline import EVENTS_PER_GROUP_MAX, EventType, GroupEvent, TimelineKey, encode_key

CONFIG = LogConfig(compact=True, delete=False, segment_bytes=1 << 20)


class World:
    """Timelines over partitions that another one may be made over: what a restart finds."""

    def __init__(self, partitions: list[Partition] | None = None, count: int = 1) -> None:
        self.timers = TimerHeap()
        self.partitions = partitions or [
            Partition("timeline", bytes(16), index, 0, MemoryLog(CONFIG), timers=self.timers) for index in range(count)
        ]
        self.calls: list[Callable[[], None]] = []
        self.requests = 0
        self.fails = False
        self.log = TimelineLog(
            shards=len(self.partitions),
            partition=self._partition,
            timers=self.timers,
            now_ms=lambda: 1_000,
            wall_ms=lambda: 1_000,
            tick_queue=self.calls.append,
            request_topic=self._request,
        )

    def _partition(self, index: int) -> Partition:
        if self.fails:
            raise StorageFailed("no space")
        return self.partitions[index]

    def _request(self) -> None:
        self.requests += 1

    def tick(self) -> None:
        while self.calls:
            self.turn()

    def turn(self) -> None:
        calls, self.calls[:] = list(self.calls), []
        for call in calls:
            call()

    def lead(self, epoch: int = 0) -> World:
        for index, partition in enumerate(self.partitions):
            partition.lead(epoch)
            self.log.lead(index, epoch)
        self.tick()
        return self

    def add(self, group_id: str, time_ms: int) -> None:
        self.log.add(group_id, GroupEvent(time_ms=time_ms, type=EventType.LOADED))

    def times(self, group_id: str) -> list[int]:
        return [event.time_ms for event in self.log.of(group_id)]


def test_events_outlive_a_restart() -> None:
    world = World().lead()
    world.add("g", 1)
    world.add("g", 2)
    world.tick()
    again = World(world.partitions).lead()
    assert again.times("g") == [1, 2]
    again.add("g", 3)
    assert [event.sequence for event in again.log.of("g")] == [0, 1, 2]
    assert again.log.groups() == ["g"]


def test_tl10_the_events_of_some_turns_are_one_batch() -> None:
    world = World().lead()
    for time_ms in range(FLUSH_CALLS):
        world.add("g", time_ms)
        world.turn()
    assert world.partitions[0].log.log_end_offset == 0
    world.turn()
    assert world.partitions[0].log.log_end_offset == FLUSH_CALLS
    assert not world.calls
    data = world.partitions[0].log.read(0, 1 << 20)
    assert len(data) == int.from_bytes(data[8:12]) + 12


def test_tl1_events_that_are_added_together_are_as_if_one_by_one_but_for_those_that_are_mistakes() -> None:
    together, single = World(count=3).lead(), World(count=3).lead()
    events = [(f"g{number % 5}", number) for number in range(20)]
    bad = GroupEvent(time_ms=1, type=EventType.LOADED, state=None)  # type: ignore[arg-type]
    added = [(group_id, GroupEvent(time_ms=time_ms, type=EventType.LOADED)) for group_id, time_ms in events]
    ((group_id, mistake),) = together.log.add_all([*added[:9], ("g1", bad), *added[9:]])
    assert (group_id, type(mistake)) == ("g1", AttributeError)
    for group_id, time_ms in events:
        single.add(group_id, time_ms)
    for world in (together, single):
        world.tick()
    assert [together.log.of(group_id) for group_id, _ in events] == [single.log.of(group_id) for group_id, _ in events]
    logs = [[each.log.read(0, 1 << 20) for each in world.partitions] for world in (together, single)]
    assert logs[0] == logs[1]


def test_tl3_a_timeline_that_is_forgotten_while_events_of_it_are_added_is_forgotten_in_the_log_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeline, "GROUPS_MAX", 1)
    world = World(count=2).lead()
    first, second = (next(name for name in map(str, range(99)) if shard_of(name, 2) == index) for index in range(2))
    added = [GroupEvent(time_ms=time_ms, type=EventType.LOADED) for time_ms in range(3)]
    world.add(second, 7)
    assert not world.log.add_all([(first, added[0]), (second, added[1]), (first, added[2])])
    world.tick()
    again = World(world.partitions).lead()
    for each in (world, again):
        assert (each.times(first), each.times(second)) == ([0, 2], [])


def test_tl10_events_are_written_before_their_partition_is_given_up() -> None:
    world = World().lead()
    world.add("g", 1)
    world.log.resign(0)
    assert World(world.partitions).lead().times("g") == [1]


def test_tl10_events_of_a_leader_epoch_that_is_over_are_written_in_the_next_one_of_this_broker() -> None:
    """Its partitions take no record in the earlier epoch any more."""
    world = World(count=2).lead()
    first, second = (next(name for name in map(str, range(99)) if shard_of(name, 2) == index) for index in range(2))
    world.add(first, 1)
    world.log.forget(first)
    world.add(first, 2)
    world.add(second, 3)
    for partition in world.partitions:
        partition.lead(1)  # as a change of the metadata does, before the timelines hear of it
    for index in range(2):
        world.log.lead(index, 1)
    world.add(first, 4)
    world.tick()
    assert (world.times(first), world.times(second), world.log.dropped) == ([2, 4], [3], 0)
    assert World(world.partitions, count=2).lead(1).times(first) == [2, 4]


def test_tl10_events_that_cannot_be_written_before_another_broker_leads_are_dropped_and_counted() -> None:
    world = World().lead()
    world.add("g", 1)
    world.add("g", 2)
    world.partitions[0].lead(1)
    world.log.resign(0, 1)
    assert (world.times("g"), world.log.dropped) == ([], 2)
    world.add("g", 3)
    world.partitions[0].lead(2)
    world.log.lead(0, 2)
    world.tick()
    assert (world.times("g"), world.log.dropped) == ([3], 2)


def test_tl10_the_bounds_hold_for_events_of_an_earlier_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_log, "PENDING_MAX", 2)
    world = World().lead()
    for time_ms in range(4):
        world.add("g", time_ms)
    world.partitions[0].lead(1)
    world.log.lead(0, 1)
    world.tick()
    assert (world.times("g"), world.log.dropped) == ([2, 3], 2)


def test_tl10_a_failing_log_is_given_up_all_the_same() -> None:
    world = World().lead()
    world.add("g", 1)
    world.fails = True
    world.log.resign(0)
    assert len(world.timers) == 0  # no reload
    assert world.times("g") == []


def test_tl2_events_wait_until_their_partition_was_read() -> None:
    before = World().lead()
    before.add("g", 1)
    before.tick()
    world = World(before.partitions)
    world.add("g", 2)
    assert world.requests == 1
    assert world.times("g") == [2]
    world.lead()
    assert [(event.sequence, event.time_ms) for event in world.log.of("g")] == [(0, 1), (1, 2)]
    world.tick()
    assert World(world.partitions).lead().times("g") == [1, 2]


def test_tl2_events_that_wait_too_long_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_log, "PENDING_MAX", 3)
    world = World()
    for time_ms in range(5):
        world.add("g", time_ms)
    assert (world.times("g"), world.log.dropped) == ([2, 3, 4], 2)
    world.lead()
    assert world.times("g") == [2, 3, 4]


def test_tl2_the_bytes_that_wait_are_bounded_and_the_longest_queue_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(count=2)
    few, many = (next(name for name in map(str, range(99)) if shard_of(name, 2) == index) for index in range(2))
    world.add(few, 0)
    monkeypatch.setattr(timeline_log, "PENDING_BYTES_MAX", 4 * world.log._pending_bytes)
    for time_ms in range(6):
        world.add(many, time_ms)
    assert (world.times(few), world.times(many), world.log.dropped) == ([0], [3, 4, 5], 3)


def test_tl2_pending_events_are_written_in_slices_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_log, "PENDING_SLICE", 2)
    world = World()
    for time_ms in range(6):
        world.add("g", time_ms)
    world.partitions[0].lead(0)
    world.log.lead(0, 0)
    while not world.log.shards[0].machines:
        world.turn()
    assert len(world.log.shards[0].machines["g"]) == 2
    world.add("g", 6)  # behind those that wait
    assert world.times("g") == [*range(7)]
    world.log.resign(0)  # while they are being written
    world.tick()
    assert world.times("g") == [*range(2, 7)]
    world.lead(1)
    assert world.times("g")[-5:] == [*range(2, 7)]
    assert world.log._pending_count == world.log._pending_bytes == 0


@pytest.mark.parametrize("value", [b"", b"\0\0", b"\0\0" + bytes([0x7F, *[0xFF] * 7]), b"\0\0" + bytes(7) + b"\7"])
def test_tl8_a_damaged_record_of_an_admin_takes_no_timeline_away(value: bytes) -> None:
    before = World().lead()
    before.add("g", 1)
    before.tick()
    keys = encode_key(TimelineKey(group="g", slot=7)), b"", b"\0\0\7"
    before.partitions[0].append_pairs([(key, value) for key in keys], 1_000, 0)
    world = World(before.partitions).lead(1)
    assert world.times("g") == [1]
    world.add("g", 2)
    assert world.log.of("g")[0].sequence == 0
    assert world.times("g") == [1, 2]


def test_events_of_several_partitions_wait_for_their_own() -> None:
    world = World(count=4)
    groups = [f"g{number}" for number in range(8)]
    for group_id in groups:
        world.add(group_id, 1)
    index = shard_of(groups[0], 4)
    world.log.lead(index, 0)
    world.tick()
    assert len(world.log.shards[index].machines) >= 1
    assert all(world.times(group_id) == [1] for group_id in groups)
    world.lead()
    assert sum(len(shard.machines) for shard in world.log.shards) == 8


def test_events_that_waited_for_a_topic_of_one_partition_wait_for_their_own() -> None:
    """A broker learns how many partitions the topic has when it was created, after the first events of a group."""
    world = World(count=4)
    world.log.resize(1)
    world.add("g", 1)
    world.log.resize(4)
    world.lead()
    world.tick()
    world.add("g", 2)
    world.tick()
    assert [each.sequence for each in world.log.of("g")] == [0, 1]
    assert [partition.log.log_end_offset for partition in world.partitions] == [
        2 if index == shard_of("g", 4) else 0 for index in range(4)
    ]


def test_tl3_a_deleted_group_leaves_tombstones() -> None:
    world = World().lead()
    world.add("g", 1)
    world.tick()
    world.log.forget("g")
    world.tick()
    assert world.log.of("g") == ()
    assert World(world.partitions).lead().log.groups() == []
    waiting = World(world.partitions)
    waiting.add("g", 1)
    waiting.log.forget("g")
    assert waiting.log.of("g") == ()


def test_tl3_timelines_dropped_for_lack_of_memory_are_removed_from_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "GROUPS_MAX", 2)
    world = World().lead()
    for group_id in ("a", "b", "a", "c"):
        world.add(group_id, 1)
        world.tick()
    assert sorted(world.log.groups()) == ["a", "c"]
    assert sorted(World(world.partitions).lead().log.groups()) == ["a", "c"]
    monkeypatch.setattr(timeline, "GROUPS_MAX", 1)
    assert len(World(world.partitions).lead().log.groups()) == 1


def test_tl1_a_failed_log_affects_no_group_and_is_read_again() -> None:
    world = World().lead()
    world.add("g", 1)
    world.tick()
    world.fails = True
    world.add("g", 2)
    world.tick()
    assert world.log.of("g") == ()
    world.add("g", 3)
    world.fails = False
    for call in world.timers.due(1_000 + RELOAD_AFTER_MS):
        call()
    world.tick()
    assert world.times("g") == [1, 3]


def test_another_leader_takes_the_timeline_away() -> None:
    world = World().lead()
    world.add("g", 1)
    world.tick()
    world.log.resign(0)
    assert world.log.of("g") == ()
    world.add("g", 2)
    assert world.times("g") == [2]


def grown(world: World, count: int) -> World:
    """Return what a restart finds after the topic got `count` partitions."""
    added = World(count=count).partitions[len(world.partitions) :]
    return World(world.partitions + added)


def places(world: World) -> dict[str, list[int]]:
    """Return the partitions in which each group has events."""
    found: dict[str, list[int]] = {}
    for shard in world.log.shards:
        for group_id, machine in shard.machines.items():
            if len(machine):
                found.setdefault(group_id, []).append(shard.index)
    return found


GROUPS = [f"g{number}" for number in range(40)]
PLACES = {group_id: [shard_of(group_id, 4)] for group_id in GROUPS}


def test_tl9_the_events_of_a_topic_that_has_grown_move_to_the_partition_of_their_group() -> None:
    world = World(count=1).lead()
    for group_id in GROUPS:
        world.add(group_id, 1)
        world.add(group_id, 2)
    world.tick()
    more = grown(world, 4)
    more.lead()
    assert places(more) == PLACES
    assert all(more.times(group_id) == [1, 2] for group_id in GROUPS)
    again = World(more.partitions).lead()
    assert places(again) == PLACES
    assert all(again.times(group_id) == [1, 2] for group_id in GROUPS)


def test_tl9_new_events_are_written_after_moved_ones() -> None:
    world = World(count=1).lead()
    group_id = next(group_id for group_id in GROUPS if shard_of(group_id, 4) == 3)
    world.add(group_id, 1)
    world.tick()
    more = grown(world, 4)
    for index in (3, 0):
        more.partitions[index].lead(0)
        more.log.lead(index, 0)
        more.tick()
        more.add(group_id, 5 + index)
    more.tick()
    assert more.times(group_id) == [1, 8, 5]
    assert [event.sequence for event in more.log.of(group_id)] == sorted(
        event.sequence for event in more.log.of(group_id)
    )


def test_tl9_events_stay_while_another_broker_leads_the_partition_of_their_group() -> None:
    world = World(count=1).lead()
    for group_id in GROUPS:
        world.add(group_id, 1)
    world.tick()
    more = grown(world, 4)
    more.partitions[0].lead(0)
    more.log.lead(0, 0)
    more.tick()
    assert places(more) == {group_id: [0] for group_id in GROUPS}
    more.lead(1)
    assert places(more) == PLACES


@pytest.mark.parametrize("moves_before", [True, False])
@pytest.mark.parametrize("has_newer", [True, False])
@pytest.mark.parametrize("leads_again", [True, False])
def test_tl9_no_event_is_lost_when_the_new_partition_has_another_leader_epoch(
    moves_before: bool, has_newer: bool, leads_again: bool
) -> None:
    group_id = next(group_id for group_id in GROUPS if shard_of(group_id, 2) == 1)
    world = World(count=1).lead()
    world.add(group_id, 1)
    world.add(group_id, 2)
    world.tick()
    more = grown(world, 2)
    _lead(more, 1, 0)
    if has_newer:
        more.add(group_id, 3)
        more.tick()
    if not moves_before:
        more.partitions[1].lead(1)
    more.partitions[0].lead(0)
    more.log.lead(0, 0)
    for _ in range(6):  # fewer than FLUSH_CALLS
        more.turn()
    assert (more.log.shards[1].state is ShardState.READY) is moves_before
    more.partitions[1].lead(1)
    if leads_again:
        more.log.lead(1, 1)
    else:
        more.log.resign(1, 1)
        more.tick()
        _lead(more, 1, 2)
    more.tick()
    expected = [1, 2, 3] if has_newer else [1, 2]
    assert (more.times(group_id), places(more), more.log.dropped) == (expected, {group_id: [1]}, 0)
    assert World(more.partitions, count=2).lead(3).times(group_id) == expected


@pytest.mark.parametrize("is_replicated", [True, False])
def test_tl9_events_leave_the_old_partition_when_the_new_one_has_them_on_its_replicas(is_replicated: bool) -> None:
    """Another leader of the new partition would not have them, while the old one had lost them."""
    group_id = next(group_id for group_id in GROUPS if shard_of(group_id, 2) == 1)
    world = World(count=1).lead()
    world.add(group_id, 1)
    world.tick()
    added = World(count=2)
    more, target = World(world.partitions + added.partitions[1:]), added.partitions[1]
    placed = PartitionState(index=1, leader=0, replicas=(0, 1), isr=(0, 1), leader_epoch=1)
    target.apply(placed, 1_000)
    more.log.lead(1, 1)
    _lead(more, 0, 0)
    assert places(more) == {group_id: [0, 1]}
    if is_replicated:
        target.follower_fetched(1, target.log.log_end_offset, 1_000)
    else:
        for call in added.timers.due(1_000 + COMMIT_TIMEOUT_MS):
            call()
    more.tick()
    assert places(more) == {group_id: [1] if is_replicated else [0, 1]}
    again = World(more.partitions).lead(2)
    assert (again.times(group_id), places(again)) == ([1], {group_id: [1]})


def _lead(world: World, index: int, epoch: int) -> None:
    world.partitions[index].lead(epoch)
    world.log.lead(index, epoch)
    world.tick()


@pytest.mark.parametrize("is_created_again", [True, False])
@pytest.mark.parametrize(
    "order",
    [
        *("source forget target", "forget source target", "source target forget"),
        *("forget target source", "target forget source"),  # as when another broker leads the source for a while
    ],
)
def test_tl3_a_group_that_is_deleted_before_its_events_move_leaves_none(order: str, is_created_again: bool) -> None:
    group_id = next(group_id for group_id in GROUPS if shard_of(group_id, 2) == 1)
    world = World(count=1).lead()
    world.add(group_id, 1)
    world.tick()
    more = grown(world, 2)
    for step in order.split():
        if step == "forget":
            more.log.forget(group_id)
            if is_created_again:
                more.add(group_id, 2_000)
            continue
        index = ("source", "target").index(step)
        more.partitions[index].lead(0)
        more.log.lead(index, 0)
        more.turn()
    more.tick()
    assert (more.times(group_id), places(more)) == (([2_000], {group_id: [1]}) if is_created_again else ([], {}))
    assert more.log._sizes.total_bytes == sum(machine.size_bytes for machine in more.log.shards[1].machines.values())
    assert World(more.partitions).lead(1).log.groups() == [group_id] * is_created_again


def test_tl3_the_deletions_that_a_broker_remembers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_log, "DELETED_MAX", 2)
    world = World()
    for group_id in ("a", "b", "a", "c"):
        world.log.forget(group_id)
    assert list(world.log._deleted) == ["a", "c"]


def test_tl9_events_that_were_refused_just_before_a_growth_are_written_in_the_new_partition() -> None:
    group_id = next(group_id for group_id in GROUPS if shard_of(group_id, 2) == 1)
    world = World(count=1).lead()
    world.add(group_id, 1)
    world.partitions[0].lead(1)  # before the timelines hear of it
    world.partitions += World(count=2).partitions[1:]
    world.log.resize(2)
    world.lead(2)
    assert (world.times(group_id), places(world), world.log.dropped) == ([1], {group_id: [1]}, 0)
    assert world.log._pending_count == world.log._pending_bytes == 0


def test_tl9_the_bound_of_memory_counts_events_whose_move_failed() -> None:
    group_id = next(group_id for group_id in GROUPS if shard_of(group_id, 2) == 1)
    world = World(count=1).lead()
    world.add(group_id, 1)
    world.tick()
    more = grown(world, 2)
    _lead(more, 1, 0)
    more.partitions[1].lead(1)  # before the timelines hear of it
    _lead(more, 0, 0)
    assert places(more) == {group_id: [0]}
    assert more.log._sizes.total_bytes == more.log.shards[0].machines[group_id].size_bytes


class FullLog(MemoryLog):
    """A log on a disk with room for some more batches."""

    room = 1 << 30

    def append_encoded(self, records: bytes, count: int, *, leader_epoch: int, now_ms: int) -> int:
        self.room -= 1
        if self.room < 0:
            raise StorageFailed("no space")
        return super().append_encoded(records, count, leader_epoch=leader_epoch, now_ms=now_ms)


@pytest.mark.parametrize(("room", "events"), [*((room, 2) for room in range(8)), (150, 200)])
def test_tl9_no_event_is_lost_when_the_disk_is_full_in_the_middle_of_a_move(
    room: int, events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "BATCH_RECORD_BYTES_MAX", 1)
    group_id = next(group_id for group_id in GROUPS if shard_of(group_id, 2) == 1)
    world, target = World(count=1).lead(), FullLog(CONFIG)
    more = World([*world.partitions, Partition("timeline", bytes(16), 1, 0, target, timers=world.timers)])
    for time_ms in range(events):
        world.add(group_id, time_ms)
    world.tick()
    _lead(more, 1, 0)
    for time_ms in range(events, 2 * events):
        more.add(group_id, time_ms)
    more.tick()
    target.room = room
    _lead(more, 0, 0)
    assert places(more) == {group_id: [0] if more.partitions[1].offline else [1]}
    target.room = 1 << 30
    freed = [
        Partition("timeline", bytes(16), each.index, 0, each._log, timers=world.timers) for each in more.partitions
    ]
    again = World(freed).lead(1)
    expected = [*range(2 * events)][-EVENTS_PER_GROUP_MAX:]
    assert (again.times(group_id), places(again)) == (expected, {group_id: [1]})


@pytest.mark.parametrize("grows_again", [True, False])
def test_tl9_moved_events_outlive_another_leader_epoch_of_the_partition_that_they_left(grows_again: bool) -> None:
    group_id = next(group_id for group_id in GROUPS if (shard_of(group_id, 2), shard_of(group_id, 3)) == (1, 2))
    world = World(count=1).lead()
    world.add(group_id, 1)
    world.tick()
    more = grown(world, 2)
    _lead(more, 1, 0)
    more.partitions[0].lead(0)
    more.log.lead(0, 0)
    while places(more) != {group_id: [1]}:
        more.turn()
    more.partitions[0].lead(1)  # before the tombstones are written
    more.log.lead(0, 1)
    if grows_again:
        for index in range(2):
            more.log.resign(index)
        more.log.resize(3)
        more.partitions += World(count=3).partitions[2:]
        more.lead(2)
    more.tick()
    assert more.times(group_id) == [1]
    assert places(more) == {group_id: [2 if grows_again else 1]}
    assert more.log._pending_count == more.log._pending_bytes == 0
