"""UpdateFeatures, key 57, versions 0-2.

v1 kind of change instead of the permission to go down, trial runs (KIP-584, KIP-778) · v2 one error for all

Each feature of this broker has a single level, so a request either changes nothing or is refused. Of several updates of
one feature the last one counts, as in Kafka.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.api_versions import FEATURES
from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE_TYPES: Final = (1, 2, 3)  # upgrade, safe downgrade, unsafe downgrade


def update_features(node: Node, call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Return success for all updates, or the error of the first invalid one."""
    for update in {update.feature: update for update in request.feature_updates}.values():
        why = _update_error(node, update)
        if why is not None:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message=message(
                    f"The update failed for all features since the following feature had an error: {why}"
                ),
            )
    results = tuple(
        UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name)
        for update in request.feature_updates
    )
    return UpdateFeaturesResponse(results=results if call.version <= 1 else ())


def _update_error(node: Node, update: FeatureUpdateKey) -> str | None:
    why = _error_reason(node, update)
    return why and f"Invalid update version {update.max_version_level} for feature {update.feature}. {why}"


def _error_reason(node: Node, update: FeatureUpdateKey) -> str | None:
    level, levels = update.max_version_level, FEATURES.get(update.feature)
    if update.upgrade_type not in UPGRADE_TYPES:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if levels is None:
        does_not = "does not support this feature."
        return f"Local controller {node.config.node_id} {does_not}" if level else f"Feature {update.feature} not found."
    if not levels[0] <= level <= levels[1]:
        return f"Local controller {node.config.node_id} only supports versions {levels[0]}-{levels[1]}"
    return None
