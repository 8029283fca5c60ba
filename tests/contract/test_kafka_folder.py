"""A topic folder that Apache Kafka wrote opens in Rota, and Rota would have written the same indexes and snapshots.

tests/data/recorded-0 was written by Apache Kafka 4.3.1: 100 records in all five codecs, from five idempotent
producers, segment.ms=100 and index.interval.bytes=200; the preallocated index files of its active segment are cut
from 10 MiB to 4 KiB.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.coordinator.log.snapshots import read_snapshot, write_snapshot
from rota.protocol.records.fast import Record
from rota.protocol.records.record import read_all

RECORDED = Path(__file__).parent.parent / "data" / "recorded-0"
CONFIG = LogConfig(index_interval_bytes=200, segment_ms=100)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "recorded-0"))


def everything(log: DiskLog) -> list[Record]:
    records: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = [record for record in read_all(log.read(offset, 1 << 20)) if record.offset >= offset]
        records += found
        offset = found[-1].offset + 1
    return records


def is_what_was_sent(records: list[Record]) -> bool:
    return [(r.offset, r.key, r.value, r.headers) for r in records] == [
        (
            n,
            b"key-%d" % (n % 7),
            None if n % 10 == 9 else f"{CODECS[n // 20]} value {n} ".encode() * 3,
            (("h", b"%d" % n),),
        )
        for n in range(100)
    ]


@pytest.mark.parametrize("clean", [True, False])
def test_opens(folder: Path, clean: bool) -> None:
    log = DiskLog.open(folder, CONFIG, RecoveryCheckpoint(clean=clean))
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (0, 100, 0)
    assert log.segment_count == len(list(folder.glob("*.log")))
    assert is_what_was_sent(everything(log))
    assert sorted((p.last_sequence, p.last_offset) for p in log.producers.all()) == [
        (19, 19 + 20 * number) for number in range(5)
    ]


def test_every_record_is_found_by_its_time(folder: Path) -> None:
    log = DiskLog.open(folder, CONFIG, RecoveryCheckpoint(clean=True))
    records = everything(log)
    for record in records:
        found = log.offset_at(record.timestamp)
        assert found is not None
        first = next(r for r in records if r.timestamp >= record.timestamp)
        assert (found.offset, found.timestamp) == (first.offset, first.timestamp)


def test_rebuilt_indexes_equal_those_of_kafka(folder: Path) -> None:
    """Of the rolled segments, byte by byte."""
    for file in folder.glob("*index"):
        file.unlink()
    log = DiskLog.open(folder, CONFIG)
    log.close()
    rolled = sorted(RECORDED.glob("*.log"))[:-1]
    for kafka in rolled:
        assert (folder / f"{kafka.stem}.timeindex").read_bytes() == (RECORDED / f"{kafka.stem}.timeindex").read_bytes()
        assert (folder / f"{kafka.stem}.index").read_bytes() == (RECORDED / f"{kafka.stem}.index").read_bytes()


def test_snapshots_are_the_same(folder: Path) -> None:
    for file in RECORDED.glob("*.snapshot"):
        assert write_snapshot(read_snapshot(file.read_bytes())) == file.read_bytes()
    log = DiskLog.open(folder, CONFIG)
    log.close()
    last = max(folder.glob("*.snapshot"))
    assert last.name == "00000000000000000100.snapshot"
    assert {p.producer_id for p in read_snapshot(last.read_bytes())} == {p.producer_id for p in log.producers.all()}


def test_appends_continue_after_the_records_of_kafka(folder: Path) -> None:
    log = DiskLog.open(folder, CONFIG)
    again = max(RECORDED.glob("*.log")).read_bytes()
    batch = bytearray(again)
    batch[0:8] = bytes(8)
    appended = log.append(bytes(batch), leader_epoch=1, now_ms=0)
    assert (appended.base_offset, appended.last_offset, appended.duplicate) == (95, 99, True)
    assert log.log_end_offset == 100


@pytest.mark.peer
@pytest.mark.skipif(
    not (os.environ.get("ROTA_PEER") and os.environ.get("ROTA_PEER_DATA")),
    reason="ROTA_PEER names no running Apache Kafka, or ROTA_PEER_DATA not its folder",
)
def test_the_folder_of_a_running_kafka_can_be_opened(tmp_path: Path) -> None:
    from confluent_kafka import Producer

    topic = f"rota-log-{time.time_ns()}"
    producer = Producer({"bootstrap.servers": os.environ["ROTA_PEER"], "enable.idempotence": True})
    for number in range(200):
        producer.produce(topic, key=b"%d" % number, value=b"v" * 100, partition=0)
    assert producer.flush(30) == 0
    written = Path(os.environ["ROTA_PEER_DATA"]) / f"{topic}-0"
    log = DiskLog.open(Path(shutil.copytree(written, tmp_path / written.name)), LogConfig())
    assert [record.key for record in everything(log)] == [b"%d" % number for number in range(200)]
