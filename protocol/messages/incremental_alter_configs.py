"""IncrementalAlterConfigs, key 44, versions 0-1.

v1 flexible (KIP-339)
"""

from __future__ import annotations

from rota.protocol.messages.alter_configs import AlterConfigsResourceResponse
from rota.protocol.wire import Array, Bool, Int8, Int32, String, wire, wired


@wired
class AlterableConfig:
    """`config_operation`: 0 set, 1 delete, 2 append, 3 subtract."""

    name: str = wire(String)
    config_operation: int = wire(Int8)
    value: str | None = wire(String, nullable_since=0)


@wired
class AlterConfigsResource:
    resource_type: int = wire(Int8)
    resource_name: str = wire(String)
    configs: tuple[AlterableConfig, ...] = wire(Array(AlterableConfig), default=())


@wired
class IncrementalAlterConfigsRequest:
    """Change single configuration keys."""

    KEY, VERSIONS, FLEXIBLE = 44, range(2), 1

    resources: tuple[AlterConfigsResource, ...] = wire(Array(AlterConfigsResource), default=())
    validate_only: bool = wire(Bool, default=False)


@wired
class IncrementalAlterConfigsResponse:
    """One result for each resource."""

    KEY, VERSIONS, FLEXIBLE = 44, range(2), 1

    throttle_time_ms: int = wire(Int32, default=0)
    responses: tuple[AlterConfigsResourceResponse, ...] = wire(Array(AlterConfigsResourceResponse), default=())
