"""UpdateFeatures, key 57, versions 0-2.

v1 upgrade type instead of allow_downgrade, validate_only (KIP-584, KIP-778) · v2 one error code for all
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int8, Int16, Int32, String, wire, wired


@wired
class FeatureUpdateKey:
    feature: str = wire(String)
    max_version_level: int = wire(Int16)
    allow_downgrade: bool = wire(Bool, until=0, default=False)
    upgrade_type: int = wire(Int8, since=1, default=1)


@wired
class UpdateFeaturesRequest:
    """Set the finalized levels of features of the cluster."""

    KEY, VERSIONS, FLEXIBLE = 57, range(3), 0

    timeout_ms: int = wire(Int32, default=60000)
    feature_updates: tuple[FeatureUpdateKey, ...] = wire(Array(FeatureUpdateKey), default=())
    validate_only: bool = wire(Bool, since=1, default=False)


@wired
class UpdatableFeatureResult:
    feature: str = wire(String)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class UpdateFeaturesResponse:
    """Since v2 all updates fail when one fails."""

    KEY, VERSIONS, FLEXIBLE = 57, range(3), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    results: tuple[UpdatableFeatureResult, ...] = wire(Array(UpdatableFeatureResult), until=1, default=())
