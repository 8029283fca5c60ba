"""The lag of real groups on a live broker: records, the age of the first unread one, what expires when."""

from __future__ import annotations

import pytest
from tests.chaos.requests import batch, commit, create_topic, produce
from tests.unit.coordinator.web.conftest import World, members

from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.web.broker_requests import ApiError, BrokerRequests
from rota.coordinator.web.lag_source import LagSource, assigned


def lag_of(world: World) -> Lag:
    node = world.broker.node
    return Lag(LagSource(BrokerRequests(node)), now_ms=node.now_ms, wall_ms=node.wall_ms)


async def test_the_lag_of_members_that_committed(world: World) -> None:
    await create_topic(world.kafka, "t", 4)
    await world.kafka.send_request(produce(1, batch(b"one", b"two")), 9)
    async with members(world, "g", 1) as consumers:
        await consumers[0].commit()
        lag = await lag_of(world).get("g")
    assert lag.state == "Stable"
    assert all(partition.member_id and partition.expires_ms == -1 for partition in lag.partitions)
    assert len(lag.partitions) == 4


async def test_the_age_of_the_first_unread_record_and_when_offsets_expire(world: World) -> None:
    await create_topic(world.kafka, "t", 4)
    await world.kafka.send_request(produce(1, batch(b"one", b"two")), 9)
    assert await world.broker.groups.ensure_topic()
    await world.kafka.send_request(commit("simple", 1, 0), 8)
    lag = await lag_of(world).get("simple")
    (partition,) = [each for each in lag.partitions if each.partition == 1]
    assert (partition.committed, partition.end, partition.records) == (0, 2, 2)
    assert partition.age_ms >= 0
    retention_ms = world.broker.groups.config.offsets_retention_ms
    assert partition.expires_ms == partition.commit_ms + retention_ms


async def test_an_unknown_group_is_not_found(world: World) -> None:
    with pytest.raises(ApiError, match="group"):
        await lag_of(world).get("nobody")


def test_an_assignment_that_cannot_be_read_has_no_partitions() -> None:
    assert assigned(b"") == []
    assert assigned(b"\xff\xff\xff") == []
