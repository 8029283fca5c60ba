"""The cluster: the same answers as librdkafka's AdminClient gets, on both brokers."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from tests.client.admin_kit import admin, parts, theirs, told

from rota.client.administer.admin import Admin
from rota.client.administer.topics import NewTopic
from rota.client.errors import AdminFailed
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode

__all__ = ["admin", "theirs"]


async def test_the_cluster_is_described(admin: Admin, theirs: AdminClient) -> None:
    ours, other = await admin.describe_cluster(), told(theirs.describe_cluster())
    assert ours.cluster_id == other.cluster_id
    assert ours.controller is not None
    assert ours.controller.id == other.controller.id
    assert [(one.id, one.host, one.port, one.rack) for one in ours.nodes] == [
        (one.id, one.host, one.port, one.rack) for one in other.nodes
    ]


async def test_where_the_right_replica_leads_no_election_is_needed(admin: Admin, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 2)])
    assert await admin.elect_leaders(parts(topic, 2)) == dict.fromkeys(parts(topic, 2), False)
    assert await admin.elect_leaders(parts(topic, 1), unclean=True) == dict.fromkeys(parts(topic, 1), False)
    with pytest.raises(AdminFailed) as failed:
        await admin.elect_leaders([TopicPartition(topic, 0), TopicPartition(topic, 9)])
    assert failed.value.codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert failed.value.done == {TopicPartition(topic, 0): False}
