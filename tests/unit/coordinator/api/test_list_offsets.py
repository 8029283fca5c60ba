"""Each answer is what Apache Kafka 4.3.1 gave to the same request."""

from __future__ import annotations

import asyncio
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.api.data_world import World, batch
from tests.unit.coordinator.faulty_files import FaultyFiles
from tests.unit.coordinator.gated_threads import GatedThreads
from tests.unit.coordinator.replica.test_durability import Gate

from rota.coordinator.api.list_offsets import list_offsets
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog
from rota.coordinator.log.store import OpenFiles
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

NOTHING = (ErrorCode.NONE, -1, -1, -1)
UNSUPPORTED = (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)


@pytest.fixture
def world() -> World:
    """Offsets 0 to 4 of partition 0 at 1000, 1010, 3000, 2500, 2000 ms; nothing in partition 1."""
    world = World()
    world.topic(partitions=2)
    for records in (
        batch(b"a", b"b", timestamp=1000, step_ms=10),
        batch(b"c", b"d", timestamp=3000, step_ms=-500),
        batch(b"e", timestamp=2000),
    ):
        world.partition().append(records, world.now_ms)
    return world


def send_request(
    world: World, *times: int, index: int = 0, name: str = "t", version: int = 11, epoch: int = -1, isolation: int = 0
) -> list[tuple[ErrorCode, int, int, int]]:
    """(error, timestamp, offset, leader epoch) for each time."""
    response = world.serve(
        list_offsets, list_request(*times, index=index, name=name, epoch=epoch, isolation=isolation), version
    )
    return rows(response)


def list_request(
    *times: int, index: int = 0, name: str = "t", epoch: int = -1, isolation: int = 0
) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=(
            ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=time)
                    for time in times
                ),
            ),
        ),
    )


def rows(response: ListOffsetsResponse) -> list[tuple[ErrorCode, int, int, int]]:
    """(error, timestamp, offset, leader epoch) of each partition."""
    return [
        (ErrorCode(partition.error_code), partition.timestamp, partition.offset, partition.leader_epoch)
        for topic in response.topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize(
    ("time", "answer"),
    [
        (-1, (0, -1, 5, 0)),
        (-2, (0, -1, 0, 0)),
        (-3, (0, 3000, 2, 0)),
        (-4, (0, -1, 0, 0)),
        (-5, NOTHING),
        (-6, NOTHING),
        (-7, UNSUPPORTED),
        (0, (0, 1000, 0, 0)),
        (1000, (0, 1000, 0, 0)),
        (1001, (0, 1010, 1, 0)),
        (1011, (0, 3000, 2, 0)),
        (2500, (0, 3000, 2, 0)),
        (3000, (0, 3000, 2, 0)),
        (3001, NOTHING),
    ],
)
def test_times(world: World, time: int, answer: tuple[int, int, int, int]) -> None:
    assert send_request(world, time) == [answer]


@pytest.mark.parametrize(
    ("time", "answer"),
    [(-1, (0, -1, 0, 0)), (-2, (0, -1, 0, 0)), (-3, NOTHING), (-4, (0, -1, 0, 0)), (-5, NOTHING), (0, NOTHING)],
)
def test_times_in_an_empty_log(world: World, time: int, answer: tuple[int, int, int, int]) -> None:
    assert send_request(world, time, index=1) == [answer]


@pytest.mark.parametrize(("time", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_each_special_time_came_with_a_version(world: World, time: int, since: int) -> None:
    assert send_request(world, time, version=since - 1) == [UNSUPPORTED]
    assert send_request(world, time, version=since) != [UNSUPPORTED]


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"name": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"index": 8}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"epoch": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_refusals(world: World, how: dict[str, Any], code: ErrorCode) -> None:
    assert send_request(world, -1, **how) == [(code, -1, -1, -1)]


def test_a_partition_named_twice_is_an_invalid_request(world: World) -> None:
    assert send_request(world, -1, -2) == [(ErrorCode.INVALID_REQUEST, -1, -1, -1)]


def test_read_committed_sees_the_same_end(world: World) -> None:
    assert send_request(world, -1, isolation=1) == send_request(world, -1)


def test_after_records_were_deleted(world: World) -> None:
    world.partition().log.delete_before(3)
    assert send_request(world, -2) == [(0, -1, 3, 0)]
    assert send_request(world, 0) == [(0, 2500, 3, 0)]


def test_offline(world: World) -> None:
    world.partition().fail("the disk is gone")
    assert send_request(world, -1) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, -1)]


@pytest.mark.parametrize("isolation", [0, 1])
async def test_uncommitted_records_are_not_found(isolation: int) -> None:
    """Two records are committed, a third, the newest, is not."""
    flushing = World({"log.flush.interval.messages": "1"}, flush_executor=Gate())
    flushing.topic()
    partition = flushing.partition()
    partition.append(batch(b"a", b"b", timestamp=1000, step_ms=10), flushing.now_ms)
    partition.log.flush()
    partition.flushed()
    partition.append(batch(b"c", timestamp=3000), flushing.now_ms)
    times = (-1, -3, 1000, 1010, 1011, 3000)
    answers = [send_request(flushing, time, isolation=isolation)[0] for time in times]
    assert answers == [(0, -1, 2, 0), NOTHING, (0, 1000, 0, 0), (0, 1010, 1, 0), NOTHING, NOTHING]
    partition.log.flush()
    partition.flushed()
    answers = [send_request(flushing, time, isolation=isolation)[0] for time in times]
    assert answers == [(0, -1, 3, 0), (0, 3000, 2, 0), (0, 1000, 0, 0), (0, 1010, 1, 0), *[(0, 3000, 2, 0)] * 2]


def test_the_earliest_offset_has_the_epoch_of_its_record(world: World) -> None:
    partition = world.partition()
    partition.lead(3)
    partition.append(batch(b"f"), world.now_ms)
    assert send_request(world, -2) == send_request(world, -4) == [(0, -1, 0, 0)]
    assert send_request(world, -1) == [(0, -1, 6, 3)]
    partition.log.delete_before(5)
    assert send_request(world, -2) == [(0, -1, 5, 3)]
    partition.log.delete_before(6)
    assert send_request(world, -2) == [(0, -1, 6, 3)]


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_latest_is_refused_until_the_high_watermark_reaches_the_epoch_start(
    world: World, version: int, code: ErrorCode
) -> None:
    """Its high watermark is lower than what its predecessor may have told."""
    state = world.partition().state
    state.become_leader(1, (state.broker_id, 8), (state.broker_id, 8), world.now_ms)
    state.high_watermark = 3
    refused = (code, -1, -1, -1)
    assert send_request(world, -1, version=version) == [refused]
    assert send_request(world, 1000, version=version) == [(0, 1000, 0, 0)]
    assert send_request(world, -2, version=version) == [(0, -1, 0, 0)]
    state.follower_fetched(8, 5, world.now_ms)
    assert send_request(world, -1, version=version) == [(0, -1, 5, 1)]


def test_lo4_an_open_transaction_across_an_election_hides_no_offset(world: World) -> None:
    """Read_committed ends at the transaction, below the start of the epoch: only the high watermark counts for that."""
    partition = world.partition()
    verification = partition.log.producers.begin_verification(7, 0, 0, world.now_ms)
    records = batch(b"f", timestamp=4000, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    partition.append(records, world.now_ms, verification)
    partition.lead(3)
    assert partition.state.leader_epoch_start_offset == 6
    expected = {-1: (0, -1, 5, 3), 4000: (0, -1, -1, -1), 1000: (0, 1000, 0, 0)}
    assert {time: send_request(world, time, isolation=1)[0] for time in expected} == expected
    assert send_request(world, -1) == [(0, -1, 6, 3)]


class TestColdSearches:
    """Law LO2. Three partitions of six segments each; nothing is in the page cache, and no index in memory."""

    @pytest.fixture
    def system(self) -> FaultyFiles:
        return FaultyFiles()

    @pytest.fixture
    def world(self, system: FaultyFiles, tmp_path: Path) -> World:
        numbers = count()

        def open_log(config: LogConfig) -> DiskLog:
            small = LogConfig(segment_bytes=700, index_interval_bytes=150)
            return DiskLog.open(tmp_path / f"t-{next(numbers)}", small, files=OpenFiles(system=system))

        world = World(log=open_log)
        world.topic(partitions=3)
        for index in range(3):
            for number in range(50):
                world.partition(index=index).append(batch(bytes(20), timestamp=1000 + number), world.now_ms)
            log = world.partition(index=index).log
            assert isinstance(log, DiskLog)
            assert log.segment_count > 5
            for segment in log._segments[:-1]:
                segment.release()
                segment._largest = None
        system.uncached = {".log", "index"}
        system.calls.clear()
        return world

    def own_reads(self, system: FaultyFiles) -> list[str]:
        """The files that this thread has read."""
        return [call.path for call in system.calls if call.call == "pread" and call.thread == threading.get_ident()]

    async def response(self, world: World, system: FaultyFiles, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """The answer to a request for which this thread reads nothing."""
        threads = GatedThreads.of_this_loop()
        reply = world.serve(list_offsets, request, 11)
        assert isinstance(reply, DelayedReply)
        assert not reply.answered
        assert self.own_reads(system) == []
        threads.open()
        async with asyncio.timeout(10):
            while not reply.answered:
                await asyncio.sleep(0.001)
        assert isinstance(reply.value, ListOffsetsResponse)
        return reply.value

    @pytest.mark.parametrize(("time", "offset"), [(1000, 0), (1020, 20), (1049, 49), (-3, 49)])
    async def test_a_thread_loads_the_pages_that_a_search_needs(
        self, world: World, system: FaultyFiles, time: int, offset: int
    ) -> None:
        timestamp = 1049 if time == -3 else time
        assert rows(await self.response(world, system, list_request(time))) == [(ErrorCode.NONE, timestamp, offset, 0)]

    async def test_a_time_after_all_records_is_searched_for_in_a_thread_too(
        self, world: World, system: FaultyFiles
    ) -> None:
        assert rows(await self.response(world, system, list_request(1050))) == [NOTHING]

    async def test_the_loop_reads_bytes_that_the_page_cache_does_not_keep(
        self, world: World, system: FaultyFiles
    ) -> None:
        system.forgets_loads = True
        assert rows(await self.response(world, system, list_request(1020))) == [(ErrorCode.NONE, 1020, 20, 0)]

    async def test_partitions_are_answered_in_the_order_of_the_request(self, world: World, system: FaultyFiles) -> None:
        topics = tuple(list_request(time, index=index).topics[0] for index, time in ((2, 1020), (0, -1), (1, -3)))
        response = await self.response(world, system, ListOffsetsRequest(replica_id=-1, topics=topics))
        assert [topic.partitions[0].partition_index for topic in response.topics] == [2, 0, 1]
        assert rows(response) == [(0, 1020, 20, 0), (0, -1, 50, 0), (0, 1049, 49, 0)]

    def test_offsets_that_need_no_records_are_answered_at_once(self, world: World, system: FaultyFiles) -> None:
        assert send_request(world, -1) == [(0, -1, 50, 0)]
        assert send_request(world, -2) == [(0, -1, 0, 0)]
        assert self.own_reads(system) == []


class TestFailures:
    """Laws A1, A7. A log whose segments have to be read from the medium."""

    @pytest.fixture
    def system(self) -> FaultyFiles:
        return FaultyFiles()

    @pytest.fixture
    def world(self, system: FaultyFiles, tmp_path: Path) -> World:
        def open_log(config: LogConfig) -> DiskLog:
            return DiskLog.open(tmp_path / "t-0", LogConfig(segment_bytes=300), files=OpenFiles(system=system))

        world = World(log=open_log)
        world.topic()
        for number in range(12):
            world.append(bytes(50), timestamp=1000 + number)
        return world

    @pytest.mark.parametrize("time", [1005, -3])
    def test_a_search_that_the_disk_fails_takes_the_partition_offline(
        self, world: World, system: FaultyFiles, time: int
    ) -> None:
        system.fail("pread", ".log")
        assert send_request(world, time) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, -1)]
        assert world.partition().offline is not None

    @pytest.mark.parametrize("time", [1005, -3])
    def test_a_search_that_meets_damage_is_refused_and_the_partition_stays_online(
        self, world: World, tmp_path: Path, time: int
    ) -> None:
        for path in (tmp_path / "t-0").glob("*.log"):
            path.write_bytes(b"?" * path.stat().st_size)
        with capture_logs() as logs:
            for _ in range(3):
                assert send_request(world, time) == [(ErrorCode.CORRUPT_MESSAGE, -1, -1, -1)]
        assert [line["log_level"] for line in logs] == ["error"]
        assert world.partition().offline is None
