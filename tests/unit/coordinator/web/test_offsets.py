"""Offsets of partitions and groups, asked of leaders and coordinators."""

from __future__ import annotations

import pytest
from tests.chaos.requests import batch, commit, create_topic, produce
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.web.broker_requests import ApiError, BrokerRequests
from rota.coordinator.web.offsets import EARLIEST, UNKNOWN, Committed, committed, ends, offsets_at, topic_named
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest


async def test_unknown_is_minus_one(world: World) -> None:
    await create_topic(world.kafka, "t", 1)
    requests = BrokerRequests(world.broker.node)
    await world.kafka.send_request(produce(0, batch(b"one")), 9)
    assert await ends(requests, [("t", 0), ("t", 1), ("missing", 0)]) == {
        ("t", 0): 1,
        ("t", 1): UNKNOWN,
        ("missing", 0): UNKNOWN,
    }
    assert await offsets_at(requests, {("t", 0): EARLIEST}) == {("t", 0): 0}
    with pytest.raises(ApiError, match="no topic 'missing'"):
        topic_named(requests, "missing")


async def test_the_committed_offsets_of_a_group(world: World) -> None:
    await create_topic(world.kafka, "t", 2)
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    await world.kafka.send_request(commit("g", 1, 5, "note"), 7)
    requests = BrokerRequests(world.broker.node)
    assert await committed(requests, "g") == {("t", 1): Committed(5, "note")}
    assert await committed(requests, "other") == {}
