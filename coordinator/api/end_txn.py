"""EndTxn, key 26, versions 0-5.

v2 PRODUCER_FENCED · v3 flexible · v4 TRANSACTION_ABORTABLE (KIP-890) · v5 a new epoch at each end, in the response
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.transactions import fenced_code, replied
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.events import Producer
from rota.coordinator.transaction.state import BUMPING, ProducerReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE: Final = 2
BUMPING_SINCE: Final = 5


def end_txn(node: Node, call: Call, request: EndTxnRequest) -> EndTxnResponse | DelayedReply[EndTxnResponse]:
    """Commit or abort the transaction. The response says that this is decided; markers are written afterwards."""
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    reply = node.transactions.end_transaction(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        is_commit=request.committed,
        client_version=BUMPING if call.version >= BUMPING_SINCE else 0,
    )

    def response(body: ProducerReply) -> EndTxnResponse:
        code = fenced_code(body.error, call.version, FENCED_SINCE)
        return EndTxnResponse(error_code=code, producer_id=body.producer_id, producer_epoch=body.epoch)

    return replied(reply, response)
