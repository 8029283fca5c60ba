"""Metadata and FindCoordinator while a leader may be dead, as a cluster of three brokers answers them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World
from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.find_coordinator import find_coordinator
from rota.coordinator.api.leader_waits import when_leaders_live
from rota.coordinator.api.metadata import metadata
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.lost_brokers import RECHECK_DELAY_MS, LostBrokers
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, PartitionState
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

T = MetadataRequest(topics=(MetadataRequestTopic(name="t"),), allow_auto_topic_creation=False)


class Cluster:
    """Broker 0 answers; brokers 1 and 2 are registered too. Partition 0 of `t` is led by broker 1."""

    def __init__(self, world: World) -> None:
        self.world, self.node = world, world.node
        self.lost = self.node.lost_brokers = LostBrokers(self.node.timers, self.node.now_ms)
        self.brokers(0, 1, 2)
        world.topic("t", assignment=[(0, (1, 2, 0))])

    def brokers(self, *live: int) -> None:
        registered = {
            broker: BrokerRegistration(
                broker_id=broker, epoch=100 + broker, endpoints=(Endpoint("PLAINTEXT", f"host{broker}", 9092),)
            )
            for broker in live
        }
        self.node.topics.apply_brokers(registered)
        self.lost.brokers_changed(registered)

    def elect(self, leader: int, name: str = "t", index: int = 0) -> None:
        topic = self.node.topics.get(name)
        assert topic is not None
        old = topic.partitions[index]
        state = PartitionState(
            index=index,
            leader=leader,
            replicas=old.replicas,
            isr=(leader,),
            leader_epoch=old.leader_epoch + 1,
            leader_broker_epoch=100 + leader,
            version=old.version + 1,
        )
        self.node.topics.apply_states(topic.topic_id, [state])
        self.lost.recheck_soon()

    def send_request(self, function: Any = metadata, request: Any = T, version: int = 12) -> Answer:
        return Answer(self.world.serve(function, request, version))

    def pass_ms(self, ms: int) -> None:
        self.world.now_ms += ms
        self.node.timers.fire()


class Answer:
    def __init__(self, reply: Any) -> None:
        self.reply = reply

    @property
    def is_given(self) -> bool:
        return not isinstance(self.reply, DelayedReply) or self.reply.answered

    @property
    def body(self) -> Any:
        assert self.is_given
        return self.reply.value if isinstance(self.reply, DelayedReply) else self.reply


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(World({"node.id": "0"}))


def leader_of(answer: Answer) -> int:
    return int(answer.body.topics[0].partitions[0].leader_id)


def test_metadata_waits_until_the_leader_that_may_be_dead_is_replaced(cluster: Cluster) -> None:
    cluster.lost.suspect(1, 101)
    answer = cluster.send_request()
    cluster.pass_ms(200)
    assert not answer.is_given
    cluster.elect(2)
    cluster.pass_ms(RECHECK_DELAY_MS)
    assert leader_of(answer) == 2
    assert cluster.send_request(request=MetadataRequest(topics=())).is_given, "an answer without leaders does not wait"


def test_a_broker_that_was_fenced_lists_itself_once(cluster: Cluster) -> None:
    """LB2. Java's clients fail at a broker that is listed twice."""
    cluster.brokers(1, 2)
    answer = cluster.send_request(request=MetadataRequest(topics=()))
    assert [broker.node_id for broker in answer.body.brokers] == [0, 1, 2]


def test_the_broker_that_was_replaced_is_listed_for_a_while(cluster: Cluster) -> None:
    """LB2."""
    cluster.lost.suspect(1, 101)
    answer = cluster.send_request()
    cluster.elect(2)
    cluster.brokers(0, 2)
    cluster.pass_ms(RECHECK_DELAY_MS)
    assert [(broker.node_id, broker.host) for broker in answer.body.brokers][1:] == [(1, "host1"), (2, "host2")]
    cluster.pass_ms(10_000)
    again = cluster.send_request()
    cluster.pass_ms(RECHECK_DELAY_MS)
    assert [broker.node_id for broker in again.body.brokers] == [0, 2]


def test_the_wait_is_limited_when_no_replica_can_lead(cluster: Cluster) -> None:
    cluster.lost.suspect(1, 101)
    for request in (T, MetadataRequest(topics=None)):
        answer = cluster.send_request(request=request)
        assert not answer.is_given
    cluster.pass_ms(1_000)
    assert leader_of(answer) == 1


def test_the_other_requests_of_the_connection_go_on(cluster: Cluster) -> None:
    assert cluster.send_request().reply.mutes is False


def test_a_response_that_names_only_this_broker_is_not_delayed(cluster: Cluster) -> None:
    cluster.elect(0)
    assert leader_of(cluster.send_request()) == 0


def test_a_broker_alone_waits_for_nothing() -> None:
    assert when_leaders_live(World().node, lambda: [7], lambda: "answer") == "answer"


def test_find_coordinator_waits_as_well() -> None:
    cluster = Cluster(GroupWorld({"node.id": "0"}))
    cluster.world.topic(CONSUMER_OFFSETS, 4, assignment=[(index, (0, 1)) for index in range(4)])
    for index in range(4):
        cluster.node.groups.lead(index, 0)
    cluster.node.groups._leader = lambda index: cluster.node.topics.get(CONSUMER_OFFSETS).partitions[index].leader  # type: ignore[union-attr]
    request = FindCoordinatorRequest(key="g")
    assert cluster.send_request(find_coordinator, request, 2).body.node_id == 0
    index = cluster.node.groups.partition_of("g")
    cluster.elect(1, CONSUMER_OFFSETS, index)
    cluster.lost.suspect(1, 101)
    answer = cluster.send_request(find_coordinator, request, 2)
    cluster.pass_ms(100)
    assert not answer.is_given
    cluster.elect(0, CONSUMER_OFFSETS, index)
    cluster.pass_ms(RECHECK_DELAY_MS)
    assert answer.body.node_id == 0
