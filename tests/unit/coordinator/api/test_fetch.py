"""Each answer is what Apache Kafka 4.3.1 gave to the same request."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.api.data_world import World, answered, batch, fetch_request
from tests.unit.coordinator.gated_threads import GatedThreads
from tests.unit.coordinator.replica.test_durability import Gate, turns

from rota.coordinator.api.fetch import fetch
from rota.coordinator.api.node import Call
from rota.coordinator.log import segment
from rota.coordinator.log.contract import LogConfig, NotCached, StorageFailed
from rota.coordinator.log.disk import DiskLog
from rota.coordinator.log.file_part import FilePart
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.acl import Entry, ResourcePattern
from rota.coordinator.security.authorizer import Authorizer
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, FetchResponse, PartitionData, ReplicaState
from rota.protocol.records.batch import BATCH_HEADER_BYTES


@pytest.fixture
def world() -> World:
    """Topic t: five batches of two records in partition 0, one in 1, none in 2. Topic u: one."""
    world = World()
    world.topic("t", partitions=3)
    world.topic("u")
    for _ in range(5):
        world.append(b"a", b"b")
    world.append(b"a", b"b", index=1)
    world.append(b"a", b"b", name="u")
    return world


def parts(response: Any) -> list[PartitionData]:
    assert isinstance(response, FetchResponse)
    return [partition for topic in response.responses for partition in topic.partitions]


def get(world: World, *partitions: tuple[str | bytes, int, int], version: int = 12, **how: Any) -> list[PartitionData]:
    return parts(world.serve(fetch, fetch_request(*partitions, **how), version))


def sizes(answers: list[PartitionData]) -> list[int]:
    return [len(partition.records or b"") for partition in answers]


def whole(world: World, topic: str = "t", index: int = 0) -> bytes:
    return world.partition(topic, index).read(0, 1 << 20)


class TestReading:
    def test_from_the_start(self, world: World) -> None:
        (answer,) = get(world, ("t", 0, 0))
        assert answer.records == whole(world)
        assert (answer.error_code, answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (
            0,
            10,
            10,
            0,
        )
        assert (answer.aborted_transactions, answer.preferred_read_replica) == (None, -1)

    def test_in_the_middle_of_a_batch_gives_all_of_it(self, world: World) -> None:
        assert get(world, ("t", 0, 3))[0].records == whole(world)[len(whole(world)) // 5 :]

    def test_at_the_end_gives_nothing(self, world: World) -> None:
        (answer,) = get(world, ("t", 0, 10))
        assert (answer.error_code, answer.records, answer.high_watermark) == (0, b"", 10)

    @pytest.mark.parametrize("offset", [11, -1])
    def test_outside_the_log_is_an_error_at_once(self, world: World, offset: int) -> None:
        (answer,) = get(world, ("t", 0, offset), max_wait_ms=500)
        assert (answer.error_code, answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (
            ErrorCode.OFFSET_OUT_OF_RANGE,
            -1,
            -1,
            -1,
        )
        assert answer.records == b""

    def test_read_committed_lists_no_aborted_transactions(self, world: World) -> None:
        (answer,) = get(world, ("t", 0, 2), isolation_level=1)
        assert (answer.aborted_transactions, answer.last_stable_offset) == ((), 10)

    def test_by_topic_id(self, world: World) -> None:
        topic = world.node.topics.get("t")
        assert topic is not None
        response = world.serve(fetch, fetch_request((topic.topic_id, 0, 0)), 13)
        assert response.responses[0].topic_id == topic.topic_id
        assert parts(response)[0].records == whole(world)


class TestLimits:
    def test_the_first_batch_is_returned_whole_above_all_size_limits(self, world: World) -> None:
        batch_bytes = len(whole(world)) // 5
        for how in ({"partition_max_bytes": 10}, {"partition_max_bytes": 0}, {"max_bytes": 0}, {"max_bytes": 2}):
            assert sizes(get(world, ("t", 0, 0), **how)) == [batch_bytes]

    def test_the_last_batch_may_be_cut(self, world: World) -> None:
        (answer,) = get(world, ("t", 0, 0), partition_max_bytes=100)
        assert answer.records is not None
        assert whole(world).startswith(bytes(answer.records))
        assert len(answer.records) <= 100

    def test_partitions_are_read_in_order_until_the_answer_is_full(self, world: World) -> None:
        batch_bytes = len(whole(world)) // 5
        answers = get(world, ("t", 0, 0), ("t", 1, 0), ("u", 0, 0), max_bytes=2)
        assert sizes(answers) == [batch_bytes, 0, 0]
        assert [partition.high_watermark for partition in answers] == [10, 2, 2]

    def test_only_the_first_partition_may_exceed_its_limit(self, world: World) -> None:
        batch_bytes = len(whole(world)) // 5
        answers = get(world, ("t", 2, 0), ("t", 1, 0), ("u", 0, 0), partition_max_bytes=2)
        assert sizes(answers) == [0, batch_bytes, 0]

    def test_fetch_max_bytes_of_the_broker_limits_the_response(self) -> None:
        world = World({"fetch.max.bytes": "1024"})
        world.topic()
        for _ in range(40):
            world.append(b"a", b"b")
        assert 0 < sizes(get(world, ("t", 0, 0)))[0] <= 1024


class TestWhatIsNotThere:
    @pytest.mark.parametrize("partitions", [("nope", 0, 0), ("t", 9, 0)])
    def test_by_name(self, world: World, partitions: tuple[str, int, int]) -> None:
        (answer,) = get(world, partitions, max_wait_ms=500)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (answer.high_watermark, answer.aborted_transactions) == (-1, ())

    def test_by_id(self, world: World) -> None:
        (answer,) = get(world, (bytes(16), 0, 0), version=13, max_wait_ms=500)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    def test_an_unknown_topic_does_not_complete_the_fetch_and_is_listed_last(self, world: World) -> None:
        reply = world.serve(fetch, fetch_request(("nope", 0, 0), ("t", 2, 0), max_wait_ms=500), 12)
        assert not reply.answered
        world.after(500)
        assert [topic.topic for topic in answered(reply).responses] == ["t", "nope"]

    def test_offline(self, world: World) -> None:
        world.partition().fail("the disk is gone")
        assert get(world, ("t", 0, 0), max_wait_ms=500)[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert get(world, ("t", 0, 0), version=5)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @pytest.mark.parametrize(
        ("version", "replica"), [(12, {"replica_id": 5}), (15, {"replica_state": ReplicaState(replica_id=5)})]
    )
    def test_an_unknown_follower(self, world: World, version: int, replica: dict[str, Any]) -> None:
        topic = world.node.topics.get("t")
        assert topic is not None
        name = "t" if version < 13 else topic.topic_id
        assert get(world, (name, 0, 0), version=version, **replica)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_no_partitions_at_all(self, world: World) -> None:
        assert get(world, max_wait_ms=500) == []


class TestEpochs:
    @pytest.fixture
    def world(self) -> World:
        """Two records of epoch 2, two of epoch 5."""
        world = World()
        world.topic()
        world.partition().lead(2)
        world.append(b"a", b"b")
        world.partition().lead(5)
        world.append(b"c", b"d")
        return world

    @pytest.mark.parametrize(
        ("epoch", "code"), [(5, 0), (3, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)]
    )
    def test_a_consumer_of_another_epoch_is_fenced(self, world: World, epoch: int, code: int) -> None:
        assert get(world, ("t", 0, 0), current_leader_epoch=epoch, max_wait_ms=500)[0].error_code == code

    def test_a_history_that_we_share_is_read_on(self, world: World) -> None:
        (answer,) = get(world, ("t", 0, 2), last_fetched_epoch=2)
        assert (answer.diverging_epoch, bool(answer.records)) == (None, True)

    @pytest.mark.parametrize(
        ("offset", "epoch", "where"), [(3, 2, (2, 2)), (4, 3, (2, 2)), (20, 5, (5, 4)), (1, 4, (2, 2))]
    )
    def test_a_diverging_epoch_is_answered_at_once(
        self, world: World, offset: int, epoch: int, where: tuple[int, int]
    ) -> None:
        (answer,) = get(world, ("t", 0, offset), last_fetched_epoch=epoch, max_wait_ms=500)
        assert answer.diverging_epoch == EpochEndOffset(epoch=where[0], end_offset=where[1])
        assert (answer.error_code, answer.records, answer.high_watermark) == (0, b"", 4)

    def test_a_negative_epoch_is_none(self, world: World) -> None:
        (answer,) = get(world, ("t", 0, 2), current_leader_epoch=-7, last_fetched_epoch=-5)
        assert (answer.error_code, bool(answer.records)) == (0, True)

    def test_an_epoch_that_never_was(self, world: World) -> None:
        (answer,) = get(world, ("t", 0, 2), last_fetched_epoch=9)
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


class TestWaiting:
    def send_request(self, world: World, *partitions: tuple[str, int, int], **how: Any) -> DelayedReply[FetchResponse]:
        reply = world.serve(fetch, fetch_request(*(partitions or (("t", 2, 0),)), **{"max_wait_ms": 500, **how}), 12)
        assert isinstance(reply, DelayedReply)
        return reply

    async def test_for_the_next_record(self, world: World) -> None:
        reply = self.send_request(world)
        assert not reply.answered
        records = world.append(b"new", index=2)
        await asyncio.sleep(0)
        assert [partition.records for partition in parts(answered(reply))] == [records]

    async def test_for_min_bytes(self, world: World) -> None:
        reply = self.send_request(world, min_bytes=150)
        world.append(b"a", b"b", index=2)
        await asyncio.sleep(0)
        assert not reply.answered
        world.append(b"a", b"b", index=2)
        await asyncio.sleep(0)
        assert sizes(parts(answered(reply)))[0] >= 150

    def test_until_the_deadline(self, world: World) -> None:
        reply = self.send_request(world, ("t", 0, 0), min_bytes=1_000_000)
        world.after(499)
        assert not reply.answered
        world.after(1)
        assert parts(answered(reply))[0].records == whole(world)

    def test_not_for_more_than_fits_the_answer(self, world: World) -> None:
        assert sizes(get(world, ("t", 0, 0), max_wait_ms=500, min_bytes=1_000_000, max_bytes=100)) != [0]

    @pytest.mark.parametrize("how", [{"min_bytes": 0}, {"max_wait_ms": 0}])
    def test_an_empty_request_does_not_wait(self, world: World, how: dict[str, int]) -> None:
        assert sizes(get(world, ("t", 2, 0), **{"max_wait_ms": 500, **how})) == [0]

    async def test_until_the_topic_is_deleted(self, world: World) -> None:
        reply = self.send_request(world)
        eager_tasks.run_eagerly(world.node.topics.delete("t"))
        await asyncio.sleep(0)
        assert parts(answered(reply))[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def test_and_does_not_go_on_in_a_new_topic_of_that_name(self, world: World) -> None:
        reply = self.send_request(world)
        eager_tasks.run_eagerly(world.node.topics.delete("t"))
        world.topic("t", partitions=3)
        await asyncio.sleep(0)
        assert parts(answered(reply))[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_an_abandoned_fetch_leaves_no_timer_and_no_watch(self, world: World) -> None:
        self.send_request(world).abandon()
        assert len(world.node.timers) == 0
        assert world.partition(index=2)._watches == {}


class CountingLog(MemoryLog):
    """Counts the bytes that are read."""

    __slots__ = ()
    read_bytes = 0

    def read(
        self, offset: int, bytes_max: int, *, until: int | None = None, first_whole: bool = True, wait: bool = True
    ) -> bytes:
        records = super().read(offset, bytes_max, until=until, first_whole=first_whole, wait=wait)
        CountingLog.read_bytes += len(records)
        return records


@pytest.mark.parametrize("bytes_max", [30_000, 150_000])
def test_nothing_is_read_that_does_not_fit(bytes_max: int) -> None:
    """F8. 25 partitions, of which the first fills the answer, or the second does not fit any more."""
    world = World(log=CountingLog)
    world.topic(partitions=25)
    for index in range(25):
        world.append(bytes(100_000), index=index)
    before = CountingLog.read_bytes
    answers = get(world, *(("t", index, 0) for index in range(25)), max_bytes=bytes_max)
    assert len(answers) == 25
    assert [answer.high_watermark for answer in answers] == [1] * 25
    assert CountingLog.read_bytes - before == sum(sizes(answers)) == len(whole(world))


class ColdLog(MemoryLog):
    """Its records are on the disk alone until `load` is called; what was loaded stays for `reads` reads."""

    __slots__ = ()
    loads, reads, stays = 0, 0, 1 << 30
    fails = False

    def read(
        self, offset: int, bytes_max: int, *, until: int | None = None, first_whole: bool = True, wait: bool = True
    ) -> bytes:
        is_empty = not first_whole and bytes_max < BATCH_HEADER_BYTES
        if not wait and not is_empty and ColdLog.reads <= 0:
            raise NotCached(self.load)
        if ColdLog.fails:
            raise StorageFailed("the disk is gone")
        ColdLog.reads -= 1
        return super().read(offset, bytes_max, until=until, first_whole=first_whole, wait=wait)

    def load(self) -> None:
        ColdLog.loads, ColdLog.reads = ColdLog.loads + 1, ColdLog.stays
        if ColdLog.fails:
            raise OSError(5, "Input/output error")


class TestColdReads:
    @pytest.fixture
    def world(self) -> World:
        ColdLog.loads, ColdLog.reads, ColdLog.stays, ColdLog.fails = 0, 0, 1 << 30, False
        world = World(log=ColdLog)
        world.topic(partitions=3)
        for index in range(3):
            world.partition(index=index).append(batch(bytes(1000)), world.now_ms)
        return world

    async def response(self, world: World, **how: Any) -> list[PartitionData]:
        threads = GatedThreads.of_this_loop()
        reply = world.serve(fetch, fetch_request(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), **how), 12)
        assert isinstance(reply, DelayedReply)
        assert reply.mutes
        assert not reply.answered
        threads.open()
        async with asyncio.timeout(10):
            while not reply.answered:
                await asyncio.sleep(0.001)
        return parts(reply.value)

    async def test_records_on_the_disk_are_loaded_in_a_thread_first(self, world: World) -> None:
        answers = await self.response(world)
        assert ColdLog.loads == 3
        assert sizes(answers) == [len(whole(world))] * 3

    async def test_no_more_is_loaded_than_may_be_answered(self, world: World) -> None:
        answers = await self.response(world, max_bytes=1000, partition_max_bytes=1000)
        assert ColdLog.loads == 1
        assert sizes(answers) == [len(whole(world)), 0, 0]

    async def test_nothing_is_returned_of_a_topic_whose_permission_ended_while_it_was_loaded(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.node.authorizer = authorizer = Authorizer()
        pattern = ResourcePattern.parse("TOPIC:LITERAL:t")
        authorizer.replace(pattern, [Entry.parse("ALLOW READ * User:ANONYMOUS")])
        load = ColdLog.load

        def revoked(log: ColdLog) -> None:
            load(log)
            authorizer.replace(pattern, ())

        monkeypatch.setattr(ColdLog, "load", revoked)
        answers = await self.response(world)
        assert {answer.error_code for answer in answers} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert sizes(answers) == [0, 0, 0]

    async def test_a_fetch_that_waited_loads_its_records_in_a_thread_too(self, world: World) -> None:
        end = len(world.partition().log.read(0, 1 << 20))
        threads = GatedThreads.of_this_loop()
        reply = world.serve(fetch, fetch_request(("t", 0, 1), max_wait_ms=500), 12)
        assert isinstance(reply, DelayedReply)
        world.partition().append(batch(bytes(1000)), world.now_ms)
        await asyncio.sleep(0)  # the tick of the answer
        assert not reply.answered
        threads.open()
        async with asyncio.timeout(10):
            while not reply.answered:
                await asyncio.sleep(0.001)
        assert ColdLog.loads == 1
        assert sizes(parts(reply.value)) == [end]

    async def test_data_evicted_between_passes_is_read_blocking_in_the_last_pass(self, world: World) -> None:
        ColdLog.stays = 1
        answers = await self.response(world)
        assert ColdLog.loads == 3 + 2  # the second pass needs less, the third pass needs the same again
        assert sizes(answers) == [len(whole(world))] * 3

    async def test_a_disk_that_fails_takes_the_partitions_offline(self, world: World) -> None:
        ColdLog.fails = True
        answers = await self.response(world)
        assert [answer.error_code for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        assert world.partition().offline is not None


class TestFlushedMessages:
    async def test_a_long_poll_wakes_when_the_high_watermark_passes(self) -> None:
        gate = Gate()
        world = World({"log.flush.interval.messages": "1"}, flush_executor=gate)
        world.topic()
        reply = world.serve(fetch, fetch_request(("t", 0, 0), max_wait_ms=500), 12)
        world.partition().append(batch(b"a"), world.now_ms)
        await turns()
        assert not reply.answered
        gate.open()
        await turns()
        (answer,) = parts(answered(reply))
        assert (answer.high_watermark, answer.records) == (1, whole(world))


class TestSessions:
    """The requests that were sent to Apache Kafka, answer by answer."""

    def send_request(
        self, world: World, session: int, epoch: int, *partitions: tuple[str, int, int], **how: Any
    ) -> Any:
        request = fetch_request(*partitions, session_id=session, session_epoch=epoch, **how)
        return world.serve(fetch, request, how.get("version", 12))

    def partition_answers(self, response: Any) -> list[tuple[str, int, int, bool]]:
        return [
            (topic.topic, partition.partition_index, partition.error_code, bool(partition.records))
            for topic in response.responses
            for partition in topic.partitions
        ]

    def test_a_conversation(self, world: World) -> None:
        first = self.send_request(world, 0, 0, ("t", 0, 0), ("t", 1, 0), ("t", 2, 0))
        assert self.partition_answers(first) == [("t", 0, 0, True), ("t", 1, 0, True), ("t", 2, 0, False)]
        session = first.session_id
        assert session > 0
        again = self.send_request(world, session, 1)
        assert (again.session_id, self.partition_answers(again)) == (session, [("t", 0, 0, True), ("t", 1, 0, True)])
        assert self.partition_answers(self.send_request(world, session, 2, ("t", 0, 10), ("t", 1, 2))) == []
        world.append(b"a", index=2)
        assert self.partition_answers(self.send_request(world, session, 3, max_wait_ms=500)) == [("t", 2, 0, True)]
        lost = self.send_request(world, session, 4, ("u", 0, 2), ("t", 0, 99), forgotten=[("t", 2)])
        assert self.partition_answers(lost) == [("t", 0, ErrorCode.OFFSET_OUT_OF_RANGE, False), ("u", 0, 0, False)]
        found = self.send_request(world, session, 5, ("t", 0, 10))
        assert self.partition_answers(found) == [("t", 0, 0, False)]

    def test_an_incremental_fetch_waits_for_news(self, world: World) -> None:
        session = self.send_request(world, 0, 0, ("t", 2, 0)).session_id
        reply = self.send_request(world, session, 1, max_wait_ms=500)
        world.after(500)
        response = answered(reply)
        assert (response.session_id, response.responses) == (session, ())

    @pytest.mark.parametrize(
        ("epoch", "version", "code"),
        [
            (9, 12, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
            (1, 13, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
        ],
    )
    def test_session_errors(self, world: World, epoch: int, version: int, code: ErrorCode) -> None:
        session = self.send_request(world, 0, 0, ("t", 0, 0)).session_id
        request = fetch_request(session_id=session, session_epoch=epoch, max_wait_ms=500)
        response = world.serve(fetch, request, version)
        assert (response.error_code, response.session_id, response.responses) == (code, 0, ())

    def test_an_unknown_session(self, world: World) -> None:
        assert self.send_request(world, 12345, 1, ("t", 0, 0)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_ids_that_appear_later_are_found(self, world: World) -> None:
        coming = (99).to_bytes(16, "big")
        first = world.serve(fetch, fetch_request((coming, 0, 0), session_epoch=0), 13)
        assert parts(first)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        world.node.topics._fresh_uuid = lambda: coming
        world.topic("later")
        request = fetch_request(session_id=first.session_id, session_epoch=1)
        assert [partition.error_code for partition in parts(world.serve(fetch, request, 13))] == [0]


class TestParts:
    """F18. Many bytes of a file are a part of it where the connection sends files."""

    @pytest.fixture
    def world(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
        monkeypatch.setattr(segment, "PART_BYTES_MIN", 100)
        world = World(log=lambda config: DiskLog.open(tmp_path / "t-0", config))
        world.topic()
        for _ in range(3):
            world.append(bytes(50))
        return world

    @pytest.mark.parametrize("sends_files", [True, False])
    def test_a_part_is_returned_where_it_can_be_sent(self, world: World, sends_files: bool) -> None:
        call = Call(12, "test", "/127.0.0.1", "127.0.0.1", 9092, connection_id=1, sends_files=sends_files)
        (answer,) = parts(fetch(world.node, call, fetch_request(("t", 0, 0))))
        records: object = answer.records
        assert isinstance(records, FilePart) is sends_files
        assert (records.read() if isinstance(records, FilePart) else records) == whole(world)
        assert world.partition().bytes_out == len(whole(world)), "it counts as sent"


class TestDamage:
    """Law A7. A partition of several segments, all flushed; the header of the batch at offset 5 is overwritten."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        def open_log(config: LogConfig) -> DiskLog:
            return DiskLog.open(tmp_path / "t-0", replace(config, segment_bytes=300, index_interval_bytes=1))

        world = World(log=open_log)
        world.topic()
        for _ in range(12):
            world.append(bytes(50))
        log = world.partition().log
        assert isinstance(log, DiskLog)
        log.flush()
        segment = next(segment for segment in log._segments if segment.base_offset <= 5 < segment.next_offset)
        position = segment.position_of(5)
        with (log.path / f"{segment.base_offset:020d}.log").open("r+b") as file:
            file.seek(position)
            file.write(b"?" * 40)
        segment._forget_recent()
        return world

    def test_a_fetch_of_it_is_refused_and_the_partition_stays_online(self, world: World) -> None:
        epoch = world.partition().leader_epoch
        with capture_logs() as logs:
            for _ in range(3):
                (answer,) = get(world, ("t", 0, 5))
                assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
        assert [line["log_level"] for line in logs] == ["error"]
        assert world.partition().offline is None
        assert world.partition().leader_epoch == epoch

    def test_the_records_before_and_after_it_are_read_and_new_ones_written(self, world: World) -> None:
        get(world, ("t", 0, 5))
        world.append(b"new")
        for offset in (0, 9, 12):
            (answer,) = get(world, ("t", 0, offset))
            assert (answer.error_code, bool(answer.records)) == (ErrorCode.NONE, True)

    def test_unflushed_records_are_recovered(self, world: World) -> None:
        log = world.partition().log
        assert isinstance(log, DiskLog)
        log._recovery_point = 5
        (answer,) = get(world, ("t", 0, 5))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.partition().offline is not None
