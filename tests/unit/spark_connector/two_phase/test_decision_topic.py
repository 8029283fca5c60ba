"""The decisions of several queries in one topic of a real broker."""

from __future__ import annotations

import asyncio

import pytest
from tests.interop.kit import unique
from tests.unit.spark_connector.conftest import Write

from rota.client import Admin, AdminConfig, ConfigResource, TimedOut, Unreachable
from rota.client.producer.producer import Producer
from rota.spark_connector.two_phase.decision import Decision
from rota.spark_connector.two_phase.decision_topic import WINDOW_RECORDS, DecisionTopic, last_decision


@pytest.fixture
def settings(bootstrap: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap, "acks": "all", "compression.type": "gzip"}


async def write_all(settings: dict[str, str], topic: str, query: str, *decisions: Decision) -> None:
    async with DecisionTopic(settings, topic, query, f"id-{topic}-{query}") as decisions_topic:
        for decision in decisions:
            await decisions_topic.write(decision)


def last(settings: dict[str, str], topic: str, query: str) -> Decision | None:
    return asyncio.run(last_decision(settings, topic, query, is_exact=True))


def test_it_is_created_compacted_and_has_the_last_decision_of_each_query(settings: dict[str, str]) -> None:
    topic = unique("decisions")

    async def conversation() -> dict[str, str | None]:
        async with DecisionTopic(settings, topic, "q", f"id-{topic}-q") as decisions:
            assert await decisions.last() is None
        await write_all(settings, topic, "q", Decision(0, ()), Decision(1, ()))
        await write_all(settings, topic, "r", Decision(5, ()))
        async with Admin(AdminConfig.from_properties({"bootstrap.servers": settings["bootstrap.servers"]})) as admin:
            (found,) = (await admin.describe_configs([ConfigResource.topic(topic)])).values()
        return {name: entry.value for name, entry in found.items()}

    assert asyncio.run(conversation())["cleanup.policy"] == "compact"
    assert last(settings, topic, "q") == Decision(1, ())
    assert last(settings, topic, "r") == Decision(5, ())
    assert last(settings, topic, "s") is None


def test_a_decision_is_found_behind_many_others(settings: dict[str, str], write: Write) -> None:
    topic = unique("decisions")
    asyncio.run(write_one(settings, topic))
    write(topic, 0, [(b"other", b"x")] * (WINDOW_RECORDS * 20))
    assert last(settings, topic, "q") == Decision(3, ())


async def write_one(settings: dict[str, str], topic: str) -> None:
    await write_all(settings, topic, "q", Decision(3, ()))


def test_a_tombstone_is_no_decision(settings: dict[str, str], write: Write) -> None:
    topic = unique("decisions")
    asyncio.run(write_one(settings, topic))
    write(topic, 0, [(b"q", None)])
    assert last(settings, topic, "q") is None


def test_a_decision_above_an_open_transaction_is_waited_for(settings: dict[str, str]) -> None:
    topic = unique("decisions")

    async def conversation() -> Decision | None:
        await write_one(settings, topic)
        own = {"transactional.id": unique("other")}
        async with Producer.from_properties({**settings, **own}) as other:
            await other.begin_transaction()
            await other.send_and_wait(topic, b"x", b"other", partition=0)
            async with DecisionTopic(settings, topic, "q", f"id-{topic}-q") as decisions:
                await decisions.write(Decision(4, ()))
                assert await last_decision(settings, topic, "q", is_exact=False) == Decision(3, ())
                await read_too_late(settings, topic)
                reading = asyncio.ensure_future(decisions.last())
                await asyncio.sleep(0)
                await other.abort_transaction()
                return await reading

    assert asyncio.run(conversation()) == Decision(4, ())


async def read_too_late(settings: dict[str, str], topic: str) -> None:
    """Read until the time for it is over; on a busy machine the first times are too short to reach the broker."""
    for timeout_ms in (50, 500, 5_000):
        short = {**settings, "default.api.timeout.ms": str(timeout_ms), "request.timeout.ms": str(timeout_ms)}
        try:
            with pytest.raises(TimedOut, match="open transaction"):
                await last_decision(short, topic, "q", is_exact=True)
        except Unreachable:
            continue
        return
    pytest.fail("the broker could not be reached")
