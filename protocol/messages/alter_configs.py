"""AlterConfigs, key 33, versions 0-2.

v1 as v0 · v2 flexible. Replaces the whole configuration; IncrementalAlterConfigs changes single keys.
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int8, Int16, Int32, String, wire, wired


@wired
class AlterableConfig:
    name: str = wire(String)
    value: str | None = wire(String, nullable_since=0)


@wired
class AlterConfigsResource:
    resource_type: int = wire(Int8)
    resource_name: str = wire(String)
    configs: tuple[AlterableConfig, ...] = wire(Array(AlterableConfig), default=())


@wired
class AlterConfigsRequest:
    """Replace the configurations of these resources."""

    KEY, VERSIONS, FLEXIBLE = 33, range(3), 2

    resources: tuple[AlterConfigsResource, ...] = wire(Array(AlterConfigsResource), default=())
    validate_only: bool = wire(Bool, default=False)


@wired
class AlterConfigsResourceResponse:
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    resource_type: int = wire(Int8)
    resource_name: str = wire(String)


@wired
class AlterConfigsResponse:
    """One result for each resource."""

    KEY, VERSIONS, FLEXIBLE = 33, range(3), 2

    throttle_time_ms: int = wire(Int32, default=0)
    responses: tuple[AlterConfigsResourceResponse, ...] = wire(Array(AlterConfigsResourceResponse), default=())
