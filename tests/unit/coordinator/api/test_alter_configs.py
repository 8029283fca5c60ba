from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.alter_configs import alter_configs
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

TOPIC, BROKER = 2, 4
Resource = tuple[int, str, tuple[tuple[str, str | None], ...]]


def send_request(world: World, *resources: Resource, validate_only: bool = False) -> list[tuple[str, int, str | None]]:
    resources = tuple(
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(AlterableConfig(name=key, value=value) for key, value in configs),
        )
        for kind, name, configs in resources
    )
    reply = answered(
        world.serve(alter_configs, AlterConfigsRequest(resources=resources, validate_only=validate_only), 2)
    )
    return [(response.resource_name, response.error_code, response.error_message) for response in reply.responses]


def configs(world: World, name: str = "t") -> dict[str, str]:
    topic = world.node.topics.get(name)
    assert topic is not None
    return dict(topic.configs)


@pytest.fixture
def world() -> World:
    world = World({"node.id": "3"})
    world.topic("t", cleanup_policy="compact")
    return world


def test_a_config_that_is_not_named_returns_to_its_default(world: World) -> None:
    assert send_request(world, (TOPIC, "t", (("retention.ms", "5"),))) == [("t", 0, None)]
    assert configs(world) == {"retention.ms": "5"}
    assert world.partition().log.config.retention_ms == 5
    assert not world.partition().log.config.compact
    assert send_request(world, (TOPIC, "t", ())) == [("t", 0, None)]
    assert configs(world) == {}


def test_validation_alone_changes_nothing(world: World) -> None:
    assert send_request(world, (TOPIC, "t", (("retention.ms", "5"),)), validate_only=True) == [("t", 0, None)]
    assert (
        send_request(world, (TOPIC, "t", (("retention.ms", "x"),)), validate_only=True)[0][1]
        == ErrorCode.INVALID_CONFIG
    )
    assert configs(world) == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        ((TOPIC, "t", (("nope", "1"),)), ErrorCode.INVALID_CONFIG),
        ((TOPIC, "t", (("retention.ms", "x"),)), ErrorCode.INVALID_CONFIG),
        ((TOPIC, "t", (("retention.ms", None),)), ErrorCode.INVALID_REQUEST),
        ((TOPIC, "t", (("retention.ms", "1"), ("retention.ms", "2"))), ErrorCode.INVALID_REQUEST),
        ((TOPIC, "nope", ()), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((TOPIC, "nope", (("retention.ms", "1"),)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((TOPIC, "nope", (("retention.ms", "x"),)), ErrorCode.INVALID_CONFIG),
        ((TOPIC, "nope", (("nope", "1"),)), ErrorCode.INVALID_CONFIG),
        ((TOPIC, "nope", (("retention.ms", None),)), ErrorCode.INVALID_REQUEST),
        ((TOPIC, "a b", ()), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((TOPIC, "", ()), ErrorCode.INVALID_REQUEST),
        ((BROKER, "3", (("log.retention.ms", "x"),)), ErrorCode.INVALID_REQUEST),
        ((BROKER, "", (("num.partitions", "1"),)), ErrorCode.INVALID_REQUEST),
        ((BROKER, "4", ()), ErrorCode.INVALID_REQUEST),
        ((BROKER, "x", ()), ErrorCode.INVALID_REQUEST),
        ((8, "3", ()), ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_requests_are_refused(world: World, resource: Resource, code: ErrorCode) -> None:
    ((name, refused, why),) = send_request(world, resource)
    assert (name, refused) == (resource[1], code)
    assert why
    assert configs(world) == {"cleanup.policy": "compact"}


def test_a_resource_twice_changes_nothing_and_others_go_on(world: World) -> None:
    world.topic("u")
    twice = (TOPIC, "t", (("retention.ms", "5"),))
    results = send_request(world, twice, (TOPIC, "u", (("retention.ms", "6"),)), twice)
    assert [code for _, code, _ in results] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
    assert configs(world) == {"cleanup.policy": "compact"}
    assert configs(world, "u") == {"retention.ms": "6"}


def test_bc13_configs_without_a_value_are_refused_before_the_resource(world: World) -> None:
    ((_, code, why),) = send_request(world, (BROKER, "4", (("a", None), ("b", "1"), ("c", None))))
    assert (code, why) == (ErrorCode.INVALID_REQUEST, "Null value not supported for : a, c")
