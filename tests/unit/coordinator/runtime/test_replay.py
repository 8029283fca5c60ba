"""G5: replaying a log gives the state that was written, in slices of any size and after a compaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.unit.coordinator.runtime.toy import Counter, Number, Texts

from rota.coordinator.group.machine import Group
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.runtime import replay as replay_module
from rota.coordinator.runtime.contract import Encoded, Hosting, RecordType
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


@dataclass(slots=True)
class Deadline(Number):
    """A record of another type, in the same topic."""


class TwoTypes(Texts):
    """Keys that begin with `!` are those of a Deadline."""

    def encode(self, records: Iterable[Number]) -> list[Encoded]:
        marked = [
            replace(record, name=f"!{record.name}") if isinstance(record, Deadline) else record for record in records
        ]
        return super().encode(marked)

    def decode(self, key: bytes, value: bytes | None) -> Number | None:
        found = super().decode(key.removeprefix(b"!"), value)
        if found is None or not key.startswith(b"!"):
            return found
        return Deadline(found.name, found.slot, found.value)


class Reminder(Counter):
    """The machine of Deadlines."""


def test_each_record_type_has_its_own_machines() -> None:
    codec, log = TwoTypes(), MemoryLog(LogConfig())
    hosting: Hosting[Counter] = Hosting(
        "two",
        codec,
        {
            Number: RecordType(lambda record: record.name, Counter),
            Deadline: RecordType(lambda record: record.name.upper(), Reminder),
        },
    )
    log.append_pairs(codec.encode([Number("a", 1, 7), Deadline("b", 2, 8)]), leader_epoch=0, now_ms=0)
    replay = Replay(hosting, {})
    while not replay.advance(log, log.log_end_offset):
        pass
    found = {name: (type(machine), machine.slots) for name, machine in replay.machines.items()}
    assert found == {"a": (Counter, {1: 7}), "B": (Reminder, {2: 8})}


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
    key_of_a_newer_group = (99).to_bytes(2, "big") + b"\x00\x01g"
    world.partitions[index].append_pairs([(key_of_a_newer_group, b"\x00\x00")], world.now_ms)
    world.start()
    assert world.offset("g") == 7


def test_an_empty_log_is_read_at_once(world: Any) -> None:
    replay = Replay(world.coordinator.hosting, dict[str, Group]())
    assert replay.advance(world.partitions[0].log, 0)
    assert not replay.machines
