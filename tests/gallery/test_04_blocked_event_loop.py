"""Blocking work in a coroutine stops the event loop, and with it the heartbeats: the member's session expires.

Repair: `await asyncio.to_thread(work)`; the loop goes on and sends heartbeats. Twelve seconds pass here at once.
"""

from __future__ import annotations

import asyncio
import time

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError
from tests.gallery.kit import kafka_python, produce

from rota.testing import RunningBroker

SESSION_MS, STEP_S, STEPS, HEARTBEAT_S = 10_000, 4, 3, 0.5


def work(broker: RunningBroker, client_id: str) -> None:
    """Twelve seconds of blocking work. Each four of them a heartbeat comes, if the client can send one."""
    with broker.faults.delay(0, api="Heartbeat", client_id=client_id) as heartbeats:
        for _ in range(STEPS):
            before, deadline_s = heartbeats.hits, time.monotonic() + HEARTBEAT_S
            broker.advance(seconds=STEP_S, expire_sessions=True)
            while heartbeats.hits == before and time.monotonic() < deadline_s:
                time.sleep(0.01)


async def member(broker: RunningBroker, topic: str, *, in_thread: bool) -> None:
    settings = kafka_python(broker, topic, client_id=topic, session_timeout_ms=SESSION_MS)
    async with AIOKafkaConsumer(topic, **settings) as consumer:
        await consumer.getone()
        if in_thread:
            await asyncio.to_thread(work, broker, topic)
        else:
            work(broker, topic)
        await consumer.commit()


async def test_the_member_is_removed_and_its_commit_refused(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "a")
    with pytest.raises(CommitFailedError):
        await member(rota_broker, rota_topic, in_thread=False)
    assert rota_broker.group(rota_topic).committed() == {}


async def test_repaired_it_stays_and_commits(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "a")
    await member(rota_broker, rota_topic, in_thread=True)
    assert rota_broker.group(rota_topic).committed() == {(rota_topic, 0): 1}
