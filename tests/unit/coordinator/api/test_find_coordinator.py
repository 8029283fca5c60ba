from __future__ import annotations

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.find_coordinator import find_coordinator
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, TRANSACTION_STATE
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest


@pytest.mark.parametrize("version", range(4))
def test_one_group_is_coordinated_here(version: int) -> None:
    answer = GroupWorld().send_request(find_coordinator, FindCoordinatorRequest(key="g"), version)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 0, "127.0.0.1", 9092)


def test_the_first_question_creates_the_offsets_topic() -> None:
    world = GroupWorld()
    assert CONSUMER_OFFSETS not in world.node.topics
    world.send_request(find_coordinator, FindCoordinatorRequest(key="g"), 2)
    assert CONSUMER_OFFSETS in world.node.topics
    assert not isinstance(world.node.groups.ready("g"), ErrorCode)


def test_many_groups_at_once() -> None:
    answer = GroupWorld().send_request(find_coordinator, FindCoordinatorRequest(coordinator_keys=("a", "b")), 4)
    assert [(coordinator.key, coordinator.error_code, coordinator.port) for coordinator in answer.coordinators] == [
        ("a", 0, 9092),
        ("b", 0, 9092),
    ]


def test_the_first_question_for_a_transactional_id_creates_its_topic() -> None:
    world = GroupWorld()
    answer = world.send_request(find_coordinator, FindCoordinatorRequest(key="t", key_type=1), 2)
    assert (answer.error_code, answer.node_id, answer.port) == (0, 0, 9092)
    topic = world.node.topics.get(TRANSACTION_STATE)
    assert topic is not None
    assert dict(topic.configs)["cleanup.policy"] == "compact"
    assert CONSUMER_OFFSETS not in world.node.topics
    assert not isinstance(world.node.transactions.ready("t"), ErrorCode)


def test_many_transactional_ids_at_once() -> None:
    request = FindCoordinatorRequest(coordinator_keys=("a", "", "b"), key_type=1)
    answer = GroupWorld().send_request(find_coordinator, request, 4)
    assert [(each.key, each.error_code, each.port) for each in answer.coordinators] == [
        ("a", 0, 9092),
        ("", 0, 9092),
        ("b", 0, 9092),
    ]


def test_an_unknown_kind_of_key_is_refused() -> None:
    answer = GroupWorld().send_request(find_coordinator, FindCoordinatorRequest(coordinator_keys=("t",), key_type=9), 4)
    assert answer.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
