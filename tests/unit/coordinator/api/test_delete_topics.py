from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World, answered
from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.delete_topics import delete_topics
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topics import Topics
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from rota.protocol.wire import UUID_ZERO

UNKNOWN_ID = b"x" * 16


def by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name, topic_id=UUID_ZERO)


def by_id(topic_id: bytes) -> DeleteTopicState:
    return DeleteTopicState(name=None, topic_id=topic_id)


def send_request(world: World, *topics: DeleteTopicState) -> list[DeletableTopicResult]:
    return list(answered(world.serve(delete_topics, DeleteTopicsRequest(topics=topics, timeout_ms=1), 6)).responses)


def codes(results: list[DeletableTopicResult]) -> list[tuple[str | None, int]]:
    return [(result.name, result.error_code) for result in results]


@pytest.fixture
def world() -> World:
    world = World()
    for name in ("a", "b", "c"):
        world.topic(name)
    return world


def test_by_name_and_by_id(world: World) -> None:
    topic = world.node.topics.get("b")
    assert topic is not None
    results = send_request(world, by_name("a"), by_id(topic.topic_id), by_name("nope"), by_id(UNKNOWN_ID))
    assert codes(results) == [
        ("a", 0),
        ("b", 0),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert results[1].topic_id == topic.topic_id
    assert world.node.topics.names() == ["c"]
    assert world.node.partitions.get("a", 0) is None


@pytest.mark.parametrize("version", [1, 3, 4, 5])
def test_older_versions_know_names_alone(world: World, version: int) -> None:
    request = DeleteTopicsRequest(topic_names=("a", "nope"), timeout_ms=1)
    results = answered(world.serve(delete_topics, request, version)).responses
    assert codes(list(results)) == [("a", 0), ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_both_or_neither_is_no_way_to_name_a_topic(world: World) -> None:
    topic = world.node.topics.get("a")
    assert topic is not None
    both = DeleteTopicState(name="a", topic_id=topic.topic_id)
    assert codes(send_request(world, both, by_id(UUID_ZERO))) == [
        ("a", ErrorCode.INVALID_REQUEST),
        (None, ErrorCode.INVALID_REQUEST),
    ]
    assert "a" in world.node.topics


def test_a_topic_named_twice_stays(world: World) -> None:
    topic = world.node.topics.get("b")
    assert topic is not None
    assert codes(send_request(world, by_name("a"), by_name("a"))) == [("a", ErrorCode.INVALID_REQUEST)]
    (once,) = send_request(world, by_name("b"), by_id(topic.topic_id))
    assert (once.name, once.topic_id, once.error_code) == ("b", topic.topic_id, ErrorCode.INVALID_REQUEST)
    assert world.node.topics.names() == ["a", "b", "c"]


def test_topics_of_the_system_stay() -> None:
    world = GroupWorld().open()
    assert codes(send_request(world, by_name("__consumer_offsets"))) == [
        ("__consumer_offsets", ErrorCode.INVALID_REQUEST)
    ]
    assert "__consumer_offsets" in world.node.topics


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_switched_off(version: int, code: ErrorCode) -> None:
    world = World({"delete.topic.enable": "false"})
    world.topic("a")
    reply = world.serve(delete_topics, DeleteTopicsRequest(topic_names=("a",), timeout_ms=1), version)
    assert codes(list(reply.responses)) == [("a", code)]
    assert "a" in world.node.topics


def test_a_recreated_topic_is_not_deleted_by_its_old_id(world: World) -> None:
    topics = world.node.topics
    old = topics.get("a")
    assert old is not None
    other = Topics(topics.store, broker_id=0, fresh_uuid=lambda: b"y" * 16)
    eager_tasks.run_eagerly(other.load())
    eager_tasks.run_eagerly(other.delete("a"))
    eager_tasks.run_eagerly(other.create("a"))
    assert codes(send_request(world, by_id(old.topic_id))) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]
    eager_tasks.run_eagerly(other.refresh("a"))
    assert other.names() == ["a", "b", "c"]
