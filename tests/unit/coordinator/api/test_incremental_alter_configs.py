from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.config_targets import APPEND, DELETE, SET, SUBTRACT
from rota.coordinator.api.incremental_alter_configs import incremental_alter_configs
from rota.coordinator.config.describe import describe_broker
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
FAILED = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
Change = tuple[str, int, str | None]
MISTYPED = "Unknown topic config name: retentoin.ms; the nearest known name is retention.ms"


def send_request(
    world: World, *changes: Change, kind: int = TOPIC, name: str = "t", validate_only: bool = False
) -> tuple[int, str | None]:
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes),
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (response,) = answered(world.serve(incremental_alter_configs, request, 1)).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return response.error_code, response.error_message


def configs(world: World) -> dict[str, str]:
    topic = world.node.topics.get("t")
    assert topic is not None
    return dict(topic.configs)


@pytest.fixture
def world() -> World:
    world = World({"node.id": "3"})
    world.topic("t", retention_ms="7")
    return world


def test_set_and_delete_change_only_the_named_configs(world: World) -> None:
    assert send_request(world, ("segment.bytes", SET, "2000000")) == (0, None)
    assert configs(world) == {"retention.ms": "7", "segment.bytes": "2000000"}
    assert send_request(world, ("retention.ms", DELETE, None), ("retention.bytes", SET, "9")) == (0, None)
    assert configs(world) == {"segment.bytes": "2000000", "retention.bytes": "9"}
    assert world.partition().log.config.retention_bytes == 9


def test_a_list_grows_from_its_default_and_shrinks(world: World) -> None:
    assert send_request(world, ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert configs(world)["cleanup.policy"] == "delete,compact"
    assert send_request(world, ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert configs(world)["cleanup.policy"] == "delete,compact"
    assert send_request(world, ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    assert configs(world)["cleanup.policy"] == "compact"


def test_validation_alone_changes_nothing(world: World) -> None:
    assert send_request(world, ("retention.ms", SET, "8"), validate_only=True) == (0, None)
    assert configs(world) == {"retention.ms": "7"}


def test_deleting_a_config_that_is_not_set_succeeds(world: World) -> None:
    assert send_request(world, ("segment.bytes", DELETE, None), ("nope", DELETE, None)) == (0, None)


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        (
            ("retention.ms", APPEND, "4"),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is",
        ),
        (("retention.ms", SUBTRACT, "4"), ErrorCode.INVALID_CONFIG, "Can't SUBTRACT to key retention.ms because its"),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        (("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST, "Null value not supported for : cleanup.policy"),
        (("retentoin.ms", SET, "1"), ErrorCode.INVALID_CONFIG, MISTYPED),
        (("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (("cleanup.policy", APPEND, "foo"), ErrorCode.INVALID_CONFIG, "cleanup.policy"),
    ],
)
def test_invalid_requests_are_refused(world: World, change: Change, code: ErrorCode, why: str) -> None:
    refused, message = send_request(world, ("segment.bytes", SET, "2000000"), change)
    assert refused == code
    assert message is not None
    assert why in message
    assert configs(world) == {"retention.ms": "7"}


def test_a_running_broker_refuses_to_change_read_only_configs(world: World) -> None:
    assert send_request(world, ("num.partitions", SET, "3"), kind=BROKER, name="3") == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: [num.partitions]",
    )


@pytest.mark.parametrize("name", ["3", ""])
def test_deleting_a_dynamic_config_that_is_not_set_succeeds(world: World, name: str) -> None:
    throttle = "leader.replication.throttled.rate"
    assert send_request(world, (throttle, DELETE, None), ("num.partitions", DELETE, ""), kind=BROKER, name=name) == (
        0,
        None,
    )
    assert send_request(world, kind=BROKER, name=name) == (0, None)
    refused, why = send_request(world, (throttle, DELETE, None), ("num.partitions", SET, "3"), kind=BROKER, name=name)
    assert refused == ErrorCode.INVALID_REQUEST
    assert why == "Cannot update these configs dynamically: [num.partitions]"
    assert send_request(world, (throttle, DELETE, None), kind=BROKER, name="4")[0] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["3", ""])
def test_throttles_of_replication_are_set_and_deleted(world: World, name: str) -> None:
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    names = (*rates, "replica.alter.log.dirs.io.max.bytes.per.second")
    assert send_request(world, *((each, SET, "5") for each in names), kind=BROKER, name=name) == (0, None)
    config = world.node.config
    assert (config.leader_replication_throttled_rate, config.follower_replication_throttled_rate) == (5, 5)
    assert {entry.name for entry in describe_broker(config)} >= set(rates)
    assert send_request(world, *((each, DELETE, None) for each in names), kind=BROKER, name=name) == (0, None)
    assert config.leader_replication_throttled_rate is None
    assert not {entry.name for entry in describe_broker(config)} & set(names)


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        (("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
        (("nope", DELETE, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
        (
            ("cleanup.policy", APPEND, "compact"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nope' does not exist.",
        ),
        (("nope", SET, "1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        (("nope", SUBTRACT, "1"), ErrorCode.INVALID_CONFIG, "Can't SUBTRACT to key nope because its type is not LIST."),
    ],
)
def test_configs_are_checked_before_it_is_asked_whether_the_topic_exists(
    world: World, change: Change, code: ErrorCode, why: str
) -> None:
    """BC12."""
    assert send_request(world, change, name="nope") == (code, why)


def test_nothing_is_appended_to_a_config_that_is_not_known(world: World) -> None:
    why = "Can't APPEND to key nope because its type is not LIST."
    assert send_request(world, ("nope", APPEND, "1")) == (ErrorCode.INVALID_CONFIG, why)


@pytest.mark.parametrize(
    ("kind", "name"), [(TOPIC, "t"), (TOPIC, "nope"), (TOPIC, ""), (METRICS, "m"), (GROUP, "g"), (LOGGER, "3")]
)
def test_bc14_an_unknown_operation_fails(world: World, kind: int, name: str) -> None:
    for operation in (-1, 4, 9):
        assert send_request(world, ("root", operation, "1"), kind=kind, name=name) == FAILED


@pytest.mark.parametrize("name", ["", "3"])
def test_an_unknown_operation_on_a_broker_is_refused(world: World, name: str) -> None:
    refused = (ErrorCode.INVALID_REQUEST, "Unknown operations type 9")
    assert send_request(world, ("log.retention.ms", 9, "1"), kind=BROKER, name=name) == refused


def test_bc14_nothing_that_the_failed_request_names_is_changed(world: World) -> None:
    world.topic("u", retention_ms="7")
    wanted = [
        (TOPIC, "t", ("retention.ms", SET, "8")),
        (TOPIC, "u", ("retention.ms", 9, "8")),
        (BROKER, "", ("log.retention.ms", SET, "8")),
        (BROKER, "4", ("log.retention.ms", SET, "8")),
        (7, "x", ("a", SET, "8")),
    ]
    resources = tuple(
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=(AlterableConfig(name=key, config_operation=how, value=value),),
        )
        for kind, name, (key, how, value) in wanted
    )
    request = IncrementalAlterConfigsRequest(resources=resources)
    responses = answered(world.serve(incremental_alter_configs, request, 1)).responses
    invalid = ErrorCode.INVALID_REQUEST
    assert [response.error_code for response in responses] == [-1, -1, -1, invalid, invalid]
    assert configs(world) == {"retention.ms": "7"}
    assert "log.retention.ms" not in world.node.config.dynamic_defaults


@pytest.mark.parametrize(
    ("kind", "name"), [(TOPIC, ""), (TOPIC, "a b"), (BROKER, "4"), (LOGGER, "4"), (METRICS, ""), (GROUP, ""), (7, "x")]
)
def test_bc13_configs_without_a_value_are_refused_before_the_resource(world: World, kind: int, name: str) -> None:
    refused = (ErrorCode.INVALID_REQUEST, "Null value not supported for : a, b")
    assert send_request(world, ("a", SET, None), ("c", DELETE, None), ("b", 9, None), kind=kind, name=name) == refused
    twice = (ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    assert send_request(world, ("a", SET, None), ("a", SET, None), kind=kind, name=name) == twice
