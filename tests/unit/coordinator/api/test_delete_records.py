"""Each answer is what Apache Kafka 4.3.1 gave to the same request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.delete_records import delete_records
from rota.coordinator.replica.partition import Partition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic


@pytest.fixture
def world() -> World:
    world = World()
    world.topic()
    world.append(b"a", b"b", b"c", b"d", b"e")
    return world


def delete(world: World, offset: int, name: str = "t", index: int = 0) -> tuple[int, int]:
    """(error, low watermark)"""
    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=name, partitions=(partition,)),), timeout_ms=1000)
    response: Any = world.serve(delete_records, request, 2)
    (topic,) = response.topics
    (result,) = topic.partitions
    assert (topic.name, result.partition_index) == (name, index)
    return result.error_code, result.low_watermark


def test_the_log_begins_at_the_requested_offset(world: World) -> None:
    for offset, start in ((0, 0), (3, 3), (1, 3), (-1, 5)):
        assert delete(world, offset) == (0, start)
        assert world.partition().log_start_offset == start


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"offset": 9}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": -2}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": 0, "name": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"offset": 0, "index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"offset": 0, "name": "__consumer_offsets"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"offset": 0, "name": "compacted"}, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_refusals(world: World, how: dict[str, Any], code: ErrorCode) -> None:
    world.topic("__consumer_offsets")
    world.topic("compacted", cleanup_policy="compact")
    assert delete(world, **how) == (code, -1)
    assert world.partition().log_start_offset == 0


def test_offline(world: World) -> None:
    world.partition().fail("the disk is gone")
    assert delete(world, 1) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


async def test_g4_a_mistake_of_the_thread_is_the_reply(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender of a reply closes the connection for it; a request without a reply would hold it for ever."""

    def mistake() -> None:
        raise RuntimeError("cannot schedule new futures after shutdown")

    monkeypatch.setattr(Partition, "begin_delete_before", lambda self, offset: mistake)
    partition = DeleteRecordsPartition(partition_index=0, offset=1)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="t", partitions=(partition,)),), timeout_ms=1000)
    replied = asyncio.get_running_loop().create_future()
    world.serve(delete_records, request, 2).then(replied.set_result)
    assert isinstance(await asyncio.wait_for(replied, 5), RuntimeError)
