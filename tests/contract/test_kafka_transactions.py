"""A log with transactions, as Apache Kafka 4.3.1 wrote and served it.

tests/data/recorded-txn-0 is the folder: three producers, transactions that cross segments, that are nested in time,
committed, aborted and open; segment.ms=100 and index.interval.bytes=200. The preallocated index files of its active
segment are cut from 10 MiB to 4 KiB. tests/data/kafka-4.3.1-transaction-fetches.json.gz are Kafka's answers at four
ends of the log: Fetch from each offset, of four sizes, with both isolation levels; ListOffsets; DescribeProducers.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.describe_producers import describe_producers
from rota.coordinator.api.fetch import fetch
from rota.coordinator.api.list_offsets import list_offsets
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.snapshots import read_snapshot, write_snapshot
from rota.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rota.protocol.records.batch import headers

DATA = Path(__file__).parent.parent / "data"
RECORDED = DATA / "recorded-txn-0"
CONFIG = LogConfig(index_interval_bytes=200, segment_ms=100)
ANSWERS: list[dict[str, Any]] = json.loads(
    gzip.decompress((DATA / "kafka-4.3.1-transaction-fetches.json.gz").read_bytes())
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "recorded-txn-0"))


def files(folder: Path, kind: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob(f"*.{kind}"))}


@pytest.mark.parametrize("clean", [True, False])
def test_opens(folder: Path, clean: bool) -> None:
    log = DiskLog.open(folder, CONFIG, RecoveryCheckpoint(clean=clean, high_watermark=38))
    assert (log.log_end_offset, log.producers.last_stable_offset(38)) == (38, 35)
    assert log.aborted_transactions(4, 1 << 20)[0] == (1, 4, 7, 2)


def test_restored_indexes_of_aborted_transactions_equal_those_of_kafka(folder: Path) -> None:
    """Byte by byte."""
    for file in folder.glob("*.txnindex"):
        file.unlink()
    DiskLog.open(folder, CONFIG).close()
    assert files(folder, "txnindex") == files(RECORDED, "txnindex")


def test_a_follower_of_kafka_writes_the_same_segments_indexes_and_producers(tmp_path: Path) -> None:
    log = DiskLog.open(tmp_path / "t-0", CONFIG)
    for data in files(RECORDED, "log").values():
        log.append_as_follower(data, leader_epoch=0)
    log.close()
    assert files(log.path, "log") == files(RECORDED, "log")
    assert files(log.path, "txnindex") == files(RECORDED, "txnindex")
    for name, recorded in files(RECORDED, "snapshot").items():
        ours = read_snapshot((log.path / name).read_bytes())
        for producer in ours:
            while len(producer.sent) > 1:
                producer.sent.popleft()  # Kafka keeps the last batch of each producer alone
            producer.packed = None
        assert sorted(_entries(write_snapshot(ours))) == sorted(_entries(recorded))


def _entries(snapshot: bytes) -> list[bytes]:
    body = snapshot[10:]
    return [body[at : at + 46] for at in range(0, len(body), 46)]


@pytest.mark.parametrize("recorded", ANSWERS, ids=lambda recorded: recorded["label"])
def test_answers_are_those_of_kafka(tmp_path: Path, recorded: dict[str, Any]) -> None:
    world = World(log=lambda _: DiskLog.open(tmp_path / "t-0", CONFIG))
    world.topic()
    partition, end = world.partition(), recorded["latest"][0][1]
    for data in files(RECORDED, "log").values():
        for position, header in headers(data):
            if header.base_offset < end:
                batch = data[position : position + header.size_bytes]
                partition.log.append_as_follower(batch, leader_epoch=0)
    partition.log_grown()
    for offset, bytes_max, isolation, *answer in recorded["fetches"]:
        assert _fetched(world, offset, bytes_max, isolation) == answer, (offset, bytes_max, isolation)
    assert [_listed(world, -1, isolation) for isolation in (0, 1)] == recorded["latest"]
    assert [_listed(world, -3, isolation) for isolation in (0, 1)] == recorded["max"]
    assert _producers(world) == recorded["producers"]


def _fetched(world: World, offset: int, bytes_max: int, isolation: int) -> list[Any]:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=isolation,
        topics=(FetchTopic(topic="t", partitions=(wanted,)),),
    )
    response: PartitionData = world.serve(fetch, request, 11).responses[0].partitions[0]
    aborted = response.aborted_transactions
    return [
        response.error_code,
        response.high_watermark,
        response.last_stable_offset,
        response.log_start_offset,
        len(response.records or b""),
        None if aborted is None else [[each.producer_id, each.first_offset] for each in aborted],
    ]


def _listed(world: World, timestamp: int, isolation: int) -> list[int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=(ListOffsetsTopic(name="t", partitions=(wanted,)),)
    )
    found = world.serve(list_offsets, request, 7).topics[0].partitions[0]
    return [found.error_code, found.offset, found.leader_epoch]


def _producers(world: World) -> list[list[int]]:
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
    return sorted(
        [
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.coordinator_epoch,
            each.current_txn_start_offset,
        ]
        for each in world.serve(describe_producers, request, 0).topics[0].partitions[0].active_producers
    )
