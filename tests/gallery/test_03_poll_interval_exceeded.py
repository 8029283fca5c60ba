"""One slow record takes longer than `max.poll.interval.ms`: the member is out of its group, cannot commit, and the
record is delivered again; it is as slow then, and so on for ever.

Repair: pause the partitions, process in a task, and go on polling, which returns nothing and keeps the member.
"""

from __future__ import annotations

import asyncio

import pytest
from tests.gallery.kit import produce

from rota.client import Consumer, ConsumerConfig, KafkaError
from rota.testing import RunningBroker

POLL_INTERVAL_MS = 500


def config(broker: RunningBroker, topic: str) -> ConsumerConfig:
    return ConsumerConfig(
        bootstrap_servers=broker.bootstrap_servers,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_interval_ms=POLL_INTERVAL_MS,
        heartbeat_interval_ms=20,
    )


async def slow_work(broker: RunningBroker, group: str) -> None:
    """Takes until the broker has lost the member, or three poll intervals."""
    for _ in range(30):
        if not broker.group(group).describe()["members"]:
            return
        await asyncio.sleep(3 * POLL_INTERVAL_MS / 1000 / 30)


async def test_the_member_is_out_and_its_commit_is_refused(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "slow")
    async with Consumer(config(rota_broker, rota_topic)) as consumer:
        consumer.subscribe([rota_topic])
        await consumer.getone()
        await slow_work(rota_broker, rota_topic)
        with pytest.raises(KafkaError):
            await consumer.commit()
        assert (await consumer.getone()).value == b"slow"  # again


async def test_repaired_it_stays_a_member(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "slow", "next")
    async with Consumer(config(rota_broker, rota_topic)) as consumer:
        consumer.subscribe([rota_topic])
        await consumer.getone()
        consumer.pause()
        work = asyncio.create_task(slow_work(rota_broker, rota_topic))
        while not work.done():
            assert not await consumer.getmany(timeout_ms=POLL_INTERVAL_MS // 20)
        consumer.resume()
        await consumer.commit()
        assert (await consumer.getone()).value == b"next"
