"""The network layer against real brokers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.client.network.scripted import eventually

from rota.client.config import ClientConfig
from rota.client.errors import TimedOut, Unreachable
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode, Controller, Coordinator, Leader
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.list_groups import ListGroupsRequest
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.registry import APIS


@pytest.fixture
async def creating(bootstrap: str) -> AsyncIterator[Cluster]:
    """A cluster whose topics come into being when they are asked for."""
    cluster = Cluster(ClientConfig(bootstrap_servers=bootstrap), auto_create=True)
    await cluster.start()
    yield cluster
    await cluster.close()


async def created(cluster: Cluster, topic: str) -> TopicPartition:
    """The first partition of a topic that is there because somebody asked for it."""
    cluster.set_topics([topic])
    partition = TopicPartition(topic, 0)
    await cluster.until(lambda known: known.leader(partition), what=f"creating {topic}")
    return partition


def latest(partition: TopicPartition) -> ListOffsetsRequest:
    item = ListOffsetsPartition(partition_index=partition.partition, timestamp=-1)
    return ListOffsetsRequest(topics=(ListOffsetsTopic(name=partition.topic, partitions=(item,)),), timeout_ms=1_000)


def heartbeat(group: str) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")


async def test_metadata_has_brokers_topics_and_ids(creating: Cluster, topic: str) -> None:
    partition = await created(creating, topic)
    known = creating.metadata
    assert known.cluster_id
    assert known.controller in known.brokers
    topic_id = known.topic_id(topic)
    assert topic_id is not None
    assert known.topic_name(topic_id) == topic
    info = known.info(partition)
    assert info is not None
    assert info.leader in info.replicas
    assert info.leader_epoch >= 0
    creating.set_topics(None)
    assert topic in (await creating.refresh()).topics


async def test_topics_are_not_created_unless_that_is_wanted(cluster: Cluster, topic: str) -> None:
    cluster.set_topics([topic])
    with pytest.raises(TimedOut, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await cluster.until(lambda known: known.partitions(topic), what="looking", timeout_ms=300)
    assert cluster.metadata.topics[topic].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_versions_are_the_newest_of_both(cluster: Cluster) -> None:
    node = next(iter(cluster.metadata.brokers))
    for key in (0, 1, 3, 8, 9, 10, 11, 12, 13, 14):
        assert await cluster.version(node, key) == APIS[key].versions[-1]


@pytest.mark.parametrize("version", range(5))
async def test_every_version_of_a_request_is_understood(cluster: Cluster, group: str, version: int) -> None:
    node = await cluster.coordinator(group)
    answer = await cluster.send_request(node, heartbeat(group), version_min=version, version_max=version)
    assert answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NOT_COORDINATOR)


async def test_each_target_is_found(creating: Cluster, topic: str, group: str) -> None:
    partition = await created(creating, topic)
    creating.set_topics([])
    await creating.refresh()

    def offsets(answer: Any) -> list[int]:
        return [item.error_code for topic in answer.topics for item in topic.partitions]

    answer = await creating.send_request_until(Leader(partition), latest(partition), offsets, what="listing offsets")
    assert answer.topics[0].partitions[0].offset == 0
    answer = await creating.send_request_until(
        Coordinator(group), heartbeat(group), _code, what="beating", lane="group"
    )
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID, "a FATAL or REJOIN code comes back"
    for target in (AnyNode(), Controller()):
        assert (await creating.send_request_until(target, ListGroupsRequest(), _code, what="listing")).error_code == 0


def _code(answer: Any) -> list[int]:
    return [answer.error_code]


@pytest.mark.parametrize("version", range(7))
async def test_a_coordinator_is_found_in_every_version(cluster: Cluster, group: str, version: int) -> None:
    request = FindCoordinatorRequest(key=group, coordinator_keys=(group,))
    node = next(iter(cluster.metadata.brokers))
    answer = await cluster.send_request(node, request, version_min=version, version_max=version)
    item = answer.coordinators[0] if version >= 4 else answer
    assert item.error_code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def test_a_waiting_fetch_does_not_delay_other_requests(creating: Cluster, topic: str, group: str) -> None:
    partition = await created(creating, topic)
    leader = creating.metadata.leader(partition)
    topic_id = creating.metadata.topic_id(topic)
    assert leader is not None
    assert topic_id is not None
    item = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    requests = FetchRequest(
        max_wait_ms=60_000, min_bytes=1, topics=(FetchTopic(topic_id=topic_id, partitions=(item,)),)
    )
    waiting = asyncio.create_task(creating.send_request(leader, requests, lane="fetch"))
    node = await creating.coordinator(group)
    answers = await asyncio.gather(*(creating.send_request(node, heartbeat(group), lane="group") for _ in range(100)))
    assert {item.error_code for item in answers} <= {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NOT_COORDINATOR}
    assert not waiting.done()
    waiting.cancel()


async def test_cancelled_requests_do_not_affect_the_others(cluster: Cluster, group: str) -> None:
    node = await cluster.coordinator(group)
    pending = [asyncio.create_task(cluster.send_request(node, heartbeat(group), lane="group")) for _ in range(60)]
    await asyncio.sleep(0)
    for item in pending[::3]:
        item.cancel()
    answers = await asyncio.gather(*pending, return_exceptions=True)
    assert [isinstance(item, asyncio.CancelledError) for item in answers] == [at % 3 == 0 for at in range(60)]
    assert (await cluster.send_request(node, heartbeat(group), lane="group")).error_code


async def test_garbage_ends_one_connection_and_the_next_one_works(cluster: Cluster, group: str) -> None:
    """A broker that is sent what is no request closes; the client dials again."""
    node = await cluster.coordinator(group)
    await cluster.send_request(node, heartbeat(group), lane="group")
    connection = cluster._all_brokers.ready(node, "group")
    assert connection is not None
    assert connection._transport is not None
    connection._transport.write(b"\xff\xff\xff\xff")
    await eventually(lambda: not connection.is_open)
    assert isinstance(connection.failure, Unreachable)
    assert (await cluster.send_request(node, heartbeat(group), lane="group")).error_code


async def test_names_and_several_addresses(bootstrap: str) -> None:
    port = bootstrap.rpartition(":")[2]
    settings = ClientConfig(bootstrap_servers=f"127.0.0.1:1, localhost:{port}")
    cluster = Cluster(settings)
    await cluster.start()
    assert cluster.metadata.brokers
    await cluster.close()
