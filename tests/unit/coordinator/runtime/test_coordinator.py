"""The shards together: who answers, what loading says, what all groups hear, what is told in the log."""

from __future__ import annotations

from typing import Any

import pytest

from rota.coordinator.group.effects import Note
from rota.coordinator.group.machine import Group
from rota.coordinator.replica.partition import Partition
from rota.coordinator.runtime.coordinator import BATCH_RECORD_BYTES_MAX, portions
from rota.coordinator.runtime.shard import ShardState
from rota.protocol.errors import ErrorCode
from rota.protocol.offsets_records import OffsetCommitKey, encode_key


def test_a_shard_that_is_not_led_here_is_not_ours(world: Any) -> None:
    shard = world.shard("g")
    world.coordinator.resign(shard.index)
    assert world.coordinator.ready("g") is ErrorCode.NOT_COORDINATOR


def test_a_shard_that_loads_says_so_and_then_answers(world: Any) -> None:
    shard = world.shard("g")
    world.commit("g", 3)
    world.turn()
    world.coordinator.resign(shard.index)
    world.coordinator.lead([shard.index])
    assert shard.state is ShardState.CATCHING_UP
    assert world.coordinator.is_loading
    assert world.coordinator.ready("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.turn()
    assert not world.coordinator.is_loading
    assert world.offset("g") == 3


def test_a_shard_that_resigns_while_it_loads_stays_down(world: Any) -> None:
    shard = world.shard("g")
    world.coordinator.resign(shard.index)
    world.coordinator.lead([shard.index])
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


@pytest.mark.parametrize("value", [b"\0\x04cut", b"no version that anybody knows"])
def test_a_record_that_nobody_can_read_takes_one_shard_down(world: Any, value: bytes) -> None:
    world.commit("g", 3)
    world.turn()
    broken = world.partitions[(world.shard("g").index + 1) % 3]
    key = encode_key(OffsetCommitKey(group="other", topic="t", partition=0))
    broken.append_pairs([(key, value)], 0)
    world.start()
    assert world.offset("g") == 3
    assert world.coordinator.shards[broken.index].state is ShardState.DOWN
    assert not world.coordinator.shards[broken.index].groups


def test_our_own_mistake_with_a_log_takes_one_shard_down(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
        patch.setattr(Partition, "append_pairs", _mistaken_at(broken))
        world.turn()
    assert (first.value, second.value) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NONE)
    assert (world.offset("g"), world.offset(other)) == (None, 4)


def test_a_group_whose_shard_stopped_is_not_told_any_more(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [name for name in map(str, range(30)) if world.shard(name) is world.shard("g")]
    for name in groups:
        world.commit(name, 3)
    world.turn()
    with monkeypatch.context() as patch:
        patch.setattr(Group, "step", _mistaken)
        world.coordinator.topics_gone(["topic"])
    assert not _loading(world).groups
    world.turn()
    assert [world.offset(name) for name in groups] == [3] * len(groups)


def _loading(world: Any) -> Any:
    (one,) = [shard for shard in world.coordinator.shards if shard.state is ShardState.CATCHING_UP]
    return one


def _mistaken(*args: object) -> Any:
    raise RuntimeError("nobody wrote a test for this")


def _mistaken_at(broken: Partition) -> Any:
    append = Partition.append_pairs

    def appended(self: Partition, pairs: Any, now_ms: int) -> Any:
        return _mistaken() if self is broken else append(self, pairs, now_ms)

    return appended


def test_resigning_answers_all_who_wait(world: Any) -> None:
    joined = world.member("g")
    delayed_reply = world.join("g", "", "m-2")
    assert not delayed_reply.answered
    world.coordinator.resign(world.shard("g").index)
    assert delayed_reply.value.error is ErrorCode.NOT_COORDINATOR
    assert joined.member_id == "m-1"


def test_deleted_topics_take_their_offsets_along(world: Any) -> None:
    world.commit("g", 3)
    world.turn()
    world.coordinator.topics_gone(["topic"])
    world.turn()
    assert world.offset("g") is None


def test_a_member_that_falls_silent_is_removed_after_its_session(world: Any) -> None:
    world.member("g")
    world.after(9_999)
    assert world.shard("g").groups["g"].state.value == "Stable"
    world.after(2)
    assert world.shard("g").groups["g"].state.value == "Empty"


def test_every_rebalance_is_told_with_its_reason(world: Any) -> None:
    world.member("g")
    notes = [line.note for line in world.coordinator.timelines.of("g")]
    assert all(isinstance(note, Note) for note in notes)
    (began,) = [note for note in notes if note.event == "Preparing to rebalance group"]
    assert began.fields["group"] == "g"
    assert began.fields["reason"]


def test_portions_keep_order_and_size() -> None:
    records = [(bytes([i]), bytes(BATCH_RECORD_BYTES_MAX // 3)) for i in range(7)]
    parts = list(portions(list(records)))
    assert [record for part in parts for record in part] == records
    assert [len(part) for part in parts] == [2, 2, 2, 1]


def test_one_record_larger_than_a_portion_goes_alone() -> None:
    big = (b"k", bytes(2 * BATCH_RECORD_BYTES_MAX))
    assert [len(part) for part in portions([big, (b"l", b""), big])] == [1, 1, 1]
