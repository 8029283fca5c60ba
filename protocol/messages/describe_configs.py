"""DescribeConfigs, key 32, versions 1-4.

v1 synonyms, source · v3 type and documentation (KIP-569) · v4 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int8, Int16, Int32, String, wire, wired


@wired
class DescribeConfigsResource:
    """`configuration_keys` None: all keys."""

    resource_type: int = wire(Int8)
    resource_name: str = wire(String)
    configuration_keys: tuple[str, ...] | None = wire(Array(String), nullable_since=0)


@wired
class DescribeConfigsRequest:
    """Ask for the configurations of topics (2) and brokers (4)."""

    KEY, VERSIONS, FLEXIBLE = 32, range(1, 5), 4

    resources: tuple[DescribeConfigsResource, ...] = wire(Array(DescribeConfigsResource), default=())
    include_synonyms: bool = wire(Bool, default=False)
    include_documentation: bool = wire(Bool, since=3, default=False)


@wired
class DescribeConfigsSynonym:
    name: str = wire(String)
    value: str | None = wire(String, nullable_since=0)
    source: int = wire(Int8)


@wired
class DescribeConfigsResourceResult:
    """`config_source`: 1 topic, 2 broker (dynamic), 3 cluster default (dynamic), 4 broker (static), 5 default."""

    name: str = wire(String)
    value: str | None = wire(String, nullable_since=0)
    read_only: bool = wire(Bool, default=False)
    config_source: int = wire(Int8, default=-1)
    is_sensitive: bool = wire(Bool, default=False)
    synonyms: tuple[DescribeConfigsSynonym, ...] = wire(Array(DescribeConfigsSynonym), default=())
    config_type: int = wire(Int8, since=3, default=0)
    documentation: str | None = wire(String, since=3, nullable_since=0, default=None)


@wired
class DescribeConfigsResult:
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    resource_type: int = wire(Int8)
    resource_name: str = wire(String)
    configs: tuple[DescribeConfigsResourceResult, ...] = wire(Array(DescribeConfigsResourceResult), default=())


@wired
class DescribeConfigsResponse:
    """One result for each resource."""

    KEY, VERSIONS, FLEXIBLE = 32, range(1, 5), 4

    throttle_time_ms: int = wire(Int32, default=0)
    results: tuple[DescribeConfigsResult, ...] = wire(Array(DescribeConfigsResult), default=())
