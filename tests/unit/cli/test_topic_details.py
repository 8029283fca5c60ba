"""Topics as JSON."""

from __future__ import annotations

import pytest

from rota.cli.topic_details import describe_existing, topic_document
from rota.client import Admin, AdminConfig, AdminFailed, NewTopic, PartitionInfo, TopicDescription
from rota.testing import running_broker


def test_a_partition_without_a_leader_has_none() -> None:
    topic = TopicDescription("t", bytes(16), False, (PartitionInfo("t", 0, -1, 3, (1, 2), (1,), (2,)),))
    assert topic_document(topic)["partitions"] == [
        {"partition": 0, "leader": None, "leader_epoch": 3, "replicas": [1, 2], "isr": [1], "offline": [2]}
    ]


async def test_a_topic_that_was_deleted_since_it_was_listed_is_left_out() -> None:
    with running_broker() as running:
        address = running.bootstrap_servers
        async with Admin(AdminConfig(bootstrap_servers=address)) as admin:
            await admin.create_topics([NewTopic("b"), NewTopic("a")])
            assert [topic.name for topic in await describe_existing(admin, ["b", "deleted", "a"])] == ["a", "b"]
            assert await describe_existing(admin, []) == []
            with pytest.raises(AdminFailed):
                await describe_existing(admin, ["a", "not a name"])
