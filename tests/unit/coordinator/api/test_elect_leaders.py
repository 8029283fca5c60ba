from __future__ import annotations

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.elect_leaders import PREFERRED, UNCLEAN, elect_leaders
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

Results = list[tuple[str, int, int, str | None]]


def send_request(
    world: World, *topics: tuple[str, tuple[int, ...]], election: int = PREFERRED, everywhere: bool = False
) -> Results:
    named = tuple(TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics)
    request = ElectLeadersRequest(election_type=election, topic_partitions=None if everywhere else named)
    reply = answered(world.serve(elect_leaders, request, 2))
    assert reply.error_code == (0 if election in (PREFERRED, UNCLEAN) else ErrorCode.INVALID_REQUEST)
    return [
        (topic.topic, partition.partition_id, partition.error_code, partition.error_message)
        for topic in reply.replica_election_results
        for partition in topic.partition_result
    ]


@pytest.fixture
def world() -> World:
    world = World()
    world.topic("t", 2)
    return world


@pytest.mark.parametrize("election", [PREFERRED, UNCLEAN])
def test_a_partition_with_its_leader_needs_no_election(world: World, election: int) -> None:
    why = "Leader election not needed for topic partition."
    assert send_request(world, ("t", (0, 1, 1)), election=election) == [
        ("t", 0, ErrorCode.ELECTION_NOT_NEEDED, why),
        ("t", 1, ErrorCode.ELECTION_NOT_NEEDED, why),
    ]
    assert send_request(world, everywhere=True) == []


def test_missing_topics_and_partitions(world: World) -> None:
    assert send_request(world, ("t", (7, -1)), ("nope", (0,))) == [
        ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-7"),
        ("t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t--1"),
        ("nope", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as nope"),
    ]


def test_an_unknown_kind_of_election(world: World) -> None:
    assert send_request(world, ("t", (0,)), election=2) == [
        ("t", 0, ErrorCode.INVALID_REQUEST, "Unknown election type 2")
    ]


@pytest.mark.parametrize(
    ("election", "code"),
    [(PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
)
def test_no_replica_leads_a_partition_while_its_disk_has_failed(world: World, election: int, code: ErrorCode) -> None:
    with capture_logs():
        world.partition("t", 1).fail("disk")
    assert [result[:3] for result in send_request(world, everywhere=True, election=election)] == [("t", 1, code)]
    assert [result[2] for result in send_request(world, ("t", (0, 1)), election=election)] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        code,
    ]


def test_leaders_of_a_cluster_are_elected_by_the_broker_that_gets_the_request() -> None:
    world = World({"node.id": "0"})
    world.register(0, 1)
    world.topic(assignment=[(0, (1, 0))])
    state = world.node.topics.partition
    assert [result[2] for result in send_request(world, ("t", (0,)))] == [ErrorCode.ELECTION_NOT_NEEDED]
    world.register(0)
    assert [result[2] for result in send_request(world, ("t", (0,)))] == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    assert send_request(world, ("t", (0,)), election=UNCLEAN) == [("t", 0, 0, None)]
    elected = state("t", 0)
    assert elected is not None
    assert (elected.leader, elected.isr, elected.leader_epoch) == (0, (0,), 1)
    world.register(0, 1)
    world.node.topics.broker_epoch = 100
    assert run_eagerly(world.node.topics.change_isr("t", 0, 1, (0, 1)))
    assert send_request(world, everywhere=True) == [("t", 0, 0, None)]
    elected = state("t", 0)
    assert elected is not None
    assert (elected.leader, elected.leader_broker_epoch) == (1, 101)
