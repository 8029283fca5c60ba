"""The runtime hosts a machine that is no group: all that it knows of it is the contract."""

from __future__ import annotations

from tests.unit.coordinator.runtime.toy import Counter, Remind, ToyWorld

from rota.coordinator.runtime.contract import StateMachine
from rota.protocol.errors import ErrorCode


def test_a_toy_conforms() -> None:
    machine: StateMachine = Counter("a")
    assert machine.is_vacant


def test_steps_are_recorded_answered_and_replayed() -> None:
    world = ToyWorld().lead()
    answers = [world.put("a", 1, 7), world.put("b", 1, 8), world.put("a", 2, 9), world.put("b", 1, None)]
    assert not any(answer.answered for answer in answers)
    world.settle()
    assert [answer.value for answer in answers] == [ErrorCode.NONE] * 4
    assert world.numbers() == {"a": {1: 7, 2: 9}}
    again = ToyWorld(world.partitions).lead()
    assert again.numbers() == world.numbers()
    assert again.shard("a").machines["a"].loads == 1


def test_timers_fire_and_notes_are_emitted() -> None:
    world = ToyWorld().lead()
    shard, counter = world.shard("a"), Counter("a")
    waiting = shard.submit(counter, Remind(shard.token(), world.now_ms + 5), lambda code: code)
    assert [(name, note.event) for name, note in world.notes] == [("a", "Reminder is set")]
    assert not waiting.answered
    for call in world.timers.due(world.now_ms + 5):
        call()
    assert waiting.value is ErrorCode.NONE
    assert not shard.machines, "a vacant machine is dropped"


def test_records_of_an_unknown_kind_are_skipped() -> None:
    world = ToyWorld().lead()
    world.put("a", 1, 7)
    world.settle()
    world.partitions[0].append_pairs([(b"?newer", b"1"), (b"?newer", None)], 0)
    assert ToyWorld(world.partitions).lead().numbers() == {"a": {1: 7}}
