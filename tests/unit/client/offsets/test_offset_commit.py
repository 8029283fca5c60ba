"""OffsetCommit requests: how they name topics, and what their responses mean."""

from __future__ import annotations

import pytest
from tests.unit.client.consumer.bookkeeper import GROUP, Bookkeeper, consuming
from tests.unit.client.consumer.kit import P0, P1, TOPIC, TOPIC_ID
from tests.unit.client.network.scripted import eventually

from rota.client.errors import UnknownTopic
from rota.client.offsets.offset_commit import _commit_codes, commit
from rota.client.types import GroupMetadata, OffsetAndMetadata
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponseTopic
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

MEMBER = GroupMetadata(GROUP, 3, "teller-1", "counter-1")


def commits(keeper: Bookkeeper) -> list[OffsetCommitRequest]:
    return [request for request in keeper.brokers[0].requests if isinstance(request, OffsetCommitRequest)]


async def test_a_commit_names_its_member_and_its_topics_by_id() -> None:
    keeper = Bookkeeper(2)
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign([P0, P1])
        cluster = consumer._cluster
        await eventually(lambda: cluster.metadata.topic_id(TOPIC))
        await commit(cluster, MEMBER, {P0: OffsetAndMetadata(4, "note", 2), P1: OffsetAndMetadata(5)})
    [request] = commits(keeper)
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == (GROUP, 3, "teller-1")
    assert request.group_instance_id == "counter-1"
    [topic] = request.topics
    assert topic.topic_id == TOPIC_ID
    sent = [(item.partition_index, item.committed_offset, item.committed_metadata) for item in topic.partitions]
    assert sent == [(0, 4, "note"), (1, 5, "")]


async def test_a_commit_for_a_topic_that_was_created_again_is_not_tried_for_ever() -> None:
    keeper = Bookkeeper(1)
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign([P0])
        cluster = consumer._cluster
        await eventually(lambda: cluster.metadata.topic_id(TOPIC))
        keeper.topic_id, keeper.refusals = bytes(range(1, 17)), [int(ErrorCode.UNKNOWN_TOPIC_ID)] * 100
        with pytest.raises(UnknownTopic, match="deleted, and perhaps created again"):
            await commit(cluster, MEMBER, {P0: OffsetAndMetadata(4)})
    assert len(commits(keeper)) <= 2


async def test_c14_a_commit_for_a_deleted_topic_is_not_one_for_the_next_of_its_name() -> None:
    keeper = Bookkeeper(1)
    deleted = MetadataResponseTopic(name=TOPIC, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign([P0])
        cluster = consumer._cluster
        await eventually(lambda: cluster.metadata.topic_id(TOPIC))
        for broker in keeper.brokers:
            broker.on(MetadataRequest, lambda _: keeper.brokers[0].metadata(deleted))
        await cluster.refresh()
        keeper.refusals = [int(ErrorCode.UNKNOWN_TOPIC_ID)]
        with pytest.raises(UnknownTopic):
            await commit(cluster, MEMBER, {P0: OffsetAndMetadata(4)})
    [request] = commits(keeper)
    assert [topic.topic_id for topic in request.topics] == [TOPIC_ID]


async def test_an_empty_commit_sends_no_request() -> None:
    keeper = Bookkeeper(1)
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        await commit(consumer._cluster, MEMBER, {})
    assert commits(keeper) == []


def test_codes_are_found_by_the_id_or_by_the_name_of_the_topic() -> None:
    partitions = (OffsetCommitResponsePartition(partition_index=1, error_code=22),)
    by_id = OffsetCommitResponse(topics=(OffsetCommitResponseTopic(topic_id=TOPIC_ID, partitions=partitions),))
    by_name = OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name=TOPIC, partitions=partitions),))
    assert _commit_codes(by_id, {TOPIC_ID: TOPIC}) == _commit_codes(by_name, {}) == {P1: 22}
