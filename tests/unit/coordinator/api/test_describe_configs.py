from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.describe_configs import describe_configs
from rota.coordinator.metadata.changes import DEFAULT_NAME, ConfigKind
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)

TOPIC, BROKER, LOGGER = 2, 4, 8


def send_request(
    world: World, kind: int, name: str, keys: tuple[str, ...] | None = None, **how: bool
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    reply = world.serve(describe_configs, DescribeConfigsRequest(resources=(resource,), **how), 4)
    (result,) = reply.results
    assert isinstance(result, DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    return {config.name: config for config in result.configs}


@pytest.fixture
def world() -> World:
    world = World({"node.id": "3", "log.retention.ms": "9000"})
    world.topic("t", cleanup_policy="compact")
    return world


def test_every_config_of_a_topic_with_value_and_source(world: World) -> None:
    configs = by_name(send_request(world, TOPIC, "t"))
    assert len(configs) >= 30
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].config_source) == ("compact", 1)
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("9000", 4)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == ("1073741824", 5)
    assert all(config.synonyms == () and config.documentation is None for config in configs.values())
    assert not any(config.read_only or config.is_sensitive for config in configs.values())


def test_keys_choose_and_unknown_ones_are_left_out(world: World) -> None:
    assert set(by_name(send_request(world, TOPIC, "t", ("retention.ms", "nope")))) == {"retention.ms"}
    assert by_name(send_request(world, TOPIC, "t", ())) == by_name(send_request(world, TOPIC, "t"))


def test_synonyms_are_listed_strongest_first(world: World) -> None:
    config = by_name(send_request(world, TOPIC, "t", ("cleanup.policy",), include_synonyms=True))["cleanup.policy"]
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("cleanup.policy", "compact", 1),
        ("log.cleanup.policy", "delete", 5),
    ]


def test_types_and_documentation(world: World) -> None:
    config = by_name(send_request(world, TOPIC, "t", ("retention.ms",), include_documentation=True))["retention.ms"]
    assert config.config_type == 5
    assert config.documentation


def test_a_brokers_configs(world: World) -> None:
    configs = by_name(send_request(world, BROKER, "3"))
    assert (configs["node.id"].value, configs["node.id"].read_only) == ("3", True)
    assert (configs["log.retention.ms"].value, configs["log.retention.ms"].config_source) == ("9000", 4)
    assert len(configs) > 150
    assert [each.name for each in send_request(world, BROKER, "").configs] == ["min.insync.replicas"]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "4", ErrorCode.INVALID_REQUEST),
        (BROKER, "three", ErrorCode.INVALID_REQUEST),
        (BROKER, "²", ErrorCode.INVALID_REQUEST),
        (BROKER, "--3", ErrorCode.INVALID_REQUEST),
        (LOGGER, "4", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (16, "", ErrorCode.INVALID_REQUEST),
        (32, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_requests_are_refused(world: World, kind: int, name: str, code: ErrorCode) -> None:
    result = send_request(world, kind, name)
    assert (result.error_code, result.configs) == (code, ())
    assert bool(result.error_message) == (name != "nope")  # Kafka has no text for an unknown topic


def test_a_resource_of_an_unknown_type_refuses_all_as_in_kafka(world: World) -> None:
    kinds = (TOPIC, "t"), (99, "x"), (BROKER, "3")
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None) for kind, name in kinds
    )
    reply = world.serve(describe_configs, DescribeConfigsRequest(resources=resources), 4)
    assert [(result.resource_type, result.error_code, result.error_message) for result in reply.results] == [
        (kind, ErrorCode.INVALID_REQUEST, "Unexpected resource type 99 for resource x") for kind in (TOPIC, 99, BROKER)
    ]


def test_bc8_stored_values_that_are_ignored_are_shown_beside_the_value_in_force(world: World) -> None:
    """As Kafka shows them: whoever describes a broker finds what to delete."""
    name = "max.connections.per.ip"
    world.node.topics.apply_configs(ConfigKind.BROKERS, DEFAULT_NAME, {name: "0", "nobody": "1"})
    assert {config.name: config.value for config in send_request(world, BROKER, "").configs}[name] == "0"
    (shown,) = send_request(world, BROKER, "3", (name,), include_synonyms=True).configs
    assert (shown.value, shown.config_source) == ("2147483647", 3)
    assert [(synonym.value, synonym.source) for synonym in shown.synonyms] == [("0", 3), ("2147483647", 5)]
    world.node.topics.apply_configs(ConfigKind.BROKERS, DEFAULT_NAME, {})
    assert send_request(world, BROKER, "3", (name,)).configs[0].config_source == 5


def test_advertised_listeners_default_to_the_address_that_the_client_used(world: World) -> None:
    key = ("advertised.listeners",)
    (reached,) = send_request(world, BROKER, "3", key).configs
    assert (reached.value, reached.config_source, reached.read_only) == ("PLAINTEXT://127.0.0.1:9092", 4, True)
    advertised = World({"node.id": "3", "advertised.listeners": "PLAINTEXT://kafka.example:9094"})
    (configured,) = send_request(advertised, BROKER, "3", key).configs
    assert (configured.value, configured.config_source) == ("PLAINTEXT://kafka.example:9094", 4)


@pytest.mark.parametrize("name", ["9" * 5000, "2147483648", "-2147483648000", "--3", "\u0663"])
@pytest.mark.parametrize("kind", [BROKER, LOGGER])
def test_a_broker_id_that_is_no_integer_of_32_bits(world: World, kind: int, name: str) -> None:
    result = send_request(world, kind, name)
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == f"Broker id must be an integer, but it is: {name}"
