"""ApiVersions, key 18, versions 0-4.

v1 throttle time · v3 flexible, client software, features (KIP-584) · v4 features of level 0

The list is `routes.SERVES`: only what works. Produce is advertised from 0, because librdkafka decides on compression by
it (KAFKA-18659), though 0-2 are refused. Each feature has one level. group.version is finalized at level 1: the broker
speaks KIP-848; eligible.leader.replicas.version at level 1: there are eligible leader replicas (KIP-966);
transaction.version at level 2: each end of a transaction has a new epoch for clients that can (KIP-890). A version that
we do not know is answered in version 0 with UNSUPPORTED_VERSION and the list.
"""

from __future__ import annotations

import re
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from rota.protocol.registry import APIS

KEY: Final = 18
PRODUCE: Final = 0
PRODUCE_ADVERTISED_FROM: Final = 0
# name: (lowest, highest level)
FEATURES: Final = {"eligible.leader.replicas.version": (1, 1), "group.version": (1, 1), "transaction.version": (2, 2)}
FEATURES_EPOCH: Final = 0  # of the finalized levels, which never change
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")  # KIP-511


def api_versions(node: Node, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return the supported APIs with their versions, and the supported features."""
    if call.version >= 3 and not _is_named(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if call.version >= 3:
        call.software.name, call.software.version = request.client_software_name, request.client_software_version
    if call.version < 3:
        return ApiVersionsResponse(api_keys=_served())
    return ApiVersionsResponse(
        api_keys=_served(),
        supported_features=_features(call.version),
        finalized_features_epoch=FEATURES_EPOCH,
        finalized_features=_finalized(),
    )


def unsupported_version(node: Node, call: Call) -> ApiVersionsResponse:
    """Return the response to a newer client, which retries with a version from the list."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_served())


def _is_named(request: ApiVersionsRequest) -> bool:
    names = request.client_software_name, request.client_software_version
    return all(_SOFTWARE.fullmatch(name) for name in names)


def _features(version: int) -> tuple[SupportedFeatureKey, ...]:
    return tuple(
        SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
        for name, (lowest, highest) in FEATURES.items()
        if lowest or version >= 4
    )


def _finalized() -> tuple[FinalizedFeatureKey, ...]:
    return tuple(
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, (_, level) in FEATURES.items()
        if level
    )


def _served() -> tuple[ApiVersion, ...]:
    from rota.coordinator.api.routes import SERVES  # the table names this file

    return tuple(_versions(key) for key in sorted(SERVES))


def _versions(key: int) -> ApiVersion:
    versions = APIS[key].versions
    first = PRODUCE_ADVERTISED_FROM if key == PRODUCE else versions[0]
    return ApiVersion(api_key=key, min_version=first, max_version=versions[-1])
