from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.describe_log_dirs import describe_log_dirs
from rota.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World({"log.dirs": str(tmp_path)})
    world.topic("t", partitions=2)
    world.topic("u")
    world.append(b"a")
    return world


def send_request(world: World, *topics: tuple[str, tuple[int, ...]], everything: bool = False) -> DescribeLogDirsResult:
    named = tuple(DescribableLogDirTopic(topic=name, partitions=partitions) for name, partitions in topics)
    response: Any = world.serve(describe_log_dirs, DescribeLogDirsRequest(topics=None if everything else named), 4)
    (result,) = response.results
    assert isinstance(result, DescribeLogDirsResult)
    assert (response.error_code, result.error_code) == (0, 0)
    return result


def sizes(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in result.topics
        for partition in topic.partitions
    }


def test_everything(world: World, tmp_path: Path) -> None:
    result = send_request(world, everything=True)
    assert sizes(result) == {("t", 0): world.partition().log.size_bytes, ("t", 1): 0, ("u", 0): 0}
    assert result.log_dir == str(tmp_path)
    assert 0 < result.usable_bytes <= result.total_bytes


def test_only_requested_partitions_that_exist_are_described(world: World) -> None:
    assert set(sizes(send_request(world, ("t", (1, 9)), ("nope", (0,)), ("u", ())))) == {("t", 1)}
    assert send_request(world).topics == ()


def test_a_partition_that_is_offline_is_left_out(world: World) -> None:
    world.partition("u").fail("the disk is gone")
    assert set(sizes(send_request(world, everything=True))) == {("t", 0), ("t", 1)}


def test_memory_has_no_volume(tmp_path: Path) -> None:
    result = send_request(World({"log.dirs": str(tmp_path / "none")}))
    assert (result.total_bytes, result.usable_bytes) == (-1, -1)
