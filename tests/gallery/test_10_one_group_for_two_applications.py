"""Two applications that read different topics use one group id: each start, stop or crash of the one is a rebalance of
the other, and only members that subscribe to a topic share its partitions.

Repair: a group id for each application.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from tests.gallery.kit import produce

from rota.client import Consumer, ConsumerConfig
from rota.testing import RunningBroker


@asynccontextmanager
async def application(broker: RunningBroker, group: str, topic: str) -> AsyncIterator[Consumer]:
    """A member that has read the one record of its topic."""
    produce(broker, topic, "a")
    config = ConsumerConfig(
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group,
        client_id=topic,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=50,
    )
    async with Consumer(config) as consumer:
        consumer.subscribe([topic])
        yield consumer


async def generations(broker: RunningBroker, groups: tuple[str, str], topics: tuple[str, str]) -> int:
    """By how many generations the first application's group moves on while the second one starts."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(application(broker, groups[0], topics[0]))
        await first.getone()
        before = broker.group(groups[0]).generation
        second = await stack.enter_async_context(application(broker, groups[1], topics[1]))
        received: list[object] = []
        while not received:
            await first.getmany(timeout_ms=20)
            received += (await second.getmany(timeout_ms=20)).values()
        return broker.group(groups[0]).generation - before


async def test_the_start_of_the_one_stops_the_other(rota_broker: RunningBroker, rota_topic: str) -> None:
    topics = (rota_topic, f"{rota_topic}-other")
    assert await generations(rota_broker, (rota_topic, rota_topic), topics) == 1


async def test_with_the_fix_no_rebalance_occurs(rota_broker: RunningBroker, rota_topic: str) -> None:
    topics = (rota_topic, f"{rota_topic}-other")
    assert await generations(rota_broker, topics, topics) == 0
