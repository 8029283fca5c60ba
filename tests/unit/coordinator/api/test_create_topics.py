from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.create_topics import create_topics
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)


def creatable_topic(
    name: str,
    partitions: int = 1,
    replication: int = 1,
    assignment: tuple[tuple[int, tuple[int, ...]], ...] = (),
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=tuple(CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in assignment),
        configs=tuple(CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()),
    )


def send_request(world: World, *topics: CreatableTopic, validate_only: bool = False) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)
    return list(answered(world.serve(create_topics, request, 7)).topics)


@pytest.fixture
def world() -> World:
    return World({"num.partitions": "4", "node.id": "0"})


def test_a_topic_with_its_configs(world: World) -> None:
    (made,) = send_request(world, creatable_topic("t", 2, retention_ms="5", cleanup_policy="compact"))
    topic = world.node.topics.get("t")
    assert topic is not None
    assert (made.error_code, made.error_message, made.topic_id) == (0, None, topic.topic_id)
    assert (made.num_partitions, made.replication_factor) == (2, 1)
    assert made.configs is not None
    configs = {config.name: (config.value, config.config_source) for config in made.configs}
    assert configs["retention.ms"] == ("5", 1)
    assert configs["cleanup.policy"] == ("compact", 1)
    assert configs["segment.bytes"] == ("1073741824", 5)
    assert list(configs) == sorted(configs)
    assert world.partition("t", 1).log.config.compact


def test_defaults_of_the_broker(world: World) -> None:
    (made,) = send_request(world, creatable_topic("t", -1, -1))
    assert (made.num_partitions, made.replication_factor) == (4, 1)


def test_validation_alone_creates_nothing(world: World) -> None:
    (made, wrong) = send_request(world, creatable_topic("t", 2), creatable_topic("u", 0), validate_only=True)
    assert (made.error_code, made.num_partitions) == (0, 2)
    assert wrong.error_code == ErrorCode.INVALID_PARTITIONS
    assert world.node.topics.names() == []


def test_valid_and_invalid_topics_mixed(world: World) -> None:
    results = send_request(
        world,
        creatable_topic("a b"),
        creatable_topic("good"),
        creatable_topic("none", 0),
        creatable_topic("also-good", 3),
        creatable_topic("x", 1, 9),
    )
    assert [(result.name, result.error_code) for result in results] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("good", 0),
        ("none", ErrorCode.INVALID_PARTITIONS),
        ("also-good", 0),
        ("x", ErrorCode.INVALID_REPLICATION_FACTOR),
    ]
    assert world.node.topics.names() == ["also-good", "good"]
    wrong = results[0]
    assert (wrong.num_partitions, wrong.replication_factor, wrong.configs) == (-1, -1, ())


def test_an_existing_topic_is_refused(world: World) -> None:
    send_request(world, creatable_topic("t"))
    (again,) = send_request(world, creatable_topic("t"))
    assert (again.error_code, again.error_message) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")


def test_a_name_twice_in_one_request_is_answered_once(world: World) -> None:
    results = send_request(world, creatable_topic("twice"), creatable_topic("twice"), creatable_topic("once"))
    assert [(result.name, result.error_code) for result in results] == [
        ("once", 0),
        ("twice", ErrorCode.INVALID_REQUEST),
    ]
    assert world.node.topics.names() == ["once"]


def test_an_assignment_by_hand(world: World) -> None:
    (made,) = send_request(world, creatable_topic("t", -1, -1, ((1, (0,)), (0, (0,)))))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 1)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (creatable_topic("t", 1, 1, ((0, (0,)),)), ErrorCode.INVALID_REQUEST),
        (creatable_topic("t", -1, 1, ((0, (0,)),)), ErrorCode.INVALID_REQUEST),
        (creatable_topic("t", 1, -1, ((0, (0,)),)), ErrorCode.INVALID_REQUEST),
        (creatable_topic("t", -1, -1, ((0, (0,)), (2, (0,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (creatable_topic("t", -1, -1, ((0, (5,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (creatable_topic("t", -1, -1, ((0, ()),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (creatable_topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (creatable_topic("t", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (creatable_topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (creatable_topic("t", retention_ms="abc"), ErrorCode.INVALID_CONFIG),
        (creatable_topic("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (creatable_topic("t", nope="1"), ErrorCode.INVALID_CONFIG),
        (creatable_topic("t", min_compaction_lag_ms="9", max_compaction_lag_ms="5"), ErrorCode.INVALID_CONFIG),
        (creatable_topic("__consumer_offsets"), ErrorCode.INVALID_REQUEST),
        (creatable_topic("__transaction_state"), ErrorCode.INVALID_REQUEST),
        (creatable_topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_requests_are_refused(world: World, topic: CreatableTopic, code: ErrorCode) -> None:
    (refused,) = send_request(world, topic)
    assert refused.error_code == code
    assert refused.error_message
    assert world.node.topics.names() == []


def test_too_many_partitions_in_one_request_refuse_all(world: World) -> None:
    results = send_request(world, creatable_topic("a", 6_000), creatable_topic("b", 6_000))
    assert [result.error_code for result in results] == [ErrorCode.POLICY_VIOLATION] * 2
    assert world.node.topics.names() == []
