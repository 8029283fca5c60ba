"""A Cluster behind the fault proxy: brokers that close connections, stop answering, lose leadership, stop and start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.fault_proxy import FaultProxy
from tests.interop.kit import unique

from rota.client.config import ClientConfig
from rota.client.errors import BrokerError, CommitFailed, TimedOut, Unreachable
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Coordinator, Node
from rota.client.offsets.list_offsets import EARLIEST, LATEST, list_offsets
from rota.client.offsets.offset_commit import commit
from rota.client.offsets.offset_fetch import committed
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.list_groups import ListGroupsRequest

LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, LIST_GROUPS = 2, 3, 8, 9, 10, 16
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "default_api_timeout_ms": 20_000,
}
HERE = OffsetAndMetadata(3, "so far")
PARTITIONS = 3


@asynccontextmanager
async def started(proxy: FaultProxy, **more: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(ClientConfig(bootstrap_servers=proxy.bootstrap, **QUICK | more))
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


async def made(cluster: Cluster, name: str, partitions: int = PARTITIONS) -> None:
    """A topic whose leaders answer."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = await cluster.send_request(
        cluster.metadata.controller, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
    )
    assert answer.topics[0].error_code == 0
    cluster.set_topics([name])
    await cluster.until(lambda known: known.partitions(name), what="the new topic")
    await list_offsets(cluster, {TopicPartition(name, at): EARLIEST for at in range(partitions)})


async def test_the_proxy_looks_like_a_cluster(proxy: FaultProxy, topic: str) -> None:
    async with started(proxy) as cluster:
        await made(cluster, topic)
        assert sorted(cluster.metadata.brokers) == [1, 2, 3]
        assert [cluster.metadata.leader(TopicPartition(topic, at)) for at in range(3)] == [1, 2, 3]
        assert await cluster.coordinator(unique("group")) == 3


async def test_a_moved_leader_is_followed(proxy: FaultProxy, topic: str) -> None:
    async with started(proxy) as cluster:
        await made(cluster, topic)
        partition = TopicPartition(topic, 0)
        before = cluster.metadata.info(partition)
        proxy.lead(partition, 3)
        found = await list_offsets(cluster, {TopicPartition(topic, at): LATEST for at in range(3)})
        assert {at: item.offset for at, item in found.items() if item} == {
            TopicPartition(topic, at): 0 for at in range(3)
        }
        after = cluster.metadata.info(partition)
        assert before is not None
        assert after is not None
        assert (before.leader, after.leader, after.leader_epoch) == (1, 3, before.leader_epoch + 1)


async def test_old_metadata_does_not_bring_an_old_leader_back(proxy: FaultProxy, topic: str) -> None:
    async with started(proxy) as cluster:
        await made(cluster, topic)
        partition = TopicPartition(topic, 0)
        proxy.serve_old_metadata()
        proxy.lead(partition, 2)
        proxy.serve_current_metadata(2)
        await cluster.until(lambda known: known.leader(partition) == 2 or None, what="the move")
        for _ in range(5):
            assert (await cluster.refresh()).leader(partition) == 2


async def test_leaders_are_found_though_metadata_lags(proxy: FaultProxy, topic: str) -> None:
    async with started(proxy) as cluster:
        await made(cluster, topic)
        partition = TopicPartition(topic, 0)
        proxy.serve_old_metadata()
        proxy.lead(partition, 2)
        requests = proxy.request_count(METADATA)
        looking = asyncio.ensure_future(list_offsets(cluster, {partition: LATEST}))
        async with asyncio.timeout(20):
            while proxy.request_count(METADATA) < requests + 3:
                await asyncio.sleep(0.01)
        assert not looking.done()
        proxy.serve_current_metadata()
        assert (await looking)[partition] is not None


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_closed_connection_is_an_error_and_is_opened_again(proxy: FaultProxy, after: bool) -> None:
    async with started(proxy) as cluster:
        await cluster.send_request(1, ListGroupsRequest())
        proxy.close(LIST_GROUPS, after=after)
        with pytest.raises(Unreachable):
            await cluster.send_request(1, ListGroupsRequest())
        assert (await cluster.send_request(1, ListGroupsRequest())).error_code == 0


async def test_half_an_answer_is_none(proxy: FaultProxy) -> None:
    async with started(proxy) as cluster:
        proxy.cut(LIST_GROUPS)
        with pytest.raises(Unreachable):
            await cluster.send_request(1, ListGroupsRequest())
        assert (await cluster.send_request(1, ListGroupsRequest())).error_code == 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_silent_broker_times_out_and_is_dialled_again(proxy: FaultProxy, after: bool) -> None:
    async with started(proxy, request_timeout_ms=300) as cluster:
        proxy.swallow(LIST_GROUPS, after=after)
        with pytest.raises(TimedOut):
            await cluster.send_request(1, ListGroupsRequest())
        assert (await cluster.send_request(1, ListGroupsRequest(), timeout_ms=10_000)).error_code == 0


async def test_one_silent_broker_does_not_keep_metadata_away(proxy: FaultProxy, topic: str) -> None:
    async with started(proxy, request_timeout_ms=300) as cluster:
        await made(cluster, topic)
        proxy.freeze(1)
        proxy.lead(TopicPartition(topic, 0), 2)
        metadata = cluster.metadata
        async with asyncio.timeout(20):
            while metadata.leader(TopicPartition(topic, 0)) != 2:
                try:
                    metadata = await cluster.refresh()
                except (TimedOut, Unreachable):
                    continue
        proxy.thaw(1)


async def test_cancelling_one_request_does_not_affect_the_others(proxy: FaultProxy) -> None:
    async with started(proxy) as cluster:
        held = proxy.hold(LIST_GROUPS, after=True)
        first = asyncio.ensure_future(cluster.send_request(1, ListGroupsRequest()))
        await held.happened()
        others = [asyncio.ensure_future(cluster.send_request(1, ListGroupsRequest())) for _ in range(5)]
        first.cancel()
        held.release()
        assert [item.error_code for item in await asyncio.gather(*others)] == [0] * 5
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_a_cluster_that_was_away_is_found_again(proxy: FaultProxy, topic: str) -> None:
    async with started(proxy, request_timeout_ms=1_000) as cluster:
        await made(cluster, topic)
        await proxy.stop_brokers()
        waiting = asyncio.ensure_future(list_offsets(cluster, {TopicPartition(topic, 0): LATEST}))
        with pytest.raises((Unreachable, TimedOut)):
            await cluster.send_request(2, ListGroupsRequest())
        await proxy.start_brokers()
        assert (await waiting)[TopicPartition(topic, 0)] is not None


async def test_a_cluster_that_moved_is_found_by_its_bootstrap_servers(bootstrap: str, topic: str) -> None:
    """KIP-899: all brokers that are known are gone; the bootstrap server knows the new ones."""
    async with FaultProxy(bootstrap) as proxy, FaultProxy(bootstrap) as later:
        config = ClientConfig(bootstrap_servers=f"{proxy.bootstrap},{later.bootstrap}", **QUICK)
        await later.stop_brokers()
        cluster = Cluster(config)
        await cluster.start()
        try:
            await made(cluster, topic)
            await proxy.stop_brokers()
            await later.start_brokers()
            found = await list_offsets(cluster, {TopicPartition(topic, 0): LATEST})
            assert found[TopicPartition(topic, 0)] is not None
            ports = {broker.port for broker in cluster.metadata.brokers.values()}
            assert ports == {broker.port for broker in later.brokers.values()}
        finally:
            await cluster.close()


async def test_a_moved_coordinator_is_found_again(proxy: FaultProxy, topic: str, group: str) -> None:
    async with started(proxy) as cluster:
        await made(cluster, topic)
        partition = TopicPartition(topic, 0)
        await commit(cluster, GroupMetadata(group), {partition: HERE})
        for node in (1, 2, 3):
            proxy.coordinate(group, node)
            assert await committed(cluster, GroupMetadata(group), [partition]) == {partition: HERE}
            await commit(cluster, GroupMetadata(group), {partition: HERE})
            assert await cluster.coordinator(group) == node


async def test_a_silent_coordinator_is_given_up(proxy: FaultProxy, topic: str, group: str) -> None:
    async with started(proxy, request_timeout_ms=300) as cluster:
        await made(cluster, topic)
        partition = TopicPartition(topic, 0)
        await commit(cluster, GroupMetadata(group), {partition: HERE})
        proxy.freeze(3)
        proxy.coordinate(group, 1)
        assert await committed(cluster, GroupMetadata(group), [partition]) == {partition: HERE}
        proxy.thaw(3)


AGAIN_OF_A_GROUP = (14, 15, 16)
AGAIN_OF_A_LEADER = (5, 6, 7, 9, 74, 75, 78)


@pytest.mark.parametrize("code", [*AGAIN_OF_A_GROUP, 7], ids=str)
async def test_commits_retry_transient_errors(rota_proxy: FaultProxy, topic: str, group: str, code: int) -> None:
    async with started(rota_proxy) as cluster:
        await made(cluster, topic)
        partition = TopicPartition(topic, 0)
        faults = [rota_proxy.refuse(OFFSET_COMMIT, code), rota_proxy.refuse(OFFSET_FETCH, 14 if code == 7 else code)]
        faults.append(rota_proxy.refuse(FIND_COORDINATOR, 15))
        await commit(cluster, GroupMetadata(group), {partition: HERE})
        assert await committed(cluster, GroupMetadata(group), [partition]) == {partition: HERE}
        assert [fault.hits for fault in faults] == [1, 1, 1]


async def test_unstable_offsets_are_fetched_again(proxy: FaultProxy, topic: str, group: str) -> None:
    async with started(proxy) as cluster:
        await made(cluster, topic)
        partition = TopicPartition(topic, 0)
        await commit(cluster, GroupMetadata(group), {partition: HERE})
        unstable = proxy.refuse(OFFSET_FETCH, 88, times=2)
        assert await committed(cluster, GroupMetadata(group), [partition]) == {partition: HERE}
        assert unstable.hits == 2


@pytest.mark.parametrize(
    ("code", "raised"),
    [(22, CommitFailed), (25, CommitFailed), (12, BrokerError), (28, BrokerError), (30, BrokerError)],
)
async def test_a_fatal_commit_error_is_raised(
    rota_proxy: FaultProxy, topic: str, group: str, code: int, raised: type[Exception]
) -> None:
    async with started(rota_proxy) as cluster:
        await made(cluster, topic)
        refused = rota_proxy.refuse(OFFSET_COMMIT, code)
        with pytest.raises(raised):
            await commit(cluster, GroupMetadata(group, 1, "m"), {TopicPartition(topic, 0): HERE})
        assert refused.hits == 1
        assert rota_proxy.request_count(OFFSET_COMMIT) == 1


@pytest.mark.parametrize("code", AGAIN_OF_A_LEADER, ids=str)
async def test_list_offsets_retries_transient_errors(rota_proxy: FaultProxy, topic: str, code: int) -> None:
    async with started(rota_proxy) as cluster:
        await made(cluster, topic)
        refused = rota_proxy.refuse(LIST_OFFSETS, code)
        found = await list_offsets(cluster, {TopicPartition(topic, at): LATEST for at in range(PARTITIONS)})
        assert [item.offset for item in found.values() if item] == [0] * PARTITIONS
        assert refused.hits == 1


async def test_a_request_with_a_lost_response_is_repeated(proxy: FaultProxy, topic: str, group: str) -> None:
    async with started(proxy) as cluster:
        await made(cluster, topic)
        partition = TopicPartition(topic, 0)
        lost = [proxy.close(api, after=True) for api in (OFFSET_COMMIT, OFFSET_FETCH, LIST_OFFSETS, FIND_COORDINATOR)]
        await commit(cluster, GroupMetadata(group), {partition: HERE})
        assert await committed(cluster, GroupMetadata(group), [partition]) == {partition: HERE}
        assert (await list_offsets(cluster, {partition: LATEST}))[partition] is not None
        assert [fault.hits for fault in lost] == [1] * 4


async def test_calls_end_by_their_deadline_with_frozen_brokers(proxy: FaultProxy, group: str) -> None:
    async with started(proxy, request_timeout_ms=200) as cluster:
        proxy.freeze()
        requests = ListGroupsRequest()
        for target in (Node(1), Coordinator(group)):
            with pytest.raises(TimedOut):
                await cluster.send_request_until(target, requests, lambda _: [], what="asking the deaf", timeout_ms=300)
        proxy.thaw()
