"""One transactional id as a state machine: `step` decides, `replay` remembers. No clock, no socket, no logging.

Laws
    TXC1  `replay` alone writes the durable state. Replaying the log, or the log after compaction, gives it again.
    G4  Every token that comes in with an event goes out in exactly one Reply.
    TXC5  A transaction that was decided is completed, whatever crashes: after a load its markers are sent again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from rota.coordinator.runtime.contract import Effect, TimerFired
from rota.coordinator.transaction import end, init_producer, partitions
from rota.coordinator.transaction.events import (
    AddPartitions,
    EndTransaction,
    Event,
    ExpireIds,
    InitProducer,
    MarkersWritten,
    Resume,
    VerifyPartitions,
)
from rota.coordinator.transaction.state import Step, TransactionalId, TransactionValue
from rota.coordinator.transaction.transitions import ENDING, IDLE, TransactionState


class Transaction(TransactionalId):
    """A transactional id with its decisions. The runtime makes one per id and performs its effects in their order."""

    __slots__ = ()

    def step(self, event: Event, now_ms: int, wall_ms: int) -> list[Effect]:
        """Decide on one event. Deadlines are in `now_ms`, elapsed time; what is stored is in `wall_ms`."""
        step = Step(now_ms, wall_ms)
        match event:
            case InitProducer():
                init_producer.init_producer(self, event, step)
            case AddPartitions():
                partitions.add_partitions(self, event, step)
            case VerifyPartitions():
                partitions.verify_partitions(self, event, step)
            case EndTransaction():
                end.end_transaction(self, event, step)
            case MarkersWritten():
                self.markers_written(event.producer, event.partitions, step)
            case Resume():
                if self.is_ending:
                    self.send_markers(step)
            case ExpireIds():
                self._expire(event, step)
            case TimerFired():
                self.timer_fired(step)
            case _:
                assert_never(event)
        return step.effects

    def loaded(self, now_ms: int, wall_ms: int) -> list[Effect]:
        """Set the timer of a transaction that is ongoing. One that is ending waits for Resume."""
        step, hard = Step(now_ms, wall_ms), self.hard
        if hard is not None and hard.state is TransactionState.ONGOING:
            left_ms = hard.start_ms + hard.timeout_ms - wall_ms  # the clock of the broker that began it may be ahead
            self.begin_timeout(min(max(left_ms, 0), hard.timeout_ms), step)
        return step.effects

    def describe(self) -> TransactionValue | None:
        """Return the durable state, with the partitions whose marker is missing once the transaction is decided.

        None for an id that is not known.
        """
        hard = self.hard
        if hard is None or hard.state not in ENDING:
            return hard
        return replace(hard, partitions=tuple(partition for partition in hard.partitions if partition in self.unmarked))

    def _expire(self, event: ExpireIds, step: Step) -> None:
        hard = self.hard
        if hard is None or hard.state not in IDLE or hard.update_ms > step.wall_ms - event.retention_ms:
            return
        step.note("Transactional id expired", transactional_id=self.transactional_id)
        self.write(None, step)
