"""A whole broker on a file system that fails: what was acknowledged stays, and no fault outlives its cause."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.line import Line
from tests.unit.coordinator.api.data_world import batch, fetch_request, produce_request

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.directory import CLEAN_FILE
from rota.coordinator.log.disk import DiskLog
from rota.coordinator.log.store import UNSYNCED_FILES_MAX
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, Topic
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.retry_wait import RetryWaits
from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.storage import Disk
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.records.record import Record, read_all, write_batch

from .faulty_files import Fault, FaultyFiles

PATIENCE_S = 30
LOG_STARTS = "log-start-offset-checkpoint"
RECORD_KEY = b"\0\x63"  # of a record type that nobody knows


class World:
    """A broker with upkeep, and what was acknowledged by its partition `t-0`."""

    def __init__(self, path: Path, system: FaultyFiles) -> None:
        self.system, self.path = system, path / "data"
        config = BrokerConfig(
            {
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": str(self.path),
                "offsets.topic.num.partitions": "1",
            }
        )
        self.broker = Broker(config)
        self.broker.storage = Disk(self.path, node_id=config.node_id, wall_ms=self.broker.wall_ms, system=system)
        self.acknowledged: dict[int, bytes] = {}

    async def create(self, **configs: str) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        assert isinstance(await self.broker.topics.create("t", 1, configs=named), Topic)

    def partition(self, topic: str = "t") -> Partition:
        partition = self.broker.partitions.get(topic, 0)
        assert partition is not None
        return partition

    def produce(self, value: bytes, key: bytes = b"k") -> bool:
        """Whether it was acknowledged."""
        now_ms = self.broker.wall_ms()
        try:
            appended = self.partition().append(write_batch([Record(0, now_ms, key, value)]), now_ms)
        except StorageFailed:
            return False
        self.acknowledged[appended.base_offset] = value
        return True

    def held(self) -> dict[int, bytes]:
        """What a consumer reads."""
        found, offset = dict[int, bytes](), self.partition().log_start_offset
        while data := self.partition().read(offset, 1 << 20):
            for record in read_all(data):
                found[record.offset] = record.value or b""
                offset = record.offset + 1
        return found

    def cleaned_until(self) -> int:
        """The offset up to which compaction has seen `t-0`."""
        log = self.partition().log
        assert isinstance(log, DiskLog)
        return log.cleaned_until

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.sleep(0.005)

    async def online(self) -> None:
        await self.until(lambda: self.partition().offline is None)


@asynccontextmanager
async def world(path: Path, *, clean: bool = True) -> AsyncIterator[World]:
    made = World(path, FaultyFiles())
    await made.broker.start()
    try:
        yield made
    finally:
        if clean:
            await made.broker.stop()
        else:
            with pytest.raises(StorageFailed):
                await made.broker.stop()
    assert (made.path / CLEAN_FILE).exists() is clean


async def test_after_a_full_disk_the_partition_is_reopened_when_there_is_space(tmp_path: Path) -> None:
    async with world(tmp_path) as node:
        await node.create()
        assert node.produce(b"before")
        epoch = node.partition().leader_epoch
        fault = node.system.fail("pwrite", "/t-0", errno.ENOSPC, short_bytes=20)
        assert not node.produce(b"lost")
        assert node.partition().error is ErrorCode.KAFKA_STORAGE_ERROR
        node.system.fail("open", "/t-0", errno.EIO)
        await node.until(lambda: node.system.faults[-1].hits > 0)  # one attempt to reopen it has failed
        assert node.partition().offline is not None
        node.system.clear()
        await node.online()
        assert fault.hits >= 1
        assert node.partition().leader_epoch > epoch
        assert node.produce(b"after")
        assert node.held() == node.acknowledged == {0: b"before", 1: b"after"}


async def test_groups_of_a_failed_log_are_reloaded_without_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path) as node:
        assert await node.broker.groups.ensure_topic()
        shard = node.broker.groups.shards[0]
        await node.until(lambda: shard.state is ShardState.READY)
        node.partition(CONSUMER_OFFSETS).append_pairs([(RECORD_KEY, None)], node.broker.wall_ms())
        node.system.fail("pwrite", CONSUMER_OFFSETS, errno.ENOSPC)
        node.system.fail("open", CONSUMER_OFFSETS)  # recovery reads the log: it stays down until the faults are over
        with pytest.raises(StorageFailed):
            node.partition(CONSUMER_OFFSETS).append_pairs([(RECORD_KEY, None)], node.broker.wall_ms())
        await node.until(lambda: shard.state is ShardState.DOWN)
        assert node.broker.groups.ready("g") is ErrorCode.NOT_COORDINATOR
        node.system.clear()
        await node.until(lambda: shard.state is ShardState.READY)


async def test_a_failed_fsync_is_not_forgotten_by_a_stop(tmp_path: Path) -> None:
    async with world(tmp_path, clean=False) as node:
        await node.create(flush_ms="0")
        node.system.fail("fsync", "/t-0/", errno.EIO, times=1)
        assert node.produce(b"in doubt")
        log = node.partition().log
        await node.until(lambda: node.partition().offline is not None)
        node.system.fail("open", "/t-0/")  # so that it cannot be recovered before the stop
        assert log.unflushed_messages == 1
    async with world(tmp_path) as again:
        assert again.held() == {0: b"in doubt"}


async def test_after_a_failed_fsync_the_log_is_read_again_from_the_medium(tmp_path: Path) -> None:
    async with world(tmp_path) as node:
        await node.create(flush_ms="0")
        node.system.fail("fsync", "/t-0/", errno.EIO, times=1)
        assert node.produce(b"in doubt")
        await node.until(lambda: node.partition().offline is not None)
        before = len(node.system.calls)
        await node.online()
        calls = [call for call in node.system.calls[before:] if call.path.endswith("t-0/00000000000000000000.log")]
        names = [call.call for call in calls]
        assert names.index("fsync") < names.index("pread")
        assert threading.get_ident() not in {call.thread for call in calls}
        assert node.held() == node.acknowledged


async def test_a_compaction_on_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as node:
        await node.create(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_bytes=str(1 << 20))
        for number in range(120):
            assert node.produce(bytes(50_000) + b"%d" % number, b"key-%d" % (number % 3))
        before_bytes = node.partition().log.size_bytes
        node.broker.upkeep._waits = RetryWaits(100, 1_000)
        fault = node.system.fail("pwrite", ".cleaned", errno.ENOSPC)
        await node.until(lambda: fault.hits > 0)
        assert node.produce(b"meanwhile")
        assert node.partition().offline is None
        assert not list((node.path / "t-0").glob("*.cleaned"))
        node.system.clear()
        await node.until(lambda: node.partition().log.size_bytes < before_bytes // 2)
        assert node.held().items() <= node.acknowledged.items()


async def test_large_files_are_synced_and_unlinked_in_threads(tmp_path: Path) -> None:
    async with world(tmp_path) as node:
        await node.create(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_bytes=str(1 << 20))
        for number in range(120):
            assert node.produce(bytes(50_000) + b"%d" % number, b"key-%d" % (number % 3))
        before_bytes = node.partition().log.size_bytes
        await node.until(lambda: node.partition().log.size_bytes < before_bytes // 2)
        here = threading.get_ident()
        slow = [call for call in node.system.calls if "/t-0/" in call.path and call.call in ("fsync", "unlink")]
        assert slow
        assert not [call for call in slow if call.thread == here]
        reads = [call for call in node.system.calls if call.call == "pread" and call.path.endswith(".log")]
        assert [call for call in reads if call.thread != here]


async def test_no_append_waits_for_the_sync_of_rolled_segments(tmp_path: Path) -> None:
    """Laws A4, A8: more segments are full than files may wait for their sync, and the disk does not finish one."""
    async with world(tmp_path) as node:
        await node.create()
        node.partition().log.config = replace(node.partition().log.config, segment_bytes=150)
        is_free = threading.Event()
        failsafe = threading.Timer(PATIENCE_S, is_free.set)  # ends a broker whose loop waits for the fsync
        failsafe.start()
        fault = node.system.fail("fsync", "/t-0/", blocks=is_free)
        assert all(node.produce(b"%060d" % number) for number in range(2 * UNSYNCED_FILES_MAX))
        assert len(list((node.path / "t-0").glob("*.log"))) == UNSYNCED_FILES_MAX + 1
        await node.until(lambda: fault.hits > 0)  # in less than a round of upkeep
        assert not is_free.is_set()
        is_free.set()
        failsafe.cancel()
        await node.until(lambda: not node.partition().log.has_unflushed_segments)
        assert node.produce(b"%060d" % 0)
        assert len(list((node.path / "t-0").glob("*.log"))) == UNSYNCED_FILES_MAX + 2
        syncs = [call for call in node.system.calls if call.call == "fsync" and "/t-0/" in call.path]
        assert threading.get_ident() not in {call.thread for call in syncs}


@pytest.mark.parametrize(
    "configs",
    [{"retention_ms": "1"}, {"cleanup_policy": "compact", "min_compaction_lag_ms": "3600000"}],
    ids=["retention", "compaction"],
)
async def test_the_ages_of_segments_are_read_in_threads(tmp_path: Path, configs: dict[str, str]) -> None:
    """Law A9. After a restart they are not in memory."""
    async with world(tmp_path) as node:
        await node.create(**configs)
        node.partition().log.config = replace(node.partition().log.config, segment_bytes=500)
        assert all(node.produce(b"%060d" % number) for number in range(20))
    async with world(tmp_path) as node:
        node.broker.upkeep._retention_every_ms = 0
        node.system.calls.clear()

        def reads() -> list[int]:
            calls = node.system.calls
            return [call.thread for call in calls if call.call == "pread" and call.path.endswith(".timeindex")]

        await node.until(lambda: bool(reads()) and not node.broker.upkeep._tasks)
        assert threading.get_ident() not in reads()
        if "retention_ms" in configs:
            assert node.partition().log_start_offset == 20


def delete_records(*offsets: int) -> DeleteRecordsRequest:
    """One entry of `t-0` for each offset."""
    deletions = tuple(DeleteRecordsPartition(partition_index=0, offset=offset) for offset in offsets)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="t", partitions=deletions),), timeout_ms=1000)


@asynccontextmanager
async def lines(broker: Broker, count: int) -> AsyncIterator[list[Line]]:
    host, port = broker.address
    opened = [await Line.open(f"{host}:{port}") for _ in range(count)]
    try:
        yield opened
    finally:
        for line in opened:
            await line.close()


def deleted(response: Any) -> list[tuple[int, int]]:
    """(error, low watermark) of each partition."""
    return [
        (partition.error_code, partition.low_watermark) for topic in response.topics for partition in topic.partitions
    ]


async def test_a_slow_checkpoint_delays_deleted_records_and_no_heartbeat(tmp_path: Path) -> None:
    """A checkpoint thread may hold the lock of the file meanwhile; both requests are answered when it is durable."""
    async with world(tmp_path) as node, lines(node.broker, 3) as (member, *admins):
        await node.create()
        assert all(node.produce(b"%d" % number) for number in range(5))
        await member.send_request(FindCoordinatorRequest(key="g"), 2)
        is_free = threading.Event()
        failsafe = threading.Timer(PATIENCE_S, is_free.set)  # ends a broker whose loop waits for the file
        failsafe.start()
        fault = node.system.fail("fsync", LOG_STARTS, blocks=is_free)
        first = admins[0].send(delete_records(3, 3), 2)
        await node.until(lambda: fault.hits > 0 and node.partition().log_start_offset == 3)
        second = admins[1].send(delete_records(4), 2)
        await node.until(lambda: node.partition().log_start_offset == 4)
        for _ in range(20):
            heartbeat = await member.send_request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
            assert heartbeat.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert not is_free.is_set()
        assert not first.done()
        assert not second.done()
        is_free.set()
        failsafe.cancel()
        assert deleted(await first) == [(0, 3), (0, 3)]
        assert deleted(await second) == [(0, 4)]
        assert "t 0 4" in (node.path / LOG_STARTS).read_text()


async def test_a_log_start_that_can_not_be_written_is_an_error_of_its_partition(tmp_path: Path) -> None:
    async with world(tmp_path) as node, lines(node.broker, 1) as (admin,):
        await node.create()
        assert all(node.produce(b"%d" % number) for number in range(5))
        node.system.fail("fsync", LOG_STARTS, errno.EIO)
        answer = await admin.send_request(delete_records(3, 9), 2)
        assert deleted(answer) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1), (ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
        node.system.clear()
        await node.online()
        assert deleted(await admin.send_request(delete_records(3), 2)) == [(0, 3)]
        assert "t 0 3" in (node.path / LOG_STARTS).read_text()


Inject = Callable[[FaultyFiles], Fault]
FAULTS: dict[str, Inject] = {
    "full disk": lambda system: system.fail("pwrite", "/t-0/", errno.ENOSPC, times=3),
    "short write": lambda system: system.fail("pwrite", "/t-0/", short_bytes=20, times=1),
    "short write on a full disk": lambda system: system.fail("pwrite", "/t-0/", errno.ENOSPC, short_bytes=20, times=3),
    "write error": lambda system: system.fail("pwrite", "/t-0/", errno.EIO, times=3),
    "failed fsync": lambda system: system.fail("fsync", "/t-0/", errno.EIO, times=3),
    "failed fsync of a batch": lambda system: system.fail("fsync", ".log", errno.EIO, times=1),
    "open": lambda system: system.fail("open", "/t-0/", errno.EMFILE, times=3),
    "rename": lambda system: system.fail("replace", "/t-0/", errno.EIO, times=3),
    "unlink": lambda system: system.fail("unlink", "/t-0/", errno.EIO, times=3),
}


@pytest.fixture
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of upkeep follow each other soon, so that the test is short."""
    monkeypatch.setattr("rota.coordinator.upkeep.ROUND_MS", 50)
    monkeypatch.setattr("rota.coordinator.upkeep.CHECKPOINT_EVERY_MS", 100)


def retry_soon(node: World) -> None:
    node.broker.upkeep._waits = RetryWaits(50, 200)
    node.broker.partitions._reopen_waits = RetryWaits(50, 200)


@pytest.mark.usefixtures("quick_rounds")
@pytest.mark.parametrize("inject", FAULTS.values(), ids=FAULTS)
async def test_after_transient_faults_no_acknowledged_record_is_lost(tmp_path: Path, inject: Inject) -> None:
    """Laws L1, A1: records are produced and compacted while calls fail; afterwards all is usable without a restart.

    Each record has a key of its own, so that compaction rewrites the log and removes none.
    """
    async with world(tmp_path) as node:
        await node.create(flush_ms="0", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
        retry_soon(node)
        faults: list[Fault] = []
        for number in range(80):
            if number in (20, 40):
                faults.append(inject(node.system))
            if number == 60:
                node.system.clear()
                await node.online()
            if node.partition().offline is None:  # a log that was reopened has the configs of its topic
                node.partition().log.config = replace(node.partition().log.config, segment_bytes=10_000)
            is_acknowledged = node.produce(bytes(1_000) + b"%d" % number, b"key-%d" % number)
            assert is_acknowledged or number < 60
            await asyncio.sleep(0.01)
        await node.until(lambda: node.cleaned_until() >= max(node.acknowledged) - 10)
        held = node.held()  # with records that were refused after they had been written: nobody knows of them
        assert node.acknowledged.items() <= held.items()
        assert any(fault.hits for fault in faults)


class Producing:
    """A producer of `t-0` on the wire, with acks=all: it sends each value again until it is acknowledged."""

    def __init__(self, line: Line, wall_ms: int) -> None:
        self._line, self._wall_ms = line, wall_ms
        self.acknowledged: dict[int, bytes] = {}
        self.refusals: set[int] = set()

    def send(self, value: bytes) -> asyncio.Future[Any]:
        return self._line.send(produce_request(batch(value, timestamp=self._wall_ms)), 9)

    async def produce(self, value: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = (await self.send(value)).responses[0].partition_responses[0]
                if answer.error_code == ErrorCode.NONE:
                    self.acknowledged[answer.base_offset] = value
                    return
                self.refusals.add(answer.error_code)
                await asyncio.sleep(0.01)


async def consumed(line: Line) -> dict[int, bytes]:
    """Every record of `t-0` below its high watermark, as a consumer fetches them."""
    found, offset = dict[int, bytes](), 0
    while True:
        answer = (await line.send_request(fetch_request(("t", 0, offset)), 12)).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.NONE
        records = list(read_all(answer.records or b""))
        if not records:
            return found
        found |= {record.offset: record.value or b"" for record in records if record.offset >= offset}
        offset = records[-1].offset + 1


@pytest.mark.usefixtures("quick_rounds")
async def test_clients_lose_no_acknowledged_record_to_faults_of_the_disk(tmp_path: Path) -> None:
    """Laws L1, A1, D1 on the wire. A record is acknowledged when it is flushed, or refused with an error to retry."""
    async with world(tmp_path) as node, lines(node.broker, 2) as (line, other):
        await node.create(flush_messages="1")
        retry_soon(node)
        producing = Producing(line, node.broker.wall_ms())
        for number, inject in enumerate(FAULTS.values()):
            await producing.produce(b"before %d" % number)
            inject(node.system)
            await producing.produce(b"after %d" % number)
            node.system.clear()
        await producing.produce(b"at last")
        assert ErrorCode.KAFKA_STORAGE_ERROR in producing.refusals
        assert len(producing.acknowledged) == 2 * len(FAULTS) + 1
        assert producing.acknowledged.items() <= (await consumed(other)).items()
        values = set(producing.acknowledged.values())
    async with world(tmp_path) as again, lines(again.broker, 1) as (line,):
        assert values <= set((await consumed(line)).values())


async def test_a_slow_fsync_delays_acknowledgements_and_readers_of_its_records_and_no_heartbeat(tmp_path: Path) -> None:
    """Laws A4, D1 on the wire."""
    async with world(tmp_path) as node, lines(node.broker, 2) as (line, other):
        await node.create(flush_messages="1")
        producing = Producing(line, node.broker.wall_ms())
        await producing.produce(b"before")
        is_free = threading.Event()
        failsafe = threading.Timer(PATIENCE_S, is_free.set)  # ends a broker whose loop waits for the fsync
        failsafe.start()
        fault = node.system.fail("fsync", "/t-0/", blocks=is_free)
        waits = producing.send(b"slow")
        await node.until(lambda: fault.hits > 0)
        for _ in range(20):
            heartbeat = await other.send_request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
            assert heartbeat.error_code == ErrorCode.NOT_COORDINATOR
        assert await consumed(other) == {0: b"before"}
        assert not is_free.is_set()
        assert not waits.done()
        is_free.set()
        failsafe.cancel()
        assert (await waits).responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert await consumed(other) == {0: b"before", 1: b"slow"}
