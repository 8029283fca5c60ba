"""InitProducerId, key 22, versions 0-5.

v2 flexible · v3 the id that the producer had (KIP-360) · v4 PRODUCER_FENCED · v5 TRANSACTION_ABORTABLE (KIP-890)

An idempotent producer gets a new id and epoch 0, also when it sends the id that it has. One with a transactional id
gets the id of its transactional id and a new epoch; an ongoing transaction of that id is aborted first, and the
producer retries after CONCURRENT_TRANSACTIONS. Left out: version 6 (two-phase commit, KIP-939), unstable in Kafka.
"""

from __future__ import annotations

from typing import Final

import structlog

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.transactions import fenced_code, replied
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.events import Producer
from rota.coordinator.transaction.state import ProducerReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
FENCED_SINCE: Final = 4

log = structlog.get_logger("rota.api")


def init_producer_id(
    node: Node, call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse | DelayedReply[InitProducerIdResponse]:
    """Return a new producer id with epoch 0; for a transactional id, its producer id and a new epoch."""
    error = _refusal(node, request)
    if error is not ErrorCode.NONE:
        return _refused(error)
    if request.transactional_id is None:
        return eager_tasks.start(_take(node))
    has_producer = request.producer_id != NO_PRODUCER_ID
    expected = Producer(request.producer_id, request.producer_epoch) if has_producer else None
    reply = node.transactions.init_producer(request.transactional_id, request.transaction_timeout_ms, expected)

    def response(body: ProducerReply) -> InitProducerIdResponse:
        code = fenced_code(body.error, call.version, FENCED_SINCE)
        return InitProducerIdResponse(error_code=code, producer_id=body.producer_id, producer_epoch=body.epoch)

    return replied(reply, response)


def _refusal(node: Node, request: InitProducerIdRequest) -> ErrorCode:
    known = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_PRODUCER_EPOCH
    if any(known) and not all(known):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return ErrorCode.NONE
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.transaction_timeout_ms <= node.config.transaction_max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


async def _take(node: Node) -> InitProducerIdResponse:
    try:
        producer_id = await node.producer_ids.take()
    except StoreFailed as failure:
        log.error("no producer id", cause=str(failure))
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # as Kafka: clients retry
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
