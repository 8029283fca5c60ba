"""AddOffsetsToTxn, key 25, versions 0-4.

v2 PRODUCER_FENCED · v3 flexible · v4 TRANSACTION_ABORTABLE (KIP-890)

The partition of `__consumer_offsets` that has the group's offsets becomes a partition of the transaction.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.transactions import fenced_code, replied
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.events import Producer
from rota.coordinator.transaction.state import PartitionErrors
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE: Final = 2


def add_offsets_to_txn(
    node: Node, call: Call, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | DelayedReply[AddOffsetsToTxnResponse]:
    """Add the group's partition; the first partition begins the transaction."""
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    producer = Producer(request.producer_id, request.producer_epoch)
    partition = CONSUMER_OFFSETS, node.groups.partition_of(request.group_id)

    def response(body: PartitionErrors) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=fenced_code(body.error, call.version, FENCED_SINCE))

    return replied(
        node.transactions.add_partitions(request.transactional_id, producer, (partition,), client_version=0), response
    )
