"""ApiVersions, key 18, versions 0-4.

v1 throttle time · v3 flexible, client name and version, features as tags (KIP-511, KIP-584)
v4 a feature's minimum may be 0. The response header is v0 in every version.
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int16, Int32, Int64, String, wire, wired


@wired
class ApiVersionsRequest:
    """Ask for the supported APIs and versions; the first request of a connection."""

    KEY, VERSIONS, FLEXIBLE = 18, range(5), 3

    client_software_name: str = wire(String, since=3, default="")
    client_software_version: str = wire(String, since=3, default="")


@wired
class ApiVersion:
    """The versions of one API, both ends included."""

    api_key: int = wire(Int16)
    min_version: int = wire(Int16)
    max_version: int = wire(Int16)


@wired
class SupportedFeatureKey:
    """A feature that the broker supports; v3 leaves out features whose `min_version` is 0."""

    name: str = wire(String)
    min_version: int = wire(Int16)
    max_version: int = wire(Int16)


@wired
class FinalizedFeatureKey:
    """The finalized level of a feature in the cluster; valid when `finalized_features_epoch` is not -1."""

    name: str = wire(String)
    max_version_level: int = wire(Int16)
    min_version_level: int = wire(Int16)


@wired
class ApiVersionsResponse:
    """The supported APIs. A response with UNSUPPORTED_VERSION is in v0 and has the list too."""

    KEY, VERSIONS, FLEXIBLE = 18, range(5), 3

    error_code: int = wire(Int16, default=0)
    api_keys: tuple[ApiVersion, ...] = wire(Array(ApiVersion), default=())
    throttle_time_ms: int = wire(Int32, since=1, default=0)
    supported_features: tuple[SupportedFeatureKey, ...] = wire(Array(SupportedFeatureKey), since=3, tag=0, default=())
    finalized_features_epoch: int = wire(Int64, since=3, tag=1, default=-1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = wire(Array(FinalizedFeatureKey), since=3, tag=2, default=())
    zk_migration_ready: bool = wire(Bool, since=3, tag=3, default=False)
