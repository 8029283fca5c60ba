from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.alter_replica_log_dirs import alter_replica_log_dirs
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)


def send_request(world: World, *moves: tuple[str, str, tuple[int, ...]]) -> list[tuple[str, int, int]]:
    dirs = tuple(
        AlterReplicaLogDir(path=path, topics=(AlterReplicaLogDirTopic(name=name, partitions=indexes),))
        for path, name, indexes in moves
    )
    results = world.serve(alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=dirs), 2).results
    return [
        (topic.topic_name, partition.partition_index, partition.error_code)
        for topic in results
        for partition in topic.partitions
    ]


def test_a_replica_may_stay_where_it_is(tmp_path: Path) -> None:
    world = World({"log.dirs": str(tmp_path)})
    world.topic("t", 3)
    with capture_logs():
        world.partition("t", 2).fail("disk")
    assert send_request(world, (str(tmp_path), "t", (0, 1, 2, 9)), (str(tmp_path), "nope", (0,))) == [
        ("t", 0, 0),
        ("t", 1, 0),
        ("t", 2, ErrorCode.KAFKA_STORAGE_ERROR),
        ("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_any_other_target_directory_is_refused(tmp_path: Path) -> None:
    world = World({"log.dirs": str(tmp_path)})
    world.topic("t")
    for path in ("/nowhere", "relative", f"{tmp_path}/", ""):
        assert send_request(world, (path, "t", (0,))) == [("t", 0, ErrorCode.LOG_DIR_NOT_FOUND)]


def test_the_last_mention_of_a_partition_counts(tmp_path: Path) -> None:
    world = World({"log.dirs": str(tmp_path)})
    world.topic("t")
    assert send_request(world, (str(tmp_path), "t", (0,)), ("/nowhere", "t", (0,))) == [
        ("t", 0, ErrorCode.LOG_DIR_NOT_FOUND)
    ]


def test_a_replica_on_another_broker_is_replica_not_available(tmp_path: Path) -> None:
    world = World({"log.dirs": str(tmp_path), "node.id": "1"})
    world.register(1, 2)
    world.topic("t", assignment=[(0, (2,)), (1, (1,))])
    assert send_request(world, (str(tmp_path), "t", (0, 1, 2))) == [
        ("t", 0, ErrorCode.REPLICA_NOT_AVAILABLE),
        ("t", 1, 0),
        ("t", 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
