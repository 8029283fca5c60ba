"""ListTransactions, key 66, versions 0-1 (KIP-664).

v1 transactions that run longer than a time (KIP-994). Left out: version 2, a pattern of ids (KIP-1152).
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.state import TransactionValue
from rota.coordinator.transaction.transitions import UNUSED_NAMES, TransactionState
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from rota.protocol.messages.list_transactions import TransactionState as ListedTransaction

STATES: Final = frozenset(state.value for state in TransactionState) | UNUSED_NAMES


def list_transactions(
    node: Node, call: Call, request: ListTransactionsRequest
) -> ListTransactionsResponse | DelayedReply[ListTransactionsResponse]:
    """Return the transactional ids of this broker that pass all filters; states that do not exist are named.

    Delayed while records of a transactional id are being written.
    """
    if node.transactions.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    now_ms = node.wall_ms()
    response = ListTransactionsResponse(
        unknown_state_filters=tuple(name for name in request.state_filters if name not in STATES),
        transaction_states=tuple(
            ListedTransaction(
                transactional_id=transactional_id, producer_id=value.producer_id, transaction_state=value.state.value
            )
            for transactional_id, value in node.transactions.states()
            if _passes(request, value, now_ms)
        ),
    )
    return node.transactions.when_states_committed(response, lambda code: ListTransactionsResponse(error_code=code))


def _passes(request: ListTransactionsRequest, value: TransactionValue, now_ms: int) -> bool:
    if request.producer_id_filters and value.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and value.state.value not in request.state_filters:
        return False
    return request.duration_filter < 0 or now_ms - value.start_ms > request.duration_filter
