from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.replica.fetch_plan import FetchPlan
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import FetchPartition


@pytest.fixture
def world() -> World:
    """Three batches of one record in each of two partitions."""
    world = World()
    world.topic(partitions=2)
    for index in (0, 1):
        for _ in range(3):
            world.append(b"a", index=index)
    return world


def requested(index: int, offset: int, bytes_max: int) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=bytes_max)


def plan(world: World, *keys: Key, bytes_max: int = 1 << 20, each: int = 1 << 20, offset: int = 0) -> FetchPlan:
    partition_lookup = PartitionLookup(world.node.topics, world.node.partitions)
    return FetchPlan(partition_lookup, [(key, requested(key[1], offset, each)) for key in keys], bytes_max)


def batch_bytes(world: World) -> int:
    return world.partition().log.size_bytes // 3


def test_all_available_records_are_read(world: World) -> None:
    result = plan(world, ("t", 0), ("t", 1)).read()
    assert (result.size_bytes, result.must_answer) == (6 * batch_bytes(world), False)
    assert [key for key, _ in result.responses] == [("t", 0), ("t", 1)]


@pytest.mark.parametrize("bytes_max", [0, 1, 70, 71, 142, 143, 300, 1000])
@pytest.mark.parametrize("each", [0, 1, 71, 100, 1000])
def test_no_more_than_the_limits_but_for_the_first_batch(world: World, bytes_max: int, each: int) -> None:
    answers = plan(world, ("t", 0), ("t", 1), bytes_max=bytes_max, each=each).read().responses
    first, second = (len(answer.records or b"") for _, answer in answers)
    one_batch = batch_bytes(world)
    assert one_batch <= first <= max(one_batch, min(bytes_max, each))
    assert second <= max(0, min(bytes_max - first, each))


def test_a_missing_partition_is_answered_last_and_does_not_end_a_wait(world: World) -> None:
    result = plan(world, ("nope", 0), ("t", 1)).read()
    assert [(key, answer.error_code) for key, answer in result.responses] == [
        (("t", 1), 0),
        (("nope", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert not result.must_answer


def test_an_error_ends_a_wait(world: World) -> None:
    assert plan(world, ("t", 0), offset=9).read().must_answer


def test_a_delayed_fetch_watches_the_existing_partitions(world: World) -> None:
    waiting = plan(world, ("nope", 0), ("t", 0), ("t", 1), offset=2, each=500)
    watches = list(waiting.watches(waiting.read()))
    one_batch = batch_bytes(world)
    assert watches == [(world.partition(index=index), one_batch, 500) for index in (0, 1)]


@pytest.mark.parametrize(("previous", "answered"), [((3, 0), [("t", 1)]), ((2, 0), [("t", 0), ("t", 1)])])
def test_unchanged_partitions_are_left_out_of_the_response(
    world: World, previous: tuple[int, int], answered: list[Key]
) -> None:
    def is_unchanged(key: Key, high_watermark: int, log_start_offset: int) -> bool:
        return (high_watermark, log_start_offset) == previous

    partition_lookup = PartitionLookup(world.node.topics, world.node.partitions)
    partitions: list[tuple[Key, FetchPartition]] = [
        (("t", 0), requested(0, 3, 1000)),
        (("t", 1), requested(1, 2, 1000)),
    ]
    known = FetchPlan(partition_lookup, partitions, 1000, is_unchanged=is_unchanged)
    result = known.read()
    assert [key for key, _ in result.responses] == answered
    assert [ready for _, ready, _ in known.watches(result)] == [0, batch_bytes(world)]
