"""All shards of a broker: error codes, loading, standbys, broadcasts to all groups, lines in the log."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.faulty_files import FaultyFiles
from tests.unit.coordinator.runtime.toy import Number, Remind, ToyWorld

from rota.coordinator.group.machine import Group
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog
from rota.coordinator.log.errors import StorageFailed
from rota.coordinator.log.store import OpenFiles
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica.cold_reads import load_soon
from rota.coordinator.replica.partition import Partition
from rota.coordinator.runtime.coordinator import (
    BATCH_RECORD_BYTES_MAX,
    LOADED_MACHINES_MAX,
    RELOAD_AFTER_MS,
    portions,
)
from rota.coordinator.runtime.logged_failures import AGAIN_MS
from rota.coordinator.runtime.replay import APPLY_BYTES_MAX, APPLY_RECORDS_MAX, LOADS_MAX
from rota.coordinator.runtime.shard import Shard, ShardState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventType
from rota.protocol.offsets_records import OffsetCommitKey, encode_key


def test_a_shard_that_is_not_led_here_is_not_coordinator(world: Any) -> None:
    shard = world.shard("g")
    world.coordinator.resign(shard.index)
    assert world.coordinator.ready("g") is ErrorCode.NOT_COORDINATOR


def test_a_loading_shard_is_coordinator_load_in_progress_until_it_is_ready(world: Any) -> None:
    shard = world.shard("g")
    world.commit("g", 3)
    world.turn()
    world.coordinator.resign(shard.index)
    world.coordinator.lead(shard.index, 1)
    assert shard.state is ShardState.CATCHING_UP
    assert world.coordinator.is_loading
    assert world.coordinator.ready("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.turn()
    assert not world.coordinator.is_loading
    assert world.offset("g") == 3


def test_a_shard_that_resigns_while_it_loads_stays_down(world: Any) -> None:
    shard = world.shard("g")
    world.coordinator.resign(shard.index)
    world.coordinator.lead(shard.index, 1)
    world.coordinator.resign(shard.index)
    world.turn()
    assert shard.state is ShardState.DOWN


def test_a_partition_that_is_offline_holds_up_no_other_shard(world: Any) -> None:
    world.commit("g", 3)
    world.turn()
    down = world.partitions[(world.shard("g").index + 1) % 3]
    down.offline = "the disk is away for a moment"
    world.start()
    assert world.offset("g") == 3
    assert world.coordinator.shards[down.index].state is ShardState.DOWN
    down.offline = None
    world.after(1_000)
    assert world.coordinator.shards[down.index].state is ShardState.READY


def on_disk(world: Any, index: int, folder: Path) -> FaultyFiles:
    """Give the shard a log on a disk with the records that it has; return its file system."""
    system, config = FaultyFiles(), LogConfig(compact=True, delete=False)
    log = DiskLog.open(folder / "offsets", config, files=OpenFiles(system=system))
    log.append_trusted(world.partitions[index].log.read(0, 1 << 20), leader_epoch=0, now_ms=0)
    world.partitions[index] = Partition("offsets", bytes(16), index, 0, log)
    return system


async def test_records_that_are_not_in_the_page_cache_are_read_in_another_thread(world: Any, tmp_path: Path) -> None:
    world.commit("g", 3)
    world.turn()
    index = world.shard("g").index
    system = on_disk(world, index, tmp_path)
    system.uncached = {".log"}
    world.load_soon = load_soon
    system.calls.clear()
    world.start()
    assert world.coordinator.is_loading
    assert [shard.index for shard in world.coordinator.shards if shard.state is ShardState.READY] == [
        other for other in range(3) if other != index
    ]
    async with asyncio.timeout(10):
        while world.coordinator.is_loading:
            await asyncio.sleep(0.001)
            world.turn()
    reads = [call.thread for call in system.calls if call.call == "pread"]
    assert reads[0] != threading.get_ident()  # the first read brings the records into the page cache
    assert world.offset("g") == 3


def test_a_page_cache_that_keeps_nothing_does_not_stop_a_shard_from_loading(world: Any, tmp_path: Path) -> None:
    world.commit("g", 3)
    world.turn()
    system = on_disk(world, world.shard("g").index, tmp_path)
    system.uncached, system.forgets_loads = {".log"}, True
    world.start()
    assert world.offset("g") == 3
    assert len([call for call in system.calls if call.call == "pread"]) == LOADS_MAX + 1


@pytest.mark.parametrize("value", [b"\0\x04cut", b"no version that anybody knows"])
def test_an_unreadable_record_stops_only_its_shard(world: Any, value: bytes) -> None:
    world.commit("g", 3)
    world.turn()
    broken = world.partitions[(world.shard("g").index + 1) % 3]
    key = encode_key(OffsetCommitKey(group="other", topic="t", partition=0))
    broken.append_pairs([(key, value)], 0)
    world.start()
    assert world.offset("g") == 3
    assert world.coordinator.shards[broken.index].state is ShardState.DOWN
    assert not world.coordinator.shards[broken.index].machines


def test_an_internal_error_with_a_log_stops_only_its_shard(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.commit("g", 3)
    world.turn()
    with monkeypatch.context() as patch:
        patch.setattr(Group, "replay", _mistaken)
        world.start()
    assert world.coordinator.ready("g") is ErrorCode.NOT_COORDINATOR
    assert [shard.state for shard in world.coordinator.shards].count(ShardState.READY) == 2
    world.after(1_000)
    assert world.offset("g") == 3


def test_our_own_mistake_in_a_write_holds_up_no_other_shard(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = next(str(n) for n in range(9) if world.shard(str(n)) is not world.shard("g"))
    broken = world.partitions[world.shard("g").index]
    first, second = world.commit("g", 3), world.commit(other, 4)
    with monkeypatch.context() as patch:
        patch.setattr(Partition, "append_encoded", _mistaken_at(broken))
        world.turn()
    assert (first.value, second.value) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NONE)
    assert (world.offset("g"), world.offset(other)) == (None, 4)


def test_topics_deleted_while_a_shard_was_stopped_are_removed_at_its_load(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [name for name in map(str, range(30)) if world.shard(name) is world.shard("g")]
    for name in groups:
        world.commit(name, 3)
    world.turn()
    with monkeypatch.context() as patch:
        patch.setattr(Group, "step", _mistaken)
        world.coordinator.topics_deleted([("topic", bytes(16))])
        assert not _machines_when_loading(world)
    world.turn()
    assert [world.offset(name) for name in groups] == [None] * len(groups)


def _machines_when_loading(world: Any) -> dict[str, Group]:
    """End parts of this tick until a shard has failed and loads again."""
    while True:
        world.part_of_turn()
        for shard in world.coordinator.shards:
            if shard.state is ShardState.CATCHING_UP:
                machines: dict[str, Group] = shard.machines
                return machines


def _mistaken(*args: object) -> Any:
    raise RuntimeError("nobody wrote a test for this")


def _mistaken_at(broken: Partition) -> Any:
    append = Partition.append_encoded

    def appended(self: Partition, *written: Any) -> Any:
        return _mistaken() if self is broken else append(self, *written)

    return appended


def test_resigning_answers_all_waiting_requests(world: Any) -> None:
    joined = world.member("g")
    delayed_reply = world.join("g", "", "m-2")
    assert not delayed_reply.answered
    world.coordinator.resign(world.shard("g").index)
    assert delayed_reply.value.error is ErrorCode.NOT_COORDINATOR
    assert joined.member_id == "m-1"


def test_deleted_topics_take_their_offsets_along(world: Any) -> None:
    world.commit("g", 3)
    world.turn()
    world.coordinator.topics_deleted([("topic", bytes(16))])
    world.turn()
    assert world.offset("g") is None


def test_a_member_without_heartbeats_is_removed_after_its_session(world: Any) -> None:
    world.member("g")
    world.after(9_999)
    assert world.shard("g").machines["g"].state.value == "Stable"
    world.after(2)
    assert world.shard("g").machines["g"].state.value == "Empty"


def test_every_rebalance_is_logged_with_its_reason(world: Any) -> None:
    world.member("g")
    events = world.coordinator.events_of("g")
    (started,) = [event for event in events if event.type == EventType.REBALANCE_STARTED]
    assert started.reason
    assert [member.member_id for member in started.members] == ["m-1"]


def test_portions_keep_order_and_size() -> None:
    records = [(bytes([i]), bytes(BATCH_RECORD_BYTES_MAX // 3)) for i in range(7)]
    parts = list(portions(list(records)))
    assert [record for part in parts for record in part] == records
    assert [len(part) for part in parts] == [2, 2, 2, 1]


def test_a_record_larger_than_a_batch_is_written_alone() -> None:
    big = (b"k", bytes(2 * BATCH_RECORD_BYTES_MAX))
    assert [len(part) for part in portions([big, (b"l", b""), big])] == [1, 1, 1]


def test_co8_a_unit_is_not_split() -> None:
    third = BATCH_RECORD_BYTES_MAX // 3
    records = [(bytes([i]), bytes(third)) for i in range(8)]
    assert [len(part) for part in portions(records, lambda: [(1, 4), (5, 7)])] == [1, 3, 1, 2, 1]
    assert [len(part) for part in portions(records, lambda: [(0, 8)])] == [8]


def test_small_records_make_one_portion_tombstones_included_and_none_makes_none() -> None:
    records = [(b"k", None), (b"l", b"value"), (b"m", None)]
    assert list(portions(list(records))) == [records]
    assert list(portions([])) == []


# ---- CO4, CO5: leadership and standbys, with a toy machine


def test_a_lead_of_a_known_or_older_epoch_changes_nothing() -> None:
    toy = ToyWorld().lead(5)
    waiting = toy.put("a", 1, 7)
    for epoch in (4, 5):
        toy.runtime.lead(0, epoch)
    toy.settle()
    assert waiting.value is ErrorCode.NONE
    assert toy.shard("a").machines["a"].loads == 0, "nothing was loaded again"


def test_a_resign_of_a_known_or_older_epoch_changes_nothing() -> None:
    toy = ToyWorld().lead(5)
    for epoch in (4, 5):
        toy.runtime.resign(0, epoch)
    assert toy.runtime.ready("a") is toy.runtime.shards[0]
    toy.runtime.resign(0, 6)
    assert toy.runtime.ready("a") is ErrorCode.NOT_COORDINATOR
    toy.runtime.lead(0, 6)
    toy.settle()
    assert toy.runtime.ready("a") is ErrorCode.NOT_COORDINATOR, "in epoch 6 another broker leads"


def test_a_write_of_an_earlier_epoch_never_answers_for_a_later_one() -> None:
    toy = ToyWorld().lead(5)
    toy.request_flushes()
    earlier = toy.put("a", 1, 7)
    toy.settle()
    toy.partitions[0].lead(6)
    toy.runtime.lead(0, 6)
    assert earlier.value is ErrorCode.NOT_COORDINATOR
    toy.settle()
    later = toy.put("a", 1, 8)
    toy.flush()  # the earlier write is committed, the later one is not even written
    assert not later.answered
    toy.settle()
    assert not later.answered
    toy.flush()
    assert later.value is ErrorCode.NONE


def test_a_shard_writes_only_in_the_leader_epoch_whose_log_it_has_replayed() -> None:
    toy = ToyWorld().lead(5)
    waiting = toy.put("a", 1, 7)
    toy.partitions[0].lead(7)  # in epoch 6 another broker may have led and written
    toy.settle()
    assert waiting.value is ErrorCode.NOT_COORDINATOR
    assert toy.partitions[0].log.log_end_offset == 0
    toy.runtime.lead(0, 7)
    toy.settle()
    toy.put("a", 1, 8)
    toy.settle()
    assert toy.numbers() == {"a": {1: 8}}


def test_replayed_records_are_visible_only_once_committed() -> None:
    toy = ToyWorld().lead()
    toy.request_flushes()
    toy.put("a", 1, 7)
    toy.settle()
    again = ToyWorld(toy.partitions).lead()
    read: Any = again.shard("a").when_committed("seven", lambda code: code.name)
    assert not read.answered
    again.flush()
    assert read.value == "seven"


def test_a_standby_answers_every_request_with_not_coordinator() -> None:
    toy = ToyWorld().lead()
    toy.put("a", 1, 7)
    toy.settle()
    standby = ToyWorld(toy.partitions)
    standby.runtime.follow(0)
    standby.settle()
    assert standby.numbers() == {"a": {1: 7}}
    assert standby.runtime.ready("a") is ErrorCode.NOT_COORDINATOR
    assert list(standby.runtime.machines()) == []
    assert not standby.runtime.is_loading


def test_a_standby_applies_committed_records_only() -> None:
    toy = ToyWorld().lead()
    toy.request_flushes()
    toy.put("a", 1, 7)
    toy.settle()
    standby = ToyWorld(toy.partitions)
    standby.runtime.follow(0)
    standby.settle()
    assert standby.numbers() == {}
    toy.flush()
    standby.runtime.log_grew(0)
    standby.settle()
    assert standby.numbers() == {"a": {1: 7}}


def test_a_timer_of_a_machine_that_was_dropped_with_its_shard_steps_nothing() -> None:
    toy = ToyWorld().lead()
    toy.put("a", 1, 7)
    toy.settle()
    shard = toy.shard("a")
    reply = shard.submit(shard.machines["a"], Remind(shard.token(), toy.now_ms + 1), lambda code: code)
    toy.runtime.resign(0)
    assert reply.value is ErrorCode.NOT_COORDINATOR
    for call in toy.timers.due(toy.now_ms + 1):
        call()
    assert toy.numbers() == {}


def test_a_standby_that_leads_reads_the_rest_only() -> None:
    toy = ToyWorld().lead()
    standby = ToyWorld(toy.partitions)
    for value in range(300):
        toy.put("a", value, value)
        toy.settle()
    standby.runtime.follow(0)
    standby.settle()
    decoded = standby.codec.decoded
    toy.put("a", 0, 1_000)
    toy.settle()
    standby.runtime.lead(0, 1)
    assert standby.runtime.ready("a") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    standby.settle()
    assert standby.codec.decoded == decoded + 1
    assert standby.numbers() == toy.numbers()
    assert standby.shard("a").machines["a"].loads == 1


def test_a_standby_whose_log_was_truncated_replays_from_the_start() -> None:
    toy = ToyWorld().lead()
    toy.put("a", 1, 7)
    toy.settle()
    end = toy.partitions[0].log.log_end_offset
    toy.put("b", 1, 8)
    toy.settle()
    standby, leader = ToyWorld(toy.partitions), ToyWorld(toy.partitions)
    for world in (standby, leader):
        world.runtime.follow(0)
        world.settle()
    toy.partitions[0].log.truncate(end)
    standby.runtime.log_grew(0)
    standby.settle()
    assert standby.numbers() == {"a": {1: 7}}
    assert leader.lead(1).numbers() == {"a": {1: 7}}


def test_a_standby_whose_partition_is_offline_tries_again() -> None:
    toy = ToyWorld().lead()
    toy.put("a", 1, 7)
    toy.settle()
    standby = ToyWorld(toy.partitions)
    toy.partitions[0].offline = "the disk is away for a moment"
    standby.runtime.follow(0)
    standby.settle()
    assert standby.numbers() == {}
    toy.partitions[0].offline = None
    for call in standby.timers.due(standby.now_ms + RELOAD_AFTER_MS):
        call()
    standby.settle()
    assert standby.numbers() == {"a": {1: 7}}


def test_a_standby_that_failed_does_not_follow_again_after_it_resigned() -> None:
    toy = ToyWorld().lead()
    standby = ToyWorld(toy.partitions)
    toy.partitions[0].offline = "the disk is away for a moment"
    standby.runtime.follow(0)
    standby.settle()
    standby.runtime.resign(0)
    toy.partitions[0].offline = None
    for call in standby.timers.due(standby.now_ms + RELOAD_AFTER_MS):
        call()
    standby.settle()
    assert standby.runtime.shards[0].state is ShardState.DOWN


def test_a_leader_does_not_become_a_standby_by_mistake() -> None:
    toy = ToyWorld().lead()
    toy.runtime.follow(0)
    assert toy.shard("a").state is ShardState.READY


# ---- CO1: slices


def test_loading_does_little_work_in_one_tick() -> None:
    toy = ToyWorld().lead()
    for number in range(1_000):
        toy.put(f"c{number}", 0, number)
    toy.settle()
    again = ToyWorld(toy.partitions)
    again.runtime.lead(0, 1)
    records, loads, ticks = [], [], 0
    while again.tick_queue:
        decoded, loaded = again.codec.decoded, _loads(again)
        again.tick()
        ticks += 1
        records.append(again.codec.decoded - decoded)
        loads.append(_loads(again) - loaded)
    assert sum(records) == sum(loads) == 1_000
    assert max(records) == APPLY_RECORDS_MAX
    assert max(loads) == LOADED_MACHINES_MAX
    assert ticks >= 1_000 // APPLY_RECORDS_MAX + 1_000 // LOADED_MACHINES_MAX


def test_shards_with_few_records_are_loaded_in_few_ticks() -> None:
    """A broker that takes over many shards on a busy machine has few ticks; clients give up a commit after 0.3 s."""
    toy = ToyWorld(shards=20).lead()
    for number in range(10):
        toy.put(f"c{number}", 0, number)
    toy.settle()
    again = ToyWorld(toy.partitions)
    for shard in again.runtime.shards:
        again.runtime.lead(shard.index, 1)
    for _ in range(3):
        again.tick()
    assert all(shard.state is ShardState.READY for shard in again.runtime.shards)


def test_a_large_record_ends_its_slice() -> None:
    toy = ToyWorld()
    large = b"0" * (APPLY_BYTES_MAX // 2)
    for number in range(6):
        toy.partitions[0].append_pairs([(b"a/%d" % number, large)], 0)
    toy.codec.decode = lambda key, value: _counted(toy, key)  # type: ignore[method-assign]
    toy.runtime.lead(0, 1)
    records = []
    while toy.tick_queue:
        decoded = toy.codec.decoded
        toy.tick()
        records.append(toy.codec.decoded - decoded)
    assert sum(records) == 6
    assert max(records) == 2


def _counted(toy: ToyWorld, key: bytes) -> Number:
    toy.codec.decoded += 1
    return Number("a", int(key[2:]), 1)


def _loads(toy: ToyWorld) -> int:
    return sum(counter.loads for counter in toy.runtime.shards[0].machines.values())


def test_shards_that_are_ready_answer_while_another_one_loads() -> None:
    toy = ToyWorld(shards=2).lead()
    names: dict[int, str] = {}
    for number in range(300):
        toy.put(f"c{number}", 0, number)
        names[toy.shard(f"c{number}").index] = f"c{number}"
    toy.settle()
    again = ToyWorld(toy.partitions)
    for index in names:
        again.runtime.lead(index, 1)
    answered = 0
    while again.tick_queue:
        again.tick()
        ready = [name for name in names.values() if isinstance(again.runtime.ready(name), Shard)]
        answered += len(ready) == 1
    assert answered > 2


def follows_another_broker(toy: ToyWorld) -> None:
    """The reply waits for its record's commit when the partition gets another leader."""
    toy.request_flushes()
    toy.put("a", 1, 7)
    toy.settle()
    state = PartitionState(index=0, leader=2, replicas=(0, 2), isr=(0, 2), leader_epoch=6)
    toy.partitions[0].apply(state, toy.now_ms)


def leads_in_a_later_epoch(toy: ToyWorld) -> None:
    """The record is not yet written when the partition is led in a later epoch."""
    toy.put("a", 1, 7)
    toy.partitions[0].lead(7)


@pytest.mark.parametrize("change", [follows_another_broker, leads_in_a_later_epoch])
def test_a_change_of_the_leader_is_no_error_in_the_log(change: Callable[[ToyWorld], None]) -> None:
    toy = ToyWorld().lead(5)
    with capture_logs() as lines:
        change(toy)
        toy.settle()
    (line,) = [line for line in lines if line["event"].startswith("Shard")]
    assert (line["event"], line["log_level"], line["shard"]) == ("Shard lost its leadership", "info", 0)


def test_a_failed_log_is_an_error_in_the_log_once() -> None:
    toy = ToyWorld().lead(5)
    with capture_logs() as lines:
        for _ in range(2):
            toy.runtime.storage_failed(toy.runtime.shards[0], StorageFailed("disk full"))
    assert [(line["log_level"], line["cause"]) for line in lines] == [("error", "disk full")]


def test_a1_a_log_that_fails_again_after_each_load_is_an_error_in_the_log_once() -> None:
    """A full disk: it is the same failure until it has not come for a while."""
    toy = ToyWorld().lead(5)
    shard = toy.runtime.shards[0]
    with capture_logs() as lines:
        for wait_ms in (60_000, 60_000, AGAIN_MS, 0):
            for cause in ("disk full", "numbers-0 is offline: disk full"):
                toy.runtime.storage_failed(shard, StorageFailed(cause))
            toy.now_ms += wait_ms
            toy.runtime._reload(shard)
            toy.settle()
            assert shard.state is ShardState.READY
    assert [line["cause"] for line in lines if line["log_level"] == "error"] == [
        "disk full",
        "numbers-0 is offline: disk full",
    ] * 2


def test_the_machines_are_visited_in_portions_while_they_come_and_go(world: Any) -> None:
    for number in range(5):
        world.commit(f"g{number}", 3)
    world.turn()
    found = world.coordinator.machine_portions(2)
    first = next(found)
    assert len(first) == 2
    last = [shard for shard in world.coordinator.shards if shard.machines][-1]
    removed, _ = last.machines.popitem()
    others = list(found)
    assert [len(portion) for portion in others] in ([2], [2, 0])
    names = {group.group_id for portion in (first, *others) for group in portion}
    assert names == {f"g{number}" for number in range(5)} - {removed}
