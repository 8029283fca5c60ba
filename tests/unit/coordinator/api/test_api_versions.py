from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.api_versions import api_versions, unsupported_version
from rota.coordinator.api.node import Call
from rota.coordinator.api.routes import SERVES
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.registry import APIS


def send_request(version: int, name: str = "tests", software_version: str = "1.0") -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    reply = World().serve(api_versions, request, version)
    assert isinstance(reply, ApiVersionsResponse)
    return reply


def test_only_apis_that_are_served_are_advertised() -> None:
    advertised = {api.api_key: (api.min_version, api.max_version) for api in send_request(4).api_keys}
    assert set(advertised) == set(SERVES)
    for key, (first, last) in advertised.items():
        versions = APIS[key].versions
        assert last == versions[-1]
        assert first == (0 if key == 0 else versions[0])


def test_produce_is_advertised_from_0_so_that_librdkafka_compresses() -> None:
    (produce,) = [api for api in send_request(0).api_keys if api.api_key == 0]
    assert produce.min_version == 0


@pytest.mark.parametrize("version", [3, 4])
def test_each_feature_is_finalized_at_its_level(version: int) -> None:
    reply = send_request(version)
    assert [(each.name, each.min_version_level, each.max_version_level) for each in reply.finalized_features] == [
        ("eligible.leader.replicas.version", 1, 1),
        ("group.version", 1, 1),
        ("transaction.version", 2, 2),
    ]
    assert reply.finalized_features_epoch == 0
    supported = {each.name: (each.min_version, each.max_version) for each in reply.supported_features}
    assert supported == {
        "eligible.leader.replicas.version": (1, 1),
        "group.version": (1, 1),
        "transaction.version": (2, 2),
    }


def test_a_version_we_do_not_know_gets_the_list_to_choose_from() -> None:
    reply = unsupported_version(World().node, Call(77, "new", "/127.0.0.1", "127.0.0.1", 9092))
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert reply.api_keys == send_request(4).api_keys


@pytest.mark.parametrize(
    ("name", "version"), [("", "1"), ("a b", "1"), ("a", "-1"), ("a", "1!"), ("a.", "1"), ("ä", "1")]
)
def test_software_with_a_strange_name_is_refused_from_v3(name: str, version: str) -> None:
    assert send_request(3, name, version).error_code == ErrorCode.INVALID_REQUEST
    assert send_request(2, name, version).error_code == ErrorCode.NONE


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "confluent-kafka-python.rd", "A1"])
def test_software_with_a_right_name_is_welcome(name: str) -> None:
    assert send_request(3, name).error_code == ErrorCode.NONE
