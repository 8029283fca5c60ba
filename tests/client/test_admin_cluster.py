"""The cluster: the same answers as librdkafka's AdminClient gets, on both brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.client.admin_kit import admin, answer, parts, theirs
from tests.client.fault_proxy import FaultProxy

from rota.client.admin.admin import Admin
from rota.client.admin.topics import NewTopic
from rota.client.config import AdminConfig
from rota.client.errors import AdminFailed
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode

__all__ = ["admin", "theirs"]
DESCRIBE_GROUPS, LIST_GROUPS, CREATE_TOPICS = 15, 16, 19
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
}


async def test_the_cluster_is_described(admin: Admin, theirs: AdminClient) -> None:
    ours, other = await admin.describe_cluster(), answer(theirs.describe_cluster())
    assert ours.cluster_id == other.cluster_id
    assert ours.controller is not None
    assert ours.controller.id == other.controller.id
    assert [(item.id, item.host, item.port, item.rack) for item in ours.nodes] == [
        (item.id, item.host, item.port, item.rack) for item in other.nodes
    ]


async def test_where_the_right_replica_leads_no_election_is_needed(admin: Admin, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 2)])
    assert await admin.elect_leaders(parts(topic, 2)) == dict.fromkeys(parts(topic, 2), False)
    assert await admin.elect_leaders(parts(topic, 1), unclean=True) == dict.fromkeys(parts(topic, 1), False)
    with pytest.raises(AdminFailed) as failed:
        await admin.elect_leaders([TopicPartition(topic, 0), TopicPartition(topic, 9)])
    assert failed.value.codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert failed.value.done == {TopicPartition(topic, 0): False}


# ---- three brokers, some of which fail


@pytest.fixture
async def proxy_admin(proxy: FaultProxy) -> AsyncIterator[Admin]:
    async with Admin(AdminConfig(bootstrap_servers=proxy.bootstrap, **QUICK)) as admin:
        yield admin


async def test_groups_are_found_where_they_have_moved(
    proxy: FaultProxy, proxy_admin: Admin, topic: str, group: str
) -> None:
    await proxy_admin.create_topics([NewTopic(topic, 1)])
    groups = [f"{group}-{number}" for number in range(4)]
    for name in groups:
        await proxy_admin.alter_group_offsets(name, {TopicPartition(topic, 0): 0})
    for number, name in enumerate(groups):
        proxy.coordinate(name, number % 2 + 1)
    assert set(await proxy_admin.list_group_offsets(groups)) == set(groups)
    answer = await proxy_admin.describe_groups(groups)
    assert [item.coordinator and item.coordinator.id for item in answer.values()] == [1, 2, 1, 2]
    described_before = proxy.request_count(DESCRIBE_GROUPS)
    await proxy_admin.describe_groups(groups)
    assert proxy.request_count(DESCRIBE_GROUPS) - described_before == 2  # one for each coordinator


async def test_list_groups_requests_every_broker(proxy: FaultProxy, proxy_admin: Admin, group: str) -> None:
    await proxy_admin.list_groups()
    assert [proxy.request_count(LIST_GROUPS, node) for node in (1, 2, 3)] == [1, 1, 1]
    await proxy.stop_brokers(3)
    with pytest.raises(AdminFailed) as failed:
        await proxy_admin.list_groups(timeout_ms=1_000)
    assert (sorted(failed.value.done), list(failed.value.failed)) == ([1, 2], [3])


async def test_a_creation_with_a_lost_response_reports_topic_already_exists(
    proxy: FaultProxy, proxy_admin: Admin, topic: str
) -> None:
    lost = proxy.close(CREATE_TOPICS, after=True)
    with pytest.raises(AdminFailed) as failed:
        await proxy_admin.create_topics([NewTopic(topic, 1)])
    assert lost.hits == 1
    assert failed.value.codes == {ErrorCode.TOPIC_ALREADY_EXISTS}


async def test_cancelling_one_call_does_not_affect_the_others(proxy: FaultProxy, proxy_admin: Admin) -> None:
    held = proxy.hold(LIST_GROUPS, times=None)
    listing = asyncio.create_task(proxy_admin.list_groups())
    await held.happened(3)
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing
    held.end()
    await proxy_admin.list_groups()
