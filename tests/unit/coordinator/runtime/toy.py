"""A state machine that is no group, and a world that hosts it: counters by name, each with slots that hold a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.replica.partition import Partition
from rota.coordinator.runtime.contract import (
    Append,
    Arm,
    Effect,
    Encoded,
    Hosting,
    Note,
    RecordType,
    Reply,
    Send,
    TimerFired,
    Token,
)
from rota.coordinator.runtime.coordinator import CoordinatorRuntime
from rota.coordinator.runtime.shard import Shard
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.timers import TimerHeap
from rota.protocol.errors import ErrorCode

SEGMENT_BYTES = 2_000  # small: all but the last segment are compacted


@dataclass(slots=True)
class Number:
    """The record of one slot."""

    name: str
    slot: int
    value: int | None


@dataclass(slots=True)
class Put:
    """Set a slot; None removes it."""

    token: Token
    slot: int
    value: int | None


@dataclass(slots=True)
class Remind:
    """Answer when the timer fires at `at_ms`."""

    token: Token
    at_ms: int


@dataclass(slots=True)
class Shout:
    """Store the value in slot 0 and send it."""

    value: int


@dataclass(slots=True)
class Tick:
    """For all counters."""


@dataclass(slots=True, eq=False)
class Counter:
    """Conforms to `contract.StateMachine`."""

    machine_id: str
    slots: dict[int, int] = field(default_factory=dict)
    ticks: int = 0
    waits: Token | None = None
    loads: int = 0

    @property
    def is_vacant(self) -> bool:
        return not self.slots and self.waits is None

    def step(self, event: Any, now_ms: int, wall_ms: int) -> list[Effect]:
        match event:
            case Put(token, slot, value):
                record = Number(self.machine_id, slot, value)
                self.replay(record)
                return [Append(record), Reply(token, ErrorCode.NONE)]
            case Remind(token, at_ms):
                self.waits = token
                return [Arm("reminder", at_ms), Note("Reminder is set", {"name": self.machine_id})]
            case TimerFired(key):
                assert key == "reminder"
                assert self.waits is not None
                token, self.waits = self.waits, None
                return [Reply(token, ErrorCode.NONE, when_durable=False)]
            case Shout(value):
                record = Number(self.machine_id, 0, value)
                self.replay(record)
                return [Append(record), Send(value)]
            case Tick():
                self.ticks += 1
        return []

    def replay(self, record: Number) -> None:
        if record.value is None:
            self.slots.pop(record.slot, None)
        else:
            self.slots[record.slot] = record.value

    def loaded(self, now_ms: int, wall_ms: int) -> list[Effect]:
        self.loads += 1
        return []

    def describe(self) -> dict[int, int]:
        return dict(self.slots)


class Texts:
    """Records as text; counts what it decodes."""

    def __init__(self) -> None:
        self.decoded = 0

    def encode(self, records: Iterable[Number]) -> list[Encoded]:
        return [
            (f"{record.name}/{record.slot}".encode(), None if record.value is None else str(record.value).encode())
            for record in records
        ]

    def decode(self, key: bytes, value: bytes | None) -> Number | None:
        self.decoded += 1
        if key.startswith(b"?"):
            return None
        name, _, slot = key.decode().partition("/")
        return Number(name, int(slot), None if value is None else int(value))


class ToyWorld:
    """A runtime over partitions that may be shared with another one."""

    def __init__(self, partitions: list[Partition] | None = None, shards: int = 1) -> None:
        config = LogConfig(compact=True, delete=False, segment_bytes=SEGMENT_BYTES)
        self.deadlines = TimerHeap()  # of waits for commits
        self.partitions = partitions or [
            Partition("numbers", bytes(16), index, 0, MemoryLog(config), timers=self.deadlines)
            for index in range(shards)
        ]
        self.now_ms = 1_000_000
        self.tick_queue: list[Callable[[], None]] = []
        self.notes: list[tuple[str, Note]] = []
        self.sent: list[int] = []
        self.timers, self.codec = TimerHeap(), Texts()
        self.runtime = CoordinatorRuntime[Counter](
            Hosting("counter", self.codec, {Number: RecordType(lambda record: record.name, Counter)}),
            shards=len(self.partitions),
            partition=self.partitions.__getitem__,
            timers=self.timers,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
            tick_queue=self.tick_queue.append,
            emit_event=lambda name, note: self.notes.append((name, note)),
            send=lambda shard, message: self.sent.append(message),
        )

    def request_flushes(self) -> None:
        """From now on records are committed by `flush`."""
        for partition in self.partitions:
            partition.configure(replace(partition.log.config, flush_messages=1))

    def flush(self) -> None:
        for partition in self.partitions:
            partition.log.flush()
            partition.flushed()

    def tick(self) -> None:
        """Run what the end of one loop tick runs, and nothing that it brings about."""
        calls, self.tick_queue[:] = list(self.tick_queue), []
        for call in calls:
            call()

    def settle(self) -> None:
        while self.tick_queue:
            self.tick()

    def lead(self, epoch: int = 0) -> ToyWorld:
        for index, partition in enumerate(self.partitions):
            partition.lead(epoch)
            self.runtime.lead(index, epoch)
        self.settle()
        return self

    def shard(self, name: str) -> Shard[Counter]:
        shard = self.runtime.ready(name)
        assert isinstance(shard, Shard)
        return shard

    def put(self, name: str, slot: int, value: int | None) -> DelayedReply[Any]:
        shard = self.shard(name)
        counter = shard.machines.get(name) or Counter(name)
        return shard.submit(counter, Put(shard.token(), slot, value), lambda code: code)

    def numbers(self) -> dict[str, dict[int, int]]:
        """The durable state of all counters, whoever leads."""
        shards = self.runtime.shards
        return {name: dict(counter.slots) for shard in shards for name, counter in shard.machines.items()}
