"""UnregisterBroker, key 64, version 0.

A broker that has stopped is forgotten: DescribeCluster shows it no more as a fenced one. A running broker would
register again at once: it is refused.
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.registration import forget
from rota.coordinator.metadata.store import BadVersion, NoNode, StoreFailed
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def unregister_broker(
    node: Node, call: Call, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse | DelayedReply[UnregisterBrokerResponse]:
    """Delete what the cluster knows of a broker that is down (RG3)."""
    if request.broker_id in node.topics.brokers:
        return _still_runs(request.broker_id)
    return eager_tasks.start(_forget(node, request.broker_id))


async def _forget(node: Node, broker_id: int) -> UnregisterBrokerResponse:
    try:
        await forget(node.topics.store, broker_id)
    except NoNode:
        why = f"Broker ID {broker_id} is not currently registered"
        return _refused(ErrorCode.BROKER_ID_NOT_REGISTERED, why)
    except BadVersion:
        return _still_runs(broker_id)
    except StoreFailed as failure:
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
    return UnregisterBrokerResponse(error_message="")


def _still_runs(broker_id: int) -> UnregisterBrokerResponse:
    why = f"Broker {broker_id} is registered: stop it first, or wait for the end of its session"
    return _refused(ErrorCode.INVALID_REQUEST, why)


def _refused(code: ErrorCode, why: str) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=message(why))
