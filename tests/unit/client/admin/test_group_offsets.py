"""Committed offsets over the wire, with many groups in a request and with old brokers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.admin.conftest import Pair, until_version
from tests.unit.client.network.scripted import Scripted

from rota.client.admin.group_offsets import alter_group_offsets, delete_group_offsets, list_group_offsets
from rota.client.admin.requests import Deadline
from rota.client.config import ClientConfig
from rota.client.errors import AdminFailed, BrokerError
from rota.client.network.cluster import Cluster
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST, SECOND, THIRD = (TopicPartition("a", number) for number in range(3))
COMMITTED = {"g": {0: 5, 1: 7}, "h": {2: 9}}


def fetched(request: OffsetFetchRequest) -> OffsetFetchResponse:
    """All that COMMITTED has, -1 for what is asked for and not there; group "bad" is refused."""
    groups = []
    for item in request.groups:
        numbers = COMMITTED.get(item.group_id, {})
        numbers_of_request = (
            list(numbers) if item.topics is None else [n for topic in item.topics for n in topic.partition_indexes]
        )
        parts = tuple(
            OffsetFetchResponsePartitions(partition_index=n, committed_offset=numbers.get(n, -1))
            for n in numbers_of_request
        )
        code = 30 if item.group_id == "bad" else 0
        topics = (OffsetFetchResponseTopics(name="a", partitions=parts),)
        groups.append(OffsetFetchResponseGroup(group_id=item.group_id, topics=topics, error_code=code))
    return OffsetFetchResponse(groups=tuple(groups))


async def test_many_groups_are_one_request_for_each_broker(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.coordinators = {"x": 1}
    for broker in pair.both:
        broker.on(OffsetFetchRequest, fetched)
    reply = await list_group_offsets(cluster, {"g": None, "h": [THIRD, FIRST, FIRST], "x": None}, deadline)
    assert reply == {
        "g": {FIRST: OffsetAndMetadata(5), SECOND: OffsetAndMetadata(7)},
        "h": {THIRD: OffsetAndMetadata(9), FIRST: None},
        "x": {},
    }
    assert [len(received) for received in pair.requests(OffsetFetchRequest)] == [1, 1]


async def test_a_refused_group_does_not_affect_the_others(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(OffsetFetchRequest, fetched)
    with pytest.raises(AdminFailed, match=r"group bad.*GROUP_AUTHORIZATION_FAILED") as failed:
        await list_group_offsets(cluster, {"g": None, "bad": None}, deadline)
    assert list(failed.value.done) == ["g"]


async def test_old_brokers_get_one_request_per_group(deadline: Deadline) -> None:
    def old(request: OffsetFetchRequest) -> OffsetFetchResponse:
        parts = tuple(
            OffsetFetchResponsePartition(partition_index=n, committed_offset=offset)
            for n, offset in COMMITTED[request.group_id].items()
        )
        return OffsetFetchResponse(topics=(OffsetFetchResponseTopic(name="a", partitions=parts),))

    def found(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        ones = (Coordinator(key=key, node_id=0, host="127.0.0.1", port=broker.port) for key in request.coordinator_keys)
        return FindCoordinatorResponse(coordinators=tuple(ones))

    async with Scripted(versions=until_version(OffsetFetchRequest, 7)) as broker:
        broker.on(OffsetFetchRequest, old)
        broker.on(FindCoordinatorRequest, found)
        cluster = Cluster(ClientConfig(bootstrap_servers=broker.address))
        await cluster.start()
        reply = await list_group_offsets(cluster, {"g": None, "h": None}, deadline)
        await cluster.close()
    assert reply == {
        "g": {FIRST: OffsetAndMetadata(5), SECOND: OffsetAndMetadata(7)},
        "h": {THIRD: OffsetAndMetadata(9)},
    }


def commits(pair: Pair, **codes: int) -> None:
    def answer(request: OffsetCommitRequest) -> OffsetCommitResponse:
        topics = tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=item.partition_index, error_code=codes.get(f"p{item.partition_index}", 0)
                    )
                    for item in topic.partitions
                ),
            )
            for topic in request.topics
        )
        return OffsetCommitResponse(topics=topics)

    pair.one.on(OffsetCommitRequest, answer)


async def test_offsets_are_set_outside_of_any_generation(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    commits(pair)
    await alter_group_offsets(cluster, "g", {FIRST: 4, SECOND: OffsetAndMetadata(6, "note", 2)}, deadline)
    request: Any = pair.requests(OffsetCommitRequest)[0][0]
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", -1, "")
    first, second = request.topics[0].partitions
    assert (first.committed_offset, first.committed_metadata, first.committed_leader_epoch) == (4, "", -1)
    assert (second.committed_offset, second.committed_metadata, second.committed_leader_epoch) == (6, "note", 2)
    await alter_group_offsets(cluster, "g", {}, deadline)
    assert len(pair.requests(OffsetCommitRequest)[0]) == 1


async def test_members_are_in_the_way(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    commits(pair, p1=ErrorCode.UNKNOWN_MEMBER_ID)
    with pytest.raises(AdminFailed, match=r"a-1, group g.*The group has members: stop them") as failed:
        await alter_group_offsets(cluster, "g", {FIRST: 4, SECOND: 4}, deadline)
    assert list(failed.value.done) == [FIRST]
    error = failed.value.failed[SECOND]
    assert isinstance(error, BrokerError)
    assert (error.topic, error.partition, error.group) == ("a", 1, "g")


async def test_an_unknown_partition_fails_without_a_retry(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    commits(pair, p1=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(AdminFailed, match="describe_topics"):
        await alter_group_offsets(cluster, "g", {FIRST: 4, SECOND: 4}, deadline)
    assert len(pair.requests(OffsetCommitRequest)[0]) == 1


async def test_each_deleted_offset_has_its_own_result(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    parts = (
        OffsetDeleteResponsePartition(partition_index=0),
        OffsetDeleteResponsePartition(partition_index=1, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
    )
    answer = OffsetDeleteResponse(topics=(OffsetDeleteResponseTopic(name="a", partitions=parts),))
    pair.one.on(OffsetDeleteRequest, lambda _: answer)
    with pytest.raises(AdminFailed, match="Members subscribe") as failed:
        await delete_group_offsets(cluster, "g", [FIRST, SECOND], deadline)
    assert list(failed.value.done) == [FIRST]
    pair.one.on(OffsetDeleteRequest, lambda _: OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
    with pytest.raises(AdminFailed) as refused:
        await delete_group_offsets(cluster, "g", [FIRST, SECOND], deadline)
    assert list(refused.value.failed) == [FIRST, SECOND]
    await delete_group_offsets(cluster, "g", [], deadline)
