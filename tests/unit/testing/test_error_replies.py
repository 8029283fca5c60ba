"""Replies that refuse a request: each can be written and names what the request named."""

from __future__ import annotations

from typing import Any

import pytest

from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rota.protocol.registry import APIS
from rota.testing.error_replies import NoErrorReply, check_api, error_reply, supported

REFUSED = ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("name", ["Heartbeat", "JoinGroup", "SyncGroup", "LeaveGroup", "InitProducerId"])
def test_an_api_with_one_error_code_gets_it(name: str) -> None:
    api = next(api for api in APIS.values() if api.name == name)
    for version in api.versions:
        reply = error_reply(name, version, None, REFUSED)
        decoded, _ = codec(api.response, version).decode(codec(api.response, version).encode(reply))
        assert decoded.error_code == REFUSED


def test_each_partition_of_a_commit_is_refused() -> None:
    partitions = tuple(OffsetCommitRequestPartition(partition_index=i, committed_offset=1) for i in (0, 3))
    request = OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=partitions),))
    (topic,) = error_reply("OffsetCommit", 8, request, REFUSED).topics
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(0, REFUSED), (3, REFUSED)]


def test_each_partition_of_a_produce_is_refused() -> None:
    data = (TopicProduceData(name="t", partition_data=(PartitionProduceData(index=2, records=b""),)),)
    reply = error_reply("Produce", 9, ProduceRequest(acks=1, timeout_ms=1, topic_data=data), REFUSED)
    assert reply.responses[0].partition_responses[0].index == 2
    assert codec(type(reply), 9).encode(reply)


def test_each_topic_of_a_metadata_request_is_refused() -> None:
    reply = error_reply("Metadata", 9, MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), REFUSED)
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [("t", REFUSED)]


def empty(request: type[Any]) -> Any:
    needed: dict[str, Any] = {"group_id": "g", "acks": 1, "timeout_ms": 1, "max_wait_ms": 1, "min_bytes": 1}
    names = request.__dataclass_fields__
    return request(**{name: value for name, value in needed.items() if name in names}, topics=())


@pytest.mark.parametrize("name", ["Fetch", "ListOffsets", "OffsetFetch", "Metadata", "CreateTopics"])
def test_an_empty_request_can_be_refused_too(name: str) -> None:
    api = next(api for api in APIS.values() if api.name == name)
    for version in api.versions:
        reply = error_reply(name, version, empty(api.request), REFUSED)
        assert codec(api.response, version).encode(reply)


def test_an_api_without_such_a_reply_is_refused_by_name() -> None:
    with pytest.raises(NoErrorReply, match="Produce"):
        check_api("DescribeLogDirs*")
    assert {"Produce", "Fetch", "OffsetCommit", "Heartbeat", "FindCoordinator"} <= set(supported())
