"""ListConfigResources, key 74, versions 0-1.

v0 client metrics alone (KIP-1000) · v1 resources of every type (KIP-1142)

This broker and the topics have configs here; broker loggers, client metrics and groups have none.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.describe_configs import BROKER, TOPIC
from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32
ALL: Final = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def list_config_resources(node: Node, call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """Return the resources of the requested types; of all types when the request names none."""
    types = (request.resource_types or ALL) if call.version >= 1 else (CLIENT_METRICS,)
    if not set(types) <= set(ALL):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names = {TOPIC: node.topics.names(), BROKER: [str(node.config.node_id)]}
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(set(types))
            for name in names.get(kind, [])
        )
    )
