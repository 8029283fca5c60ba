"""Transactions that their producer leaves open for another process to end: two-phase commit over Kafka's own.

The second process continues with producer id and epoch and does not send InitProducerId, which would abort the
transaction; as KIP-939 does, but on any broker, so the transaction still ends by its timeout.

Laws
    A transaction that was committed is never reported as lost while its transactional id is not used again: a repeated
    EndTxn has the epoch before the present one (version 2), or the same one (version 1).
    A transaction that was aborted, by its timeout for instance, is never reported as committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rota.client.errors import BrokerError, TimedOut, TransactionAborted
from rota.client.network.attempts import RETRIED
from rota.client.network.cluster import Cluster
from rota.client.network.error_actions import error_action
from rota.client.network.targets import Node, TransactionCoordinator
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_transactions import DescribeTransactionsRequest
from rota.protocol.messages.end_txn import EndTxnRequest
from rota.protocol.messages.list_transactions import ListTransactionsRequest

END_VERSION_MAX: Final = 4  # v5 bumps the epoch (version 2)
ONGOING: Final = "Ongoing"
_NOT_OPEN: Final = frozenset(  # the answers to who wants to end a transaction that has ended otherwise
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """An open transaction whose records are all acknowledged. `version`: of its protocol, 1 or 2 (KIP-890)."""

    transactional_id: str
    producer_id: int
    epoch: int
    version: int

    @property
    def incarnation(self) -> tuple[str, int, int]:
        """What no other transaction of the id has; with version 1 only while no producer has begun with it again."""
        return self.transactional_id, self.producer_id, self.epoch


async def commit_prepared(cluster: Cluster, prepared: PreparedTransaction, timeout_ms: int | None = None) -> None:
    """Commit, or learn that it is committed. Raises TransactionAborted when it is not and cannot be, TimedOut,
    BrokerError."""
    code = await _end(cluster, prepared, committed=True, timeout_ms=timeout_ms)
    if code in _NOT_OPEN:
        raise TransactionAborted(
            f"the prepared transaction of {prepared.transactional_id} (producer {prepared.producer_id}, epoch "
            f"{prepared.epoch}) was aborted: {code.name}"
        )


async def abort_prepared(cluster: Cluster, prepared: PreparedTransaction, timeout_ms: int | None = None) -> None:
    """Abort, unless it has ended already. Raises TimedOut, BrokerError."""
    await _end(cluster, prepared, committed=False, timeout_ms=timeout_ms)


async def is_open(cluster: Cluster, prepared: PreparedTransaction) -> bool:
    """Return whether it can still be committed. Raises TimedOut, BrokerError."""
    found = await open_transaction(cluster, prepared.transactional_id, prepared.version)
    return found == prepared


async def open_transaction(cluster: Cluster, transactional_id: str, version: int) -> PreparedTransaction | None:
    """Return the open transaction of the id; None: there is none. Raises TimedOut, BrokerError."""
    what = f"describing the transaction of {transactional_id}"
    answer = await cluster.send_request_until(
        TransactionCoordinator(transactional_id),
        DescribeTransactionsRequest(transactional_ids=(transactional_id,)),
        lambda answer: (state.error_code for state in answer.transaction_states),
        what=what,
    )
    (state,) = answer.transaction_states
    code = ErrorCode.of(state.error_code)
    if code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    if code is not ErrorCode.NONE:
        raise BrokerError(code, what)
    if state.transaction_state != ONGOING:
        return None
    return PreparedTransaction(transactional_id, state.producer_id, state.producer_epoch, version)


async def open_ids(cluster: Cluster, prefix: str) -> list[str]:
    """Return the transactional ids with this prefix that have an open transaction, of all coordinators. Raises
    TimedOut, BrokerError."""
    what = f"listing the open transactions of {prefix}*"
    found: list[str] = []
    for node in sorted(cluster.metadata.brokers):
        request = ListTransactionsRequest(state_filters=(ONGOING,))
        answer = await cluster.send_request_until(Node(node), request, lambda answer: (answer.error_code,), what=what)
        if answer.error_code:
            raise BrokerError(answer.error_code, what)
        found += [state.transactional_id for state in answer.transaction_states]
    return _with_prefix(found, prefix)


def _with_prefix(ids: Iterable[str], prefix: str) -> list[str]:
    return sorted(name for name in ids if name.startswith(prefix))


async def _end(
    cluster: Cluster, prepared: PreparedTransaction, *, committed: bool, timeout_ms: int | None
) -> ErrorCode:
    """Return NONE or one of _NOT_OPEN."""
    what = f"{'committing' if committed else 'aborting'} the prepared transaction of {prepared.transactional_id}"
    answer = await cluster.send_request_until(
        TransactionCoordinator(prepared.transactional_id),
        EndTxnRequest(
            transactional_id=prepared.transactional_id,
            producer_id=prepared.producer_id,
            producer_epoch=prepared.epoch,
            committed=committed,
        ),
        lambda answer: (answer.error_code,),
        what=what,
        timeout_ms=timeout_ms,
        version_max=None if prepared.version > 1 else END_VERSION_MAX,
        version_min=END_VERSION_MAX + 1 if prepared.version > 1 else 0,
    )
    code = ErrorCode.of(answer.error_code)
    if error_action(EndTxnRequest.KEY, code) in RETRIED:
        raise TimedOut(f"{what} did not succeed in time: {code.name}")
    if code is not ErrorCode.NONE and code not in _NOT_OPEN:
        raise BrokerError(code, what)
    return code
