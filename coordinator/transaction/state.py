"""The durable state of a transactional id, the replies of its steps, and the base of the machine.

Laws
    TXC1  `replay` alone writes the durable state, in normal work as on loading; a record is the whole of it.
    TXC2  The epoch of a producer id only grows, and a client is never given the last one, so that it can be fenced.
    TXC3  A decision (PrepareCommit, PrepareAbort) is sent to the partitions when its record is committed, not before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Final

from rota.coordinator.runtime.contract import Append, Arm, Effect, Note, Reply, Send, Token
from rota.coordinator.transaction.events import Producer, TopicPartition
from rota.coordinator.transaction.transitions import ENDING, TRANSITIONS, TransactionState
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 32_767
EPOCHS_END: Final = EPOCH_MAX - 1  # the last epoch that a client is given; only a marker has a higher one
BUMPING: Final = 2  # the transaction version from which each end of a transaction has a new epoch (KIP-890)
TIMEOUT: Final = "timeout"  # the key of the timer

# ---- records


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionValue:
    """The durable state. Times are in ms since the epoch; `start_ms` is -1 before the first transaction."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[TopicPartition, ...] = ()
    update_ms: int
    start_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID  # after the end of this transaction; unless the epochs end, NO_PRODUCER_ID
    client_version: int = 0

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no further epoch for a client."""
        return self.producer_epoch >= EPOCHS_END


@dataclass(slots=True)
class TransactionRecord:
    transactional_id: str
    value: TransactionValue | None


# ---- replies and messages


@dataclass(slots=True)
class ProducerReply:
    """The body of the replies to InitProducerId and EndTxn."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH


@dataclass(slots=True)
class PartitionErrors:
    """The body of the replies to AddPartitionsToTxn: one error for all, or the partitions with errors of their own."""

    error: ErrorCode
    partitions: dict[TopicPartition, ErrorCode] = field(default_factory=dict)


Body = ProducerReply | PartitionErrors


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """The message of a decided transaction: write these markers, then step MarkersWritten."""

    transactional_id: str
    producer: Producer
    is_commit: bool
    client_version: int
    partitions: tuple[TopicPartition, ...]


# ---- the machine's base


@dataclass(slots=True)
class Step:
    """One step: the times at which it happens, and its effects."""

    now_ms: int  # elapsed time, for deadlines
    wall_ms: int  # since the epoch, for what is stored
    effects: list[Effect] = field(default_factory=list)

    def reply(self, token: Token, body: Body) -> None:
        """Answer from the state: the reply waits until that state is durable."""
        self.effects.append(Reply(token, body))

    def note(self, event: str, **fields: object) -> None:
        """Add a line to the log."""
        self.effects.append(Note(event, fields))


class TransactionalId:
    """What `replay` writes, and what is rebuilt after a load."""

    __slots__ = ("_timer_ms", "deadline_ms", "hard", "last_epoch", "transactional_id", "unmarked")

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.hard: TransactionValue | None = None
        self.last_epoch = NO_EPOCH  # the one before, for a retry of InitProducerId; Kafka does not store it either
        self.unmarked: set[TopicPartition] = set()  # the partitions whose marker is not known to be written
        self.deadline_ms = 0  # of the transaction that is ongoing
        self._timer_ms: int | None = None  # when the timer fires

    @property
    def machine_id(self) -> str:
        """The id under which the runtime hosts this machine."""
        return self.transactional_id

    @property
    def is_vacant(self) -> bool:
        """Return True if there is no state: never initialized, or expired."""
        return self.hard is None

    @property
    def is_ending(self) -> bool:
        """Return True if the transaction is decided and markers may be missing."""
        return self.hard is not None and self.hard.state in ENDING

    @property
    def is_producer_id_needed(self) -> bool:
        """Return True if InitProducerId, or the end of a transaction, needs a new producer id."""
        return self.hard is None or self.hard.is_exhausted

    def replay(self, record: TransactionRecord) -> None:
        """Apply one record to the durable state."""
        self.hard = value = record.value
        self.unmarked = set(value.partitions) if value is not None and value.state in ENDING else set()

    def write(self, value: TransactionValue | None, step: Step) -> None:
        """Append this value and replay it."""
        if self.hard is not None and value is not None:
            assert value.state in TRANSITIONS[self.hard.state], f"{self.hard.state} to {value.state}"
        record = TransactionRecord(self.transactional_id, value)
        self.replay(record)
        step.effects.append(Append(record))

    def prepare(
        self, hard: TransactionValue, is_commit: bool, version: int, step: Step, *, next_id: int = NO_PRODUCER_ID
    ) -> None:
        """Decide the transaction (TXC3): write the decision and send the markers when it is committed."""
        bumps = version >= BUMPING
        if bumps:
            self.last_epoch = hard.producer_epoch
        self.write(
            replace(
                hard,
                state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
                producer_epoch=hard.producer_epoch + bumps,
                start_ms=hard.start_ms if hard.state is TransactionState.ONGOING else step.wall_ms,
                update_ms=step.wall_ms,
                previous_producer_id=hard.producer_id,
                next_producer_id=next_id,
                client_version=version,
            ),
            step,
        )
        self.send_markers(step)

    def send_markers(self, step: Step) -> None:
        """Send the markers that are not known to be written."""
        hard = self.hard
        assert hard is not None
        assert hard.state in ENDING
        missing = tuple(partition for partition in hard.partitions if partition in self.unmarked)
        step.effects.append(
            Send(
                Markers(
                    transactional_id=self.transactional_id,
                    producer=hard.producer,
                    is_commit=hard.state is TransactionState.PREPARE_COMMIT,
                    client_version=hard.client_version,
                    partitions=missing,
                )
            )
        )

    def markers_written(self, producer: Producer, partitions: Iterable[TopicPartition], step: Step) -> None:
        """Complete the transaction when no marker is missing. What belongs to another epoch changes nothing."""
        hard = self.hard
        if hard is None or hard.state not in ENDING or hard.producer != producer:
            return
        self.unmarked.difference_update(partitions)
        if self.unmarked:
            return
        is_commit, rotates = hard.state is TransactionState.PREPARE_COMMIT, hard.next_producer_id != NO_PRODUCER_ID
        self.write(
            replace(
                hard,
                state=TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
                partitions=(),
                producer_id=hard.next_producer_id if rotates else hard.producer_id,
                producer_epoch=0 if rotates else hard.producer_epoch,
                previous_producer_id=hard.producer_id,
                next_producer_id=NO_PRODUCER_ID,
                update_ms=step.wall_ms,
            ),
            step,
        )

    # ---- the timeout

    def begin_timeout(self, timeout_ms: int, step: Step) -> None:
        """Set the deadline of the transaction. A timer that fires before it is set again then."""
        self.deadline_ms = step.now_ms + timeout_ms
        if self._timer_ms is None or self._timer_ms > self.deadline_ms:
            self._arm(step)

    def timer_fired(self, step: Step) -> None:
        """Abort the transaction if its time is over; the producer is fenced by the new epoch."""
        self._timer_ms = None
        hard = self.hard
        if hard is None or hard.state is not TransactionState.ONGOING:
            return
        if step.now_ms < self.deadline_ms:
            self._arm(step)
            return
        ids = {"transactional_id": self.transactional_id, "producer_id": hard.producer_id}
        step.note("Aborting a transaction that timed out", **ids, timeout_ms=hard.timeout_ms)
        self.fence(hard, step)

    def fence(self, hard: TransactionValue, step: Step) -> None:
        """Abort the ongoing transaction with a new epoch, which no client gets."""
        self.prepare(hard, False, BUMPING, step)

    def _arm(self, step: Step) -> None:
        self._timer_ms = self.deadline_ms
        step.effects.append(Arm(TIMEOUT, self.deadline_ms))
