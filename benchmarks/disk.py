"""Heartbeats while the broker has much to do: `python -m benchmarks.disk [--mb 1000] [--partitions 10000]`.

One member sends a heartbeat every few ms on a connection of its own; the table shows how long answers take while the
broker is idle, while it creates and deletes a topic of that many partitions, while two producers send as fast as it
answers, while it compacts a topic of that size,
and while a consumer reads a topic of that size that is not in the page cache. Sizes of a tenth show whether it works;
the goal is about 1,000 MB. `--mb 0` leaves the compaction and the scan out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from rich.console import Console
from rich.table import Table

from benchmarks.brokers import Running, rota
from benchmarks.groups import find_coordinator, settled
from benchmarks.rows import HEARTBEAT_VERSION, PRODUCE_VERSION, _fetch, _next_offset, unique
from benchmarks.wire import Wire
from rota.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from rota.protocol.records.record import write_pairs

HEARTBEAT_INTERVAL_S = 0.002
SEGMENT_BYTES = 100 << 20
RECORD_BYTES, KEYS, RECORDS_PER_BATCH = 1_000, 10_000, 250


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disk", description="heartbeats under other work")
    parser.add_argument("--mb", type=int, default=1_000, help="how much is compacted, and how much is read")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long heartbeats are timed, at most")
    parser.add_argument("--partitions", type=int, default=10_000, help="of the topic that is created and deleted")
    arguments = parser.parse_args()
    table = Table("meanwhile", "heartbeats", "p50 ms", "p99 ms", "max ms")
    with rota() as broker:
        heartbeats = Heartbeats(broker.address)
        add(table, "nothing", heartbeats.during(lambda: time.sleep(min(arguments.seconds, 5.0))))
        wide = arguments.partitions
        add(
            table,
            f"a creation of {wide:,} partitions",
            heartbeats.during(lambda: create(broker.address, "wide", {}, wide)),
        )
        add(table, f"a deletion of {wide:,} partitions", heartbeats.during(lambda: delete(broker.address, "wide")))
        add(table, "two producers at full speed", heartbeats.during(lambda: produce_twice(broker.address, 5.0)))
        if arguments.mb:
            time_disk(broker, heartbeats, arguments, table)
    Console().print(table)


def time_disk(broker: Running, heartbeats: Heartbeats, arguments: argparse.Namespace, table: Table) -> None:
    """Add the rows of the scan and of the compaction."""
    create(broker.address, "cold", {"segment.bytes": str(SEGMENT_BYTES)})
    fill(broker.address, "cold", arguments.mb)
    drop_cached(broker, "cold")
    add(table, f"a cold scan of {arguments.mb} MB", heartbeats.during(lambda: scan(broker.address, "cold")))
    compacts = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    create(broker.address, "compacted", {"segment.bytes": str(SEGMENT_BYTES), **compacts})
    fill(broker.address, "compacted", arguments.mb)
    before_bytes = size_bytes(broker, "compacted")
    timed = heartbeats.during(lambda: await_compaction(broker, "compacted", before_bytes // 2, arguments.seconds))
    add(table, f"a compaction of {arguments.mb} MB (at most {arguments.seconds:.0f} s of it)", timed)


def produce_twice(address: str, seconds: float) -> None:
    """Two producers, each a process that sends 64 KB batches of 100-byte records, five at once, acks=all."""
    topics = [unique("filled") for _ in range(2)]
    for topic in topics:
        create(address, topic, {})
    code = (
        "import sys; from benchmarks.rows import produce_for; "
        "produce_for(*sys.argv[1:3], 100, 64_000, 5, float(sys.argv[3]))"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, address, topic, str(seconds)]) for topic in topics]
    assert [process.wait() for process in started] == [0, 0]


class Heartbeats:
    """The heartbeats of one member."""

    def __init__(self, address: str) -> None:
        home = find_coordinator(address, "beats")
        (self._member,) = settled(home, "beats", 1)
        self._wire = self._member.wire

    def during(self, work: Callable[[], object]) -> list[float]:
        """How many seconds each answer took while `work` ran in this thread."""
        with self._timed() as took:
            work()
        return took

    @contextmanager
    def _timed(self) -> Iterator[list[float]]:
        took: list[float] = []
        done = threading.Event()
        thread = threading.Thread(target=self._heartbeat, args=(took, done))
        thread.start()
        try:
            yield took
        finally:
            done.set()
            thread.join()

    def _heartbeat(self, took: list[float], done: threading.Event) -> None:
        request = HeartbeatRequest(
            group_id="beats", generation_id=self._member.generation, member_id=self._member.member_id
        )
        while not done.wait(HEARTBEAT_INTERVAL_S):
            began = time.perf_counter()
            answer = self._wire.send_request(request, HEARTBEAT_VERSION, HeartbeatResponse)
            took.append(time.perf_counter() - began)
            assert not answer.error_code


def create(address: str, topic: str, configs: dict[str, str], partitions: int = 1) -> None:
    wire = Wire(address)
    named = tuple(CreatableTopicConfig(name=name, value=value) for name, value in configs.items())
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=named)
    answer = wire.send_request(CreateTopicsRequest(topics=(wanted,), timeout_ms=60_000), 5, CreateTopicsResponse)
    assert not answer.topics[0].error_code, answer
    wire.close()


def delete(address: str, topic: str) -> None:
    wire = Wire(address)
    answer = wire.send_request(DeleteTopicsRequest(topic_names=(topic,), timeout_ms=60_000), 5, DeleteTopicsResponse)
    assert not answer.responses[0].error_code, answer
    wire.close()


def fill(address: str, topic: str, mb: int) -> None:
    """Keyed records, each key again and again."""
    wire, value = Wire(address), bytes(RECORD_BYTES)
    for number in range(mb * 1_000_000 // (RECORD_BYTES * RECORDS_PER_BATCH)):
        first = number * RECORDS_PER_BATCH
        keys = (b"key-%d" % ((first + at) % KEYS) for at in range(RECORDS_PER_BATCH))
        records = write_pairs([(key, value) for key in keys], int(time.time() * 1000))
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
        answer = wire.send_request(
            ProduceRequest(acks=1, timeout_ms=10_000, topic_data=(data,)), PRODUCE_VERSION, ProduceResponse
        )
        assert not answer.responses[0].partition_responses[0].error_code
    wire.close()


def scan(address: str, topic: str) -> None:
    """Read all of it, 1 MB at a time."""
    wire = Wire(address)
    end, offset = _fetch(wire, topic, 0, 1)[1], 0
    while offset < end:
        offset = _next_offset(_fetch(wire, topic, offset, 1 << 20)[0])
    wire.close()


def drop_cached(broker: Running, topic: str) -> None:
    """Have the kernel forget what it caches of the topic."""
    for file in folder(broker, topic).iterdir():
        fd = os.open(file, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def await_compaction(broker: Running, topic: str, until_bytes: int, seconds: float) -> None:
    """Until the topic has shrunk to that size, but no longer than that."""
    ends = time.monotonic() + seconds
    while size_bytes(broker, topic) > until_bytes and time.monotonic() < ends:
        time.sleep(0.1)


def size_bytes(broker: Running, topic: str) -> int:
    """Bytes of the segments that count."""
    return sum(file.stat().st_size for file in folder(broker, topic).glob("*.log"))


def folder(broker: Running, topic: str) -> Path:
    """Where the broker keeps the topic's partition, from its command line."""
    words = Path(f"/proc/{broker.pid}/cmdline").read_bytes().decode().split("\0")
    return Path(words[words.index("--data") + 1]) / f"{topic}-0"


def add(table: Table, name: str, took: list[float]) -> None:
    cuts = [1000 * cut for cut in quantiles(took, n=100)]
    table.add_row(name, str(len(took)), f"{cuts[49]:.2f}", f"{cuts[98]:.2f}", f"{1000 * max(took):.1f}")


if __name__ == "__main__":
    main()
