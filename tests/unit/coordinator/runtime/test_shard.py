"""Decide, record, replay: replies wait for their write, one turn is one write, a failed write undoes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.litter import no_litter
from tests.unit.coordinator.runtime.toy import Counter, Number, Put, Shout, ToyWorld

from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.replica.partition import Partition
from rota.coordinator.runtime.contract import Append, Effect, Reply
from rota.coordinator.runtime.coordinator import COMMIT_TIMEOUT_MS, POSTPONED_CALLS
from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import headers


def batches(world: Any, group_id: str) -> int:
    log = world.partitions[world.shard(group_id).index].log
    return len(list(headers(log.read(log.log_start_offset, 1 << 30))))


def test_a_commit_is_answered_when_its_record_is_written(world: Any) -> None:
    answer = world.commit("g", 5)
    assert not answer.answered
    world.turn()
    assert answer.value is ErrorCode.NONE
    assert world.offset("g") == 5


def test_a_write_that_is_committed_when_it_is_appended_makes_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """O1, the path of a broker that is alone: it gives what the path through `when_committed` gives."""

    def outcome() -> tuple[list[Any], dict[str, dict[int, int]], bytes]:
        toy = ToyWorld().lead()
        answers = [toy.put("a", 1, 7), toy.put("b", 2, 8), toy.put("a", 1, None)]
        assert not any(answer.answered for answer in answers)
        toy.settle()
        assert toy.deadlines.next_ms() is None
        log = toy.partitions[0].log
        return [answer.value for answer in answers], toy.numbers(), log.read(0, 1 << 20)

    at_once = outcome()
    monkeypatch.setattr(Partition, "is_committed", lambda self, offset: False)
    assert outcome() == at_once


def test_a_committed_write_is_answered_after_earlier_pending_writes(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.request_flushes()
    first = world.commit("g", 1)
    world.turn()
    monkeypatch.setattr(Partition, "is_committed", lambda self, offset: True)
    second = world.commit("g", 2)
    world.turn()
    assert not first.answered
    assert not second.answered
    world.flush()
    assert [first.value, second.value] == [ErrorCode.NONE] * 2


def test_commits_of_one_turn_share_one_batch(world: Any) -> None:
    answers = [world.commit("g", offset) for offset in range(10)]
    before = batches(world, "g")
    world.turn()
    assert [answer.value for answer in answers] == [ErrorCode.NONE] * 10
    assert batches(world, "g") == before + 1


def test_a_refusal_does_not_wait(world: Any) -> None:
    world.member("g")
    assert world.commit("g", 5).value is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.offset("g") is None


def test_a_read_is_answered_with_the_write_that_it_depends_on(world: Any) -> None:
    world.request_flushes()
    commit = world.commit("g", 5)
    world.turn()
    shard = world.shard("g")
    read = shard.when_committed("body", lambda code: code)
    assert not commit.answered
    assert not read.answered
    world.flush()
    assert commit.value is ErrorCode.NONE
    assert read.value == "body"
    assert shard.when_committed("body", lambda code: code) == "body"


def test_a_refusal_of_reads_has_their_own_shape(world: Any) -> None:
    world.request_flushes()
    world.commit("g", 5)
    world.turn()
    shard = world.shard("g")
    read = shard.when_committed("body", lambda code: f"not now: {code.name}")
    world.partitions[shard.index].fail("the disk is gone")
    assert read.value == "not now: NOT_COORDINATOR"


def test_a_failed_write_throws_the_shard_away_and_nothing_was_acknowledged(world: Any) -> None:
    world.commit("g", 1)
    world.turn()
    joined = world.member("g")
    shard = world.shard("g")
    delayed_reply = world.join("g", "", "m-2")  # waits for m-1 to rejoin
    commit = world.commit("g", 2, joined.member_id, joined.generation)
    world.partitions[shard.index].fail("the disk is gone")
    world.turn()
    assert shard.state is ShardState.DOWN
    assert commit.value is ErrorCode.NOT_COORDINATOR
    assert delayed_reply.value.error is ErrorCode.NOT_COORDINATOR
    assert world.coordinator.ready("g") is ErrorCode.NOT_COORDINATOR


def test_a_shard_that_lost_its_log_is_loaded_again_from_its_records(world: Any) -> None:
    world.commit("g", 1)
    world.turn()
    shard = world.shard("g")
    partition = world.partitions[shard.index]
    lost = world.commit("g", 2)
    partition.offline = "the disk is away for a moment"
    world.turn()
    assert lost.value is ErrorCode.NOT_COORDINATOR
    partition.offline = None
    world.after(1_000)
    assert shard.state is ShardState.READY
    assert world.offset("g") == 1


def test_a_timer_of_a_deleted_group_has_no_effect(world: Any) -> None:
    world.member("g")
    shard = world.shard("g")
    world.coordinator.resign(shard.index)
    world.after(3_600_000)
    assert shard.machines == {}


def test_a_vacant_group_is_not_kept(world: Any) -> None:
    assert world.join("g", "unknown-member").value.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert "g" not in world.shard("g").machines


def test_an_exception_in_a_step_stops_the_shard_and_reloads_it_from_its_log(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.commit("g", 1)
    world.turn()
    joined = world.member("g")
    waiting = world.join("g", "", "m-2")
    shard = world.shard("g")

    def mistaken(self: Group, event: object, now_ms: int, wall_ms: int) -> list[object]:
        raise RuntimeError("a step that nobody wrote a test for")

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(Group, "step", mistaken)
        answer = world.leave("g", joined.member_id)
    assert answer.value.error is ErrorCode.NOT_COORDINATOR
    assert waiting.value.error is ErrorCode.NOT_COORDINATOR
    assert any("mistake" in line["event"] and line["shard"] == shard.index for line in logs)
    world.turn()
    assert shard.state is ShardState.READY
    assert world.offset("g") == 1
    assert world.shard("g").machines["g"].generation == joined.generation


def test_offsets_that_cannot_be_encoded_stop_the_shard(world: Any) -> None:
    shard = world.shard("g")
    answer = world.commit("g", 1 << 63)
    world.turn()
    assert answer.value is ErrorCode.NOT_COORDINATOR
    assert shard.state is ShardState.READY
    assert world.offset("g") is None


def test_requests_leave_no_litter(world: Any) -> None:
    with no_litter():
        for number in range(10):
            commit = world.commit(f"simple-{number}", number)
            world.turn()
            joined = world.member(f"group-{number}")
            world.leave(f"group-{number}", joined.member_id)
            world.turn()
            assert commit.answered
        del commit, joined


def test_a_write_timeout_is_answered_and_dependent_reads_keep_waiting() -> None:
    """CO6. As in Kafka the record may be committed later, so the state that it made stays and the shard with it."""
    toy = ToyWorld().lead()
    toy.request_flushes()
    first, second = toy.put("a", 1, 7), toy.put("a", 2, 8)
    toy.settle()
    _deadline(toy)
    assert [first.value, second.value] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    read: Any = toy.shard("a").when_committed("seven", lambda code: code.name)
    third = toy.put("a", 3, 9)
    toy.settle()
    assert not read.answered
    toy.flush()
    assert (read.value, third.value) == ("seven", ErrorCode.NONE)
    assert toy.shard("a").machines["a"].loads == 0
    assert toy.numbers() == {"a": {1: 7, 2: 8, 3: 9}}


def test_a_read_that_waits_too_long_is_answered_too() -> None:
    toy = ToyWorld().lead()
    toy.request_flushes()
    toy.put("a", 1, 7)
    toy.settle()
    _deadline(toy)
    read: Any = toy.shard("a").when_committed("seven", lambda code: code.name)
    _deadline(toy)
    assert read.value == "COORDINATOR_NOT_AVAILABLE"
    toy.flush()
    assert toy.shard("a").when_committed("seven", lambda code: code.name) == "seven"


def test_writes_of_loading_machines_are_committed_in_order_after_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loaded(self: Counter, now_ms: int, wall_ms: int) -> list[Effect]:
        record = Number(self.machine_id, 2, 8)
        self.replay(record)
        return [Append(record)]

    toy = ToyWorld().lead()
    toy.put("a", 1, 7)
    toy.settle()
    toy.request_flushes()
    toy.flush()
    monkeypatch.setattr(Counter, "loaded", loaded)
    toy.partitions[0].lead(1)
    toy.runtime.lead(0, 1)
    while toy.tick_queue:
        toy.tick_queue.pop(0)()
        toy.now_ms += 1
    first_ms = toy.deadlines.next_ms()
    assert first_ms is not None
    for call in toy.deadlines.due(first_ms):
        call()
    read: Any = toy.shard("a").when_committed("eight", lambda code: code.name)
    toy.flush()
    assert read.value == "eight"


def test_a_request_is_answered_when_an_effect_after_its_reply_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(self: Counter, event: Put, now_ms: int, wall_ms: int) -> list[Any]:
        return [Reply(event.token, ErrorCode.NONE, when_durable=False), "no effect"]

    toy = ToyWorld().lead()
    monkeypatch.setattr(Counter, "step", mistaken)
    assert toy.put("a", 1, 7).value is ErrorCode.NOT_COORDINATOR


def _deadline(toy: ToyWorld) -> None:
    toy.now_ms += COMMIT_TIMEOUT_MS
    for call in toy.deadlines.due(toy.now_ms):
        call()


def shouted(toy: ToyWorld, value: int) -> None:
    toy.shard("a").step(Counter("a"), Shout(value))
    toy.settle()


def test_co9_records_that_no_reply_waits_for_are_written_some_turns_later_or_with_the_next_that_one_does() -> None:
    world = ToyWorld().lead()
    shard, counter, log = world.shard("a"), Counter("a"), world.partitions[0].log

    def decide(value: int) -> None:
        record = Number("a", 0, value)
        counter.replay(record)
        shard.perform(counter, [Append(record)])

    decide(1)
    for _ in range(POSTPONED_CALLS):
        world.tick()
    assert log.log_end_offset == 0
    world.tick()
    assert (log.log_end_offset, world.tick_queue) == (1, [])
    decide(2)
    world.tick()
    reply = shard.submit(counter, Put(shard.token(), 1, 5), lambda code: code)
    world.tick()
    assert (reply.answered, log.log_end_offset) == (True, 3)
    data = log.read(1, 1 << 20)
    assert len(data) == int.from_bytes(data[8:12]) + 12, "one batch"
    decide(3)
    read = shard.when_committed("seen", lambda code: str(code))
    world.tick()
    assert isinstance(read, DelayedReply)
    assert (read.answered, log.log_end_offset, world.tick_queue) == (True, 4, [])
    decide(4)
    world.runtime.flush()
    world.settle()
    assert log.log_end_offset == 5


def test_co9_answers_that_bring_about_records_queue_one_call_also_while_others_are_postponed() -> None:
    world = ToyWorld(shards=2).lead()
    postponed, requested = (next(name for name in "abcdefgh" if world.shard(name).index == index) for index in (0, 1))

    def request(code: ErrorCode = ErrorCode.NONE) -> None:
        world.put(requested, 0, 1).then(request)

    request()
    record, counter = Number(postponed, 0, 1), Counter(postponed)
    world.shard(postponed).perform(counter, [Append(record)])
    for _ in range(POSTPONED_CALLS + 2):
        assert len(world.tick_queue) == 1
        world.tick()
    assert [partition.log.log_end_offset for partition in world.partitions] == [1, POSTPONED_CALLS + 2]


def test_a_message_is_sent_when_the_records_before_it_are_committed() -> None:
    toy = ToyWorld().lead()
    toy.request_flushes()
    shouted(toy, 7)
    assert toy.sent == []
    toy.flush()
    assert toy.sent == [7]


def test_a_message_waits_beyond_the_deadline_of_its_write() -> None:
    toy = ToyWorld().lead()
    toy.request_flushes()
    shouted(toy, 7)
    toy.now_ms += COMMIT_TIMEOUT_MS
    for call in toy.deadlines.due(toy.now_ms):
        call()
    assert toy.sent == []
    toy.flush()
    assert toy.sent == [7]


def test_a_shard_that_is_abandoned_sends_nothing() -> None:
    toy = ToyWorld().lead()
    toy.request_flushes()
    shouted(toy, 7)
    toy.runtime.resign(0, 1)
    toy.flush()
    assert toy.sent == []


def test_a_mistake_in_a_request_that_is_decided_without_an_event_is_answered_and_stops_its_shard(world: Any) -> None:
    """G4: as a mistake in a step."""
    shard = world.shard("g")
    waiting = world.join("g", known=True)

    def mistaken(*request: Any) -> bool:
        raise RuntimeError("nobody wrote a test for this")

    parked = shard.park(shard.machines["g"], mistaken, (), lambda code: code)
    assert parked is not None
    assert parked.value is ErrorCode.NOT_COORDINATOR
    assert waiting.answered
    world.turn()
    assert (
        world.shard("g").read(Group("g", GroupConfig()), mistaken, (), lambda code: code) is ErrorCode.NOT_COORDINATOR
    )
    world.turn()
    assert world.shard("g").state is ShardState.READY


def test_a_request_that_is_not_decided_without_an_event_leaves_nothing_behind(world: Any) -> None:
    shard, group = world.shard("g"), Group("g", GroupConfig())
    assert shard.park(group, lambda group, token: False, (), lambda code: code) is None
    assert shard.read(group, lambda group: None, (), lambda code: code) is None
    assert not shard._requests


def test_o1_a_read_without_an_event_waits_for_the_writes_before_it_and_mutes(world: Any) -> None:
    world.commit("g", 5)
    shard, group = world.shard("g"), world.shard("g").machines["g"]
    reply = shard.read(group, lambda group: "read", (), lambda code: code)
    assert reply.mutes
    assert not reply.answered
    world.turn()
    assert reply.value == "read"
    assert shard.read(group, lambda group: "again", (), lambda code: code) == "again"
