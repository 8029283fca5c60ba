"""ListConfigResources, key 74, versions 0-1.

v0 client metrics only (KIP-1000) · v1 resources of every type (KIP-1142)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, String, wire, wired


@wired
class ListConfigResourcesRequest:
    """Ask for the resources that have configurations. No types: all types."""

    KEY, VERSIONS, FLEXIBLE = 74, range(2), 0

    resource_types: tuple[int, ...] = wire(Array(Int8), since=1, default=())


@wired
class ConfigResource:
    resource_name: str = wire(String)
    resource_type: int = wire(Int8, since=1, default=16)


@wired
class ListConfigResourcesResponse:
    """The resources with type and name."""

    KEY, VERSIONS, FLEXIBLE = 74, range(2), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    config_resources: tuple[ConfigResource, ...] = wire(Array(ConfigResource), default=())
