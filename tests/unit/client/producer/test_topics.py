"""Finding topics, and following what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.client.network.scripted import eventually
from tests.unit.client.producer.kit import accumulator
from tests.unit.client.producer.leader import Leader, settings

from rota.client.errors import BrokerError, IllegalUse, TimedOut
from rota.client.network.cluster import Cluster
from rota.client.producer.topics import Topics
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest


@asynccontextmanager
async def looking(leader: Leader, **more: Any) -> AsyncIterator[tuple[Topics, Cluster]]:
    config = settings(leader, **more)
    cluster = Cluster(config, auto_create=True)
    await cluster.start()
    try:
        yield Topics(config, cluster, accumulator()), cluster
    finally:
        await cluster.close()


async def test_a_topic_is_found_once() -> None:
    async with Leader(partitions=3) as leader, looking(leader) as (topics, _):
        route = await topics.find("t", None)
        requests = len(leader.requests)
        assert await topics.find("t", 2) is route is topics.routes["t"]
        assert len(leader.requests) == requests
        assert [queue.leader for queue in route.queues] == [0, 0, 0]


@pytest.mark.parametrize("name", ["\ud800", "t" * 40_000])
async def test_nc14_a_name_that_no_request_can_carry_delays_no_other_topic(name: str) -> None:
    async with Leader() as leader, looking(leader, max_block_ms=300) as (topics, _):
        refused = asyncio.ensure_future(topics.find(name, None))
        await asyncio.sleep(0)
        await topics.find("t", None)
        with pytest.raises(IllegalUse, match=r"topic is '.ud800'|topic has 40000 bytes"):
            await refused
        assert leader.connections == 1


async def test_concurrent_lookups_return_the_same_route() -> None:
    async with Leader() as leader, looking(leader) as (topics, _):
        routes = await asyncio.gather(*[topics.find("t", None) for _ in range(5)])
        assert len({id(route) for route in routes}) == 1


async def test_an_unknown_topic_is_not_requested_after_the_last_lookup() -> None:
    async with Leader() as leader:
        leader.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        async with looking(leader, max_block_ms=20) as (topics, cluster):
            with pytest.raises(TimedOut, match=r"finding topic nowhere.*UNKNOWN_TOPIC_OR_PARTITION"):
                await topics.find("nowhere", None)
            leader.error = 0
            await topics.find("t", None)
            before = len(leader.requests)
            await cluster.refresh()
            last = next(item for item in reversed(leader.requests[before:]) if isinstance(item, MetadataRequest))
            assert [topic.name for topic in last.topics or ()] == ["t"]


async def test_a_topic_that_appears_is_found() -> None:
    async with Leader() as leader:
        leader.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        async with looking(leader) as (topics, _):
            finding = asyncio.create_task(topics.find("t", None))
            await eventually(lambda: sum(isinstance(item, MetadataRequest) for item in leader.requests) > 2)
            leader.error = 0
            assert len((await finding).queues) == 2


async def test_invalid_topics_and_partitions_are_refused_at_once() -> None:
    async with Leader() as leader, looking(leader) as (topics, _):
        with pytest.raises(IllegalUse, match="a topic is a str"):
            await topics.find(b"t", None)  # type: ignore[arg-type]
        with pytest.raises(IllegalUse, match="partition is -1"):
            await topics.find("t", -1)
        leader.error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
            await topics.find("secret", None)
        leader.error = 0
        assert (await topics.find("secret", None)).queues, "the next call asks again: it may be allowed now"


async def test_new_partitions_and_new_leaders_are_taken_over() -> None:
    async with Leader(partitions=1) as leader, looking(leader) as (topics, cluster):
        cluster.on_change(topics.update)
        route = await topics.find("t", None)
        leader.partitions = 3
        await cluster.refresh()
        assert len(route.queues) == 3


async def test_after_the_end_nothing_is_kept() -> None:
    async with Leader() as leader, looking(leader) as (topics, _):
        finding = asyncio.create_task(topics.find("t", None))
        await asyncio.sleep(0)
        topics.close()
        await finding
        assert topics.routes == {}
