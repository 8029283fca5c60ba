"""The lag of real groups on a live broker: records, the age of the first unread one, what expires when."""

from __future__ import annotations

import pytest
from tests.chaos.requests import batch, commit, create_topic, produce
from tests.unit.coordinator.web.conftest import World, members

from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.web import lag_source
from rota.coordinator.web.asks import ApiError, Asks
from rota.coordinator.web.lag_source import LagSource, assigned, unread_time_ms
from rota.protocol.records.codecs import Codec
from rota.protocol.records.record import Record, write_batch


def lag_of(world: World) -> Lag:
    node = world.broker.node
    return Lag(LagSource(Asks(node)), now_ms=node.now_ms, wall_ms=node.wall_ms)


async def test_the_lag_of_members_that_committed(world: World) -> None:
    await create_topic(world.kafka, "t", 4)
    await world.kafka.ask(produce(1, batch(b"one", b"two")), 9)
    async with members(world, "g", 1) as consumers:
        await consumers[0].commit()
        lag = await lag_of(world).of("g")
    assert lag.state == "Stable"
    assert all(partition.member_id and partition.expires_ms == -1 for partition in lag.partitions)
    assert len(lag.partitions) == 4


async def test_the_age_of_the_first_unread_record_and_when_offsets_expire(world: World) -> None:
    await create_topic(world.kafka, "t", 4)
    await world.kafka.ask(produce(1, batch(b"one", b"two")), 9)
    assert await world.broker.groups.ensure_topic()
    await world.kafka.ask(commit("simple", 1, 0), 8)
    lag = await lag_of(world).of("simple")
    (partition,) = [each for each in lag.partitions if each.partition == 1]
    assert (partition.committed, partition.end, partition.records) == (0, 2, 2)
    assert partition.age_ms >= 0
    retention_ms = world.broker.groups.config.offsets_retention_ms
    assert partition.expires_ms == partition.commit_ms + retention_ms


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_gl1_the_time_is_that_of_the_oldest_unread_record(codec: Codec) -> None:
    first = write_batch([Record(n, 1_000 + 10 * n, None, b"v", ()) for n in range(5)], codec=codec)
    second = write_batch([Record(n, 5_000, None, b"v", ()) for n in range(2)], base_offset=5)
    for offset, time_ms in ((0, 1_000), (3, 1_030), (4, 1_040), (5, 5_000), (7, None)):
        assert unread_time_ms(first + second, offset) == time_ms


def test_gl1_of_a_large_batch_the_newest_time_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_batch([Record(n, 1_000 + 10 * n, None, b"v", ()) for n in range(5)])
    assert unread_time_ms(data[:-3], 3) is None
    monkeypatch.setattr(lag_source, "DECODED_BYTES_MAX", 10)
    assert unread_time_ms(data, 3) == 1_040
    assert unread_time_ms(data, 0) == 1_000


def test_gl1_records_without_a_time_have_no_age() -> None:
    assert unread_time_ms(write_batch([Record(0, -1, None, b"v", ())]), 0) is None


async def test_an_unknown_group_is_not_found(world: World) -> None:
    with pytest.raises(ApiError, match="group"):
        await lag_of(world).of("nobody")


def test_an_assignment_that_cannot_be_read_has_no_partitions() -> None:
    assert assigned(b"") == []
    assert assigned(b"\xff\xff\xff") == []
