"""ListConfigResources, key 74, versions 0-1.

v0 client metrics alone (KIP-1000) · v1 resources of every type (KIP-1142)

The brokers and their loggers, the topics, and the groups and client metrics subscriptions that have configs.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.describe_configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata.changes import ConfigKind
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

ALL: Final = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def list_config_resources(node: Node, call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """Return the resources of the requested types; of all types when the request names none."""
    types = (request.resource_types or ALL) if call.version >= 1 else (CLIENT_METRICS,)
    if not set(types) <= set(ALL):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = node.topics
    brokers = [str(broker_id) for broker_id in sorted({*image.brokers, node.config.node_id})]
    names = {
        TOPIC: image.names(),
        BROKER: brokers,
        BROKER_LOGGER: brokers,
        CLIENT_METRICS: image.configured(ConfigKind.CLIENT_METRICS),
        GROUP: image.configured(ConfigKind.GROUPS),
    }
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(set(types))
            for name in names[kind]
        )
    )
