"""One producer's transactions: which calls fit the state, which partitions are in it, what an error means. Pure.

Laws
    A record belongs to the transaction in which its `send` began, or is refused.
    After a failure the transaction can only be aborted; after a fatal one the producer can only be closed.
    A commit whose outcome is not known can only be repeated: it is never followed by an abort.
    Version 1 (before transaction.version 2, KIP-890): no batch of a partition is sent before the coordinator has added
    the partition; after an abort with a batch that failed, the epoch is bumped before the next transaction.
    Version 2: the brokers add the partitions, and each end of a transaction bumps the epoch.
    A prepared transaction is not ended by its producer, which can only be closed.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rota.client.errors import (
    BrokerError,
    IllegalUse,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
    TransactionError,
    TransactionFailed,
    Unsupported,
)
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.producer.prepared import PreparedTransaction
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode

FEATURE: Final = "transaction.version"
BROKERS_ADD: Final = 2  # the version since which brokers add partitions and bump epochs
_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_NEW_IDENTITY: Final = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
_FATAL_FOR_WRITES: Final = frozenset(  # other errors of Produce concern the transaction only
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
    }
)


class TransactionState(Enum):
    """The state of the producer's transactions."""

    UNINITIALIZED = "it has no producer id"
    READY = "no transaction is open"
    OPEN = "records are sent"
    COMMITTING = "the commit waits for deliveries"
    COMMIT_SENT = "the coordinator may have decided the commit"
    ABORTING = "the abort waits for responses, or was sent"
    ABORTABLE = "it has failed and must be aborted"
    PREPARED = "all is delivered, and another process ends it"
    FAILED = "the producer must be closed"


S = TransactionState
ABORT_PENDING: Final = frozenset({S.ABORTING, S.ABORTABLE})


class TransactionMachine:
    """The transactions of one transactional id.

    `number` counts the transactions. `version` is 1 or 2. `added`: the partitions that the coordinator has (version 2:
    that were sent to). `pending`: those that must be added before their batches are sent. `error`: the failure in
    ABORTABLE and FAILED. `needs_new_epoch`: version 1 bumps the epoch after the abort.
    """

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.state = S.UNINITIALIZED
        self.number = 0
        self.version = 1
        self.producer = (-1, -1)
        self.added: set[TopicPartition] = set()
        self.pending: dict[TopicPartition, None] = {}
        self.is_begun_at_coordinator = False
        self.needs_new_epoch = False
        self.error: TransactionError | None = None

    # ---- identity

    def identified(self, producer: tuple[int, int], version: int) -> None:
        """The coordinator has assigned a producer id and epoch. The version is fixed by the first identity."""
        if self.state is S.UNINITIALIZED:
            self.version = version
            self.state = S.READY
        self.producer = producer
        self.needs_new_epoch = False

    # ---- sending

    def begin(self) -> None:
        """Open a transaction. Raises IllegalUse, TransactionFailed."""
        self._require(S.READY)
        self.state = S.OPEN
        self.number += 1

    def check_send(self, number: int | None = None) -> None:
        """Check that records may be sent now, with `number` in that transaction. Raises as `begin`, and
        TransactionAbortable."""
        self.check_number(number)
        self._require(S.OPEN)

    def check_number(self, number: int | None) -> None:
        """Check that no other transaction has begun since that one. Raises IllegalUse."""
        if number is not None and number != self.number:
            raise IllegalUse(f"the transaction of {self.transactional_id} ended while a call for it waited")

    def send(self, partition: TopicPartition) -> None:
        """A batch of the partition begins."""
        if self.version >= BROKERS_ADD:
            self.added.add(partition)
            self.is_begun_at_coordinator = True
        elif partition not in self.added:
            self.pending[partition] = None

    def is_sendable(self, partition: TopicPartition) -> bool:
        """Whether batches of the partition may go on the wire."""
        return partition in self.added

    def partitions_added(self, partitions: tuple[TopicPartition, ...]) -> None:
        """The coordinator has added the partitions."""
        self.added.update(partitions)
        for partition in partitions:
            self.pending.pop(partition, None)

    def coordinator_request_sent(self) -> None:
        """A request that adds partitions or offsets is sent: from now on the transaction must be ended there."""
        self.is_begun_at_coordinator = True

    # ---- failures

    def fail(self, cause: KafkaError) -> bool:
        """Note a failure of the transaction. Return whether it is the first failure, or the first fatal one."""
        error = transaction_error(self.transactional_id, cause)
        is_fatal = isinstance(error, TransactionFailed)
        if self.state is S.FAILED or (not is_fatal and self.state not in (S.OPEN, S.COMMITTING, S.COMMIT_SENT)):
            return False
        self.state, self.error = (S.FAILED if is_fatal else S.ABORTABLE), error
        return True

    # ---- end

    def committing(self) -> None:
        """A commit begins. Raises IllegalUse, TransactionError."""
        if self.state is not S.COMMIT_SENT:  # a repeated commit, whose outcome is not known
            self._require(S.OPEN)
            self.state = S.COMMITTING

    def reopened(self) -> None:
        """The commit was given up before it was sent."""
        if self.state is S.COMMITTING:
            self.state = S.OPEN

    def commit_sent(self) -> None:
        """The commit is about to be sent. Raises the transaction's failure."""
        self.raise_error()
        self.state = S.COMMIT_SENT

    def prepared(self) -> PreparedTransaction | None:
        """All records are delivered, and the transaction is left open; None: there is none at the coordinator. Raises
        the transaction's failure, IllegalUse."""
        self._require(S.OPEN)
        self.state = S.PREPARED
        if not self.is_begun_at_coordinator:
            return None
        return PreparedTransaction(self.transactional_id, *self.producer, self.version)

    def aborting(self) -> None:
        """An abort begins. Raises IllegalUse, TransactionFailed."""
        if self.state not in ABORT_PENDING:
            self._require(S.OPEN)
        self.state = S.ABORTING

    def ended(self, producer: tuple[int, int] | None) -> None:
        """The coordinator has ended the transaction. `producer`: the identity for the next one (version 2)."""
        if self.state is not S.FAILED:
            self.state, self.error = S.READY, None
        if producer is not None and producer[0] >= 0:
            self.producer = producer
        self.added.clear()
        self.pending.clear()
        self.is_begun_at_coordinator = False

    @property
    def is_in_transaction(self) -> bool:
        """Whether this producer has to end a transaction, or its end is under way."""
        return self.state not in (S.UNINITIALIZED, S.READY, S.PREPARED, S.FAILED)

    def raise_error(self) -> None:
        """Raise the failure of the transaction or of the producer, if there is one."""
        if self.error is not None:
            raise type(self.error)(str(self.error)) from self.error.__cause__

    def _require(self, state: TransactionState) -> None:
        if self.state is state:
            return
        self.raise_error()
        raise IllegalUse(f"transactional id {self.transactional_id}: {_ADVICE[self.state]}")


_ADVICE: Final = {
    S.UNINITIALIZED: "the producer was not started",
    S.READY: "no transaction is open: `async with producer.transaction()`, or await begin_transaction()",
    S.OPEN: "a transaction is open already: commit or abort it first",
    S.COMMITTING: "the transaction is being committed",
    S.COMMIT_SENT: "the outcome of the commit is not known: await commit_transaction() again",
    S.ABORTING: "the transaction is being aborted: await abort_transaction()",
    S.ABORTABLE: "the transaction has failed: abort it",
    S.PREPARED: "the transaction is prepared for another process: close the producer",
    S.FAILED: "the producer has failed: close it",
}


def transaction_error(transactional_id: str, cause: KafkaError) -> TransactionError:
    """Return the error of a transaction for the failure of a record or of a request: by its type, whether the
    transaction can be aborted or the producer must be closed."""
    if isinstance(cause, TransactionError):
        return cause
    root = cause
    while isinstance(root.__cause__, KafkaError) and not isinstance(root, BrokerError):
        root = root.__cause__
    code = root.code if isinstance(root, BrokerError) else ErrorCode.NONE
    if code in _FATAL_FOR_WRITES or isinstance(root, Unsupported):
        return _fatal(transactional_id, code, cause)
    return _with_cause(TransactionAbortable(f"the transaction of {transactional_id} must be aborted: {cause}"), cause)


def is_new_identity_needed(why: KafkaError) -> bool:
    """Whether the coordinator does not know the producer id any more, so that there is nothing to abort."""
    return isinstance(why.__cause__, BrokerError) and why.__cause__.code in _NEW_IDENTITY


def response_error(transactional_id: str, api: int, failure: BrokerError) -> TransactionError:
    """Return the error for a code that ended the requests to a coordinator."""
    if failure.code in _FENCED or error_action(api, failure.code) is ErrorAction.FATAL:
        return _fatal(transactional_id, failure.code, failure)
    text = f"the transaction of {transactional_id} must be aborted: {failure}"
    return _with_cause(TransactionAbortable(text), failure)


def _fatal(transactional_id: str, code: ErrorCode, cause: KafkaError) -> TransactionError:
    if code in _FENCED:
        text = f"another producer has the transactional id {transactional_id}, or its transaction timed out: {cause}"
        return _with_cause(ProducerFenced(text), cause)
    return _with_cause(TransactionFailed(f"transactional id {transactional_id}: {cause}"), cause)


def _with_cause(error: TransactionError, cause: KafkaError) -> TransactionError:
    error.__cause__ = cause
    return error
