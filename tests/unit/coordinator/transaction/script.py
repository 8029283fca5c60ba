"""A conversation with one transactional id: each call is an event, its result the reply; `sent` are the messages.

`sent_after` has for each message how many records of the log it waits for, `replied_after` the same for the last reply.
"""

from __future__ import annotations

from typing import Any

from rota.coordinator.runtime.contract import Append, Arm, Note, Reply, Send, TimerFired, Token
from rota.coordinator.transaction.events import (
    AddPartitions,
    EndTransaction,
    Event,
    ExpireIds,
    InitProducer,
    MarkersWritten,
    Producer,
    Resume,
    TopicPartition,
    VerifyPartitions,
)
from rota.coordinator.transaction.machine import Transaction
from rota.coordinator.transaction.records import decode, encode
from rota.coordinator.transaction.state import (
    Markers,
    PartitionErrors,
    ProducerReply,
    TransactionRecord,
    TransactionValue,
)
from rota.coordinator.transaction.transitions import TransactionState
from rota.protocol.errors import ErrorCode

ID = "t"
FIRST_ID, TIMEOUT_MS, WALL_MS = 1_000, 60_000, 1_700_000_000_000
DATA: TopicPartition = ("data", 0)
OTHER: TopicPartition = ("data", 1)
CONFLICT = ErrorCode.CONCURRENT_TRANSACTIONS


class Script:
    """The clocks begin at 0 and at WALL_MS. Producer ids are drawn from FIRST_ID on, one for each request that may."""

    def __init__(self) -> None:
        self.machine = Transaction(ID)
        self.now_ms, self.next_id = 0, FIRST_ID
        self.log: list[TransactionRecord] = []
        self.sent: list[Markers] = []
        self.sent_after: list[int] = []
        self.replied_after = 0
        self.timer_ms: int | None = None
        self.replies: list[Any] = []
        self.notes: list[str] = []

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms

    @property
    def value(self) -> TransactionValue:
        assert self.machine.hard is not None
        return self.machine.hard

    @property
    def state(self) -> TransactionState:
        return self.value.state

    @property
    def producer(self) -> Producer:
        return self.value.producer

    def step(self, event: Event) -> Any:
        self.replies.clear()
        self.perform(self.machine.step(event, self.now_ms, self.wall_ms))
        assert len(self.replies) == hasattr(event, "token")
        return self.replies[0] if self.replies else None

    def perform(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Append():
                    self.log.append(effect.record)
                case Reply():
                    self.replies.append(effect.body)
                    self.replied_after = len(self.log)
                case Send():
                    self.sent.append(effect.message)
                    self.sent_after.append(len(self.log))
                case Arm():
                    self.timer_ms = effect.at_ms
                case Note():
                    self.notes.append(effect.event)
                case _:
                    raise AssertionError(effect)

    def fresh_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def init(self, expected: Producer | None = None, timeout_ms: int = TIMEOUT_MS) -> ProducerReply:
        fresh_id = self.fresh_id() if self.machine.is_producer_id_needed else None
        reply: ProducerReply = self.step(
            InitProducer(token=Token(1), timeout_ms=timeout_ms, expected=expected, fresh_id=fresh_id)
        )
        return reply

    def add(self, *partitions: TopicPartition, producer: Producer | None = None, version: int = 0) -> ErrorCode:
        reply: PartitionErrors = self.step(
            AddPartitions(
                token=Token(1), producer=producer or self.producer, partitions=partitions, client_version=version
            )
        )
        return reply.error

    def verify(self, *partitions: TopicPartition, producer: Producer | None = None) -> PartitionErrors:
        reply: PartitionErrors = self.step(
            VerifyPartitions(token=Token(1), producer=producer or self.producer, partitions=partitions)
        )
        return reply

    def end(self, is_commit: bool, producer: Producer | None = None, version: int = 0) -> ProducerReply:
        fresh_id = self.fresh_id() if version == 2 and self.machine.is_producer_id_needed else None
        reply: ProducerReply = self.step(
            EndTransaction(
                token=Token(1),
                producer=producer or self.producer,
                is_commit=is_commit,
                client_version=version,
                fresh_id=fresh_id,
            )
        )
        return reply

    def written(self, *partitions: TopicPartition, producer: Producer | None = None) -> None:
        self.step(MarkersWritten(producer or self.producer, partitions))

    def expire(self, retention_ms: int) -> None:
        self.step(ExpireIds(retention_ms))

    def after(self, ms: int) -> None:
        """Move the clock; the timer fires if it is due."""
        self.now_ms += ms
        while self.timer_ms is not None and self.timer_ms <= self.now_ms:
            self.timer_ms = None
            self.step(TimerFired("timeout"))

    def lose(self, records: int) -> None:
        """Crash with only so many records committed: later ones are lost, and the messages that waited for them."""
        del self.log[records:]
        kept = [at for at, after in enumerate(self.sent_after) if after <= records]
        self.sent, self.sent_after = [self.sent[at] for at in kept], [self.sent_after[at] for at in kept]
        self.crash()

    def crash(self) -> None:
        """Load the records into a new machine, through their bytes, and let it serve."""
        self.machine, self.timer_ms = Transaction(ID), None
        for key, value in encode(self.log):
            record = decode(key, value)
            assert record is not None
            self.machine.replay(record)
        self.perform(self.machine.loaded(self.now_ms, self.wall_ms))
        self.step(Resume())


def began(*partitions: TopicPartition, version: int = 0) -> Script:
    """An ongoing transaction with these partitions, DATA by default."""
    script = Script()
    assert script.init().error is ErrorCode.NONE
    assert script.add(*(partitions or (DATA,)), version=version) is ErrorCode.NONE
    return script


def ended(is_commit: bool, version: int = 0) -> Script:
    """A transaction that is completed."""
    script = began(version=version)
    assert script.end(is_commit, version=version).error is ErrorCode.NONE
    script.written(DATA)
    return script
