"""InitProducerId, key 22, versions 0-5.

v2 flexible · v3 the id that the producer had (KIP-360) · v4 PRODUCER_FENCED · v5 TRANSACTION_ABORTABLE (KIP-890)

An idempotent producer gets a new id and epoch 0, also when it sends the id that it has.
Left out: transactions. A transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED: of the codes that all
clients take as final it is the one that says "not with this transactional id"; a retriable code would make them retry
for ever. Its checks come first, as in Kafka: an empty id is INVALID_REQUEST, a timeout beyond
transaction.max.timeout.ms INVALID_TRANSACTION_TIMEOUT.
"""

from __future__ import annotations

from typing import Final

import structlog

from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1

log = structlog.get_logger("rota.api")


def init_producer_id(
    node: Node, call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse | DelayedReply[InitProducerIdResponse]:
    """Return a new producer id with epoch 0."""
    error = _refusal(node, request)
    if error is not ErrorCode.NONE:
        return _refused(error)
    if request.transactional_id is not None:
        log.info("transactions are not there yet", transactional_id=request.transactional_id, client_id=call.client_id)
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return eager.start(_take(node))


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
