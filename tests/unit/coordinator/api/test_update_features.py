"""Codes and words are those of Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.update_features import update_features
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse


def send_request(version: int, *updates: tuple[str, int, int]) -> UpdateFeaturesResponse:
    keys = tuple(
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates
    )
    reply = World().serve(update_features, UpdateFeaturesRequest(feature_updates=keys), version)
    assert isinstance(reply, UpdateFeaturesResponse)
    return reply


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (("nope", 1, 1), "version 1 for feature nope. Local controller 0 does not support this feature."),
        (("nope", 0, 1), "version 0 for feature nope. Feature nope not found."),
        (("nope", -1, 3), "version -1 for feature nope. A feature version cannot be less than 0."),
        (("group.version", 2, 1), "version 2 for feature group.version. Local controller 0 only supports versions 1-1"),
        (("group.version", 0, 9), "version 0 for feature group.version. The controller does not support the given upg"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_unsupported_feature_updates_are_refused(version: int, update: tuple[str, int, int], why: str) -> None:
    reply = send_request(version, ("group.version", 1, 1), update)
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert reply.error_message is not None
    assert reply.error_message.startswith("The update failed for all features since the following feature had an error")
    assert why in reply.error_message
    assert reply.results == ()


def test_an_update_to_the_current_level_succeeds() -> None:
    (result,) = send_request(1, ("group.version", 1, 1)).results
    assert (result.feature, result.error_code) == ("group.version", 0)
    assert send_request(2, ("group.version", 1, 1)).results == ()
    assert send_request(2).error_code == 0


def test_of_several_updates_of_a_feature_the_last_one_counts() -> None:
    wrong, right = ("group.version", 9, 1), ("group.version", 1, 1)
    reply = send_request(1, wrong, right)
    assert [(result.feature, result.error_code) for result in reply.results] == [("group.version", 0)] * 2
    assert send_request(1, right, wrong).error_code == ErrorCode.INVALID_UPDATE_VERSION
