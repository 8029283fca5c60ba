"""Markers reach their partitions through errors, dead brokers and changes of the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.metadata import eager_tasks, znodes
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import Stat, StoreFailed, Watch
from rota.coordinator.metadata.topics import Topic, Topics
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.events import Producer, TopicPartition
from rota.coordinator.transaction.state import Markers
from rota.coordinator.transaction_coordinator import MarkerJob
from rota.coordinator.transaction_service.marker_sender import RETRY_MS, Entry, TransactionMarkers, request_of
from rota.protocol.constructs import DecodeError
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rota.transport.errors import Unreachable

E = ErrorCode


class UnreadableStore(EmbeddedStore):
    """`failures`: of the next reads of topics. `opened`: reads wait for it."""

    failures = 0
    opened: asyncio.Event | None = None

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        if self.opened is not None:
            await self.opened.wait()
        if self.failures and path.startswith(znodes.TOPICS + "/"):
            self.failures -= 1
            raise StoreFailed("no connection")
        return await super().get(path, watch)


class SenderWorld(World):
    """The topic "t" has three partitions, led here (0), by broker 1, and by none."""

    def __init__(self) -> None:
        self.store = UnreadableStore()
        super().__init__(store=self.store)
        self.register(0, 1, 2)
        self.topic("t", 3, assignment=[(index, (index,)) for index in range(3)])
        self.register(0, 1)
        self.requests: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.codes: dict[TopicPartition, list[ErrorCode]] = {}  # what each attempt answers, NONE after them
        self.failures = 0  # of requests to broker 1
        self.failure: Exception = Unreachable("it is dead")
        self.sender = TransactionMarkers(
            self.node.topics,
            broker_id=0,
            write=self.write,
            send_request=self.send_request,
            timers=self.node.timers,
            now_ms=lambda: self.now_ms,
            tick_queue=self.tick_queue.append,
        )
        self.is_current = True
        self.written: list[TopicPartition] = []

    def write(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        self.requests.append((0, request))
        return self.response(request)

    async def send_request(self, broker: int, request: Any) -> Any:
        self.requests.append((broker, request))
        if self.failures:
            self.failures -= 1
            raise self.failure
        return self.response(request)

    def response(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        def result(name: str, index: int) -> WritableTxnMarkerPartitionResult:
            codes = self.codes.get((name, index)) or [E.NONE]
            return WritableTxnMarkerPartitionResult(partition_index=index, error_code=codes.pop(0))

        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(result(topic.name, index) for index in topic.partition_indexes),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in request.markers
            )
        )

    def job(self, *partitions: TopicPartition, producer_id: int = 7) -> MarkerJob:
        def written(done: Iterable[TopicPartition]) -> None:
            self.written += done

        return MarkerJob(
            markers=Markers(
                transactional_id=f"tx-{producer_id}",
                producer=Producer(producer_id, 1),
                is_commit=True,
                client_version=2,
                partitions=partitions,
            ),
            coordinator_epoch=5,
            is_current=lambda: self.is_current,
            written=written,
        )

    def submit(self, *partitions: TopicPartition) -> None:
        self.sender.submit(self.job(*partitions))
        self.end_turn()

    def retry(self) -> None:
        self.after(RETRY_MS)
        self.end_turn()


def test_markers_of_one_turn_are_one_request() -> None:
    world = SenderWorld()
    world.sender.submit(world.job(("t", 0)))
    world.sender.submit(world.job(("t", 0), producer_id=8))
    world.end_turn()
    ((broker, request),) = world.requests
    assert (broker, [marker.producer_id for marker in request.markers]) == (0, [7, 8])
    assert world.written == [("t", 0), ("t", 0)]


def test_a_marker_says_all_that_a_partition_needs() -> None:
    world = SenderWorld()
    job = world.job(("t", 0), ("u", 1), ("t", 2))
    (marker,) = request_of([Entry(job, job.markers.partitions)]).markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (7, 1, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (5, 2)
    assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", (0, 2)), ("u", (1,))]


RETRIED = [E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_ENOUGH_REPLICAS, E.REQUEST_TIMED_OUT]
RETRIED += [E.KAFKA_STORAGE_ERROR, E.TRANSACTION_COORDINATOR_FENCED, E.UNKNOWN_SERVER_ERROR]


@pytest.mark.parametrize("code", RETRIED)
def test_a_marker_is_tried_until_it_is_written(code: ErrorCode) -> None:
    world = SenderWorld()
    world.codes = {("t", 0): [code, code]}
    world.submit(("t", 0))
    assert world.written == []
    world.retry()
    world.retry()
    assert (world.written, len(world.requests)) == ([("t", 0)], 3)
    world.retry()
    assert len(world.requests) == 3


@pytest.mark.parametrize("code", [E.INVALID_PRODUCER_EPOCH, E.UNSUPPORTED_FOR_MESSAGE_FORMAT])
def test_a_marker_that_is_not_needed_is_not_tried_again(code: ErrorCode) -> None:
    world = SenderWorld()
    world.codes = {("t", 0): [code]}
    world.submit(("t", 0))
    assert world.written == [("t", 0)]


def test_a_partition_that_does_not_exist_needs_no_marker() -> None:
    world = SenderWorld()
    world.submit(("deleted", 0), ("t", 0))
    assert (sorted(world.written), len(world.requests)) == ([("deleted", 0), ("t", 0)], 1)


def created_elsewhere(world: SenderWorld, name: str, partitions: int = 1) -> Topics:
    """The image of another broker, which has created a topic that this broker has not read yet."""
    other = Topics(world.store, broker_id=1, fresh_uuid=lambda: name.encode().ljust(16))
    eager_tasks.run_eagerly(other.load())
    other.apply_brokers(world.node.topics.brokers)
    created = eager_tasks.run_eagerly(
        other.create(name, partitions, assignment=[(index, (0,)) for index in range(partitions)])
    )
    assert isinstance(created, Topic)
    return other


def test_txc6_a_topic_that_this_broker_has_not_read_yet_gets_its_marker() -> None:
    """The image shows the leader of a shard before a topic that was created earlier."""
    world = SenderWorld()
    created_elsewhere(world, "late")
    world.submit(("late", 0), ("deleted", 0))
    ((broker, request),) = world.requests
    assert (broker, request.markers[0].topics[0].name) == (0, "late")
    assert sorted(world.written) == [("deleted", 0), ("late", 0)]


def test_txc6_a_partition_that_this_broker_has_not_read_yet_gets_its_marker() -> None:
    world = SenderWorld()
    other = created_elsewhere(world, "late")
    eager_tasks.run_eagerly(world.node.topics.refresh("late"))
    assert isinstance(eager_tasks.run_eagerly(other.add_partitions("late", 2, assignment=((0,),))), Topic)
    world.submit(("late", 1), ("late", 2))
    assert [topic.partition_indexes for topic in world.requests[0][1].markers[0].topics] == [(1,)]
    assert sorted(world.written) == [("late", 1), ("late", 2)]


def test_txc6_a_topic_is_not_taken_as_deleted_while_the_store_cannot_be_read() -> None:
    world = SenderWorld()
    created_elsewhere(world, "late")
    world.store.failures = 2
    world.submit(("deleted", 0), ("late", 0))
    assert (world.written, world.requests) == ([], [])
    world.retry()
    assert sorted(world.written) == [("deleted", 0), ("late", 0)]
    assert len(world.requests) == 1


def test_txc5_a_topic_whose_node_is_damaged_loses_no_marker_and_delays_no_other() -> None:
    world = SenderWorld()
    created_elsewhere(world, "late")
    path = znodes.topic_path("late")
    whole, stat = eager_tasks.run_eagerly(world.store.get(path))
    version = eager_tasks.run_eagerly(world.store.set(path, b"{", stat.version))
    world.submit(("late", 0), ("deleted", 0), ("t", 0))
    assert sorted(world.written) == [("deleted", 0), ("t", 0)]
    eager_tasks.run_eagerly(world.store.set(path, whole, version))
    world.retry()
    assert sorted(world.written) == [("deleted", 0), ("late", 0), ("t", 0)]


def test_a_partition_without_a_live_leader_waits_and_delays_no_other() -> None:
    world = SenderWorld()
    world.submit(("t", 0), ("t", 2))
    assert world.written == [("t", 0)]
    world.register(0, 1, 2)

    async def play() -> None:
        world.retry()
        await asyncio.sleep(0)

    asyncio.run(play())
    assert [broker for broker, _ in world.requests] == [0, 2]
    assert world.written == [("t", 0), ("t", 2)]


@pytest.mark.parametrize(
    "failure", [Unreachable("it is dead"), DecodeError("nonsense"), OSError(24, "no file is left")]
)
def test_another_leader_is_asked_again_after_a_failure(failure: Exception) -> None:
    world = SenderWorld()
    world.failures, world.failure = 2, failure

    async def play() -> None:
        world.submit(("t", 1))
        for _ in range(3):
            await asyncio.sleep(0)
            world.retry()

    asyncio.run(play())
    assert [broker for broker, _ in world.requests] == [1, 1, 1]
    assert world.written == [("t", 1)]


def test_a_failure_of_this_broker_is_tried_again() -> None:
    world = SenderWorld()
    failures = [OSError(24, "no file is left")]

    def write(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        if failures:
            raise failures.pop()
        return world.write(request)

    world.sender._write = write
    world.submit(("t", 0))
    assert world.written == []
    world.retry()
    assert world.written == [("t", 0)]


def test_a_job_that_ended_sends_nothing_more() -> None:
    world = SenderWorld()
    world.codes = {("t", 0): [E.NOT_LEADER_OR_FOLLOWER]}
    world.submit(("t", 0))
    world.is_current = False
    world.retry()
    world.submit(("t", 0))
    assert (len(world.requests), world.written) == (1, [])


def test_a_reply_that_comes_later_counts() -> None:
    world = SenderWorld()
    reply: DelayedReply[WriteTxnMarkersResponse] = DelayedReply()
    world.sender._write = lambda request: world.requests.append((0, request)) or reply  # type: ignore[func-returns-value]
    world.submit(("t", 0))
    assert world.written == []
    reply.answer(world.response(world.requests[0][1]))
    assert world.written == [("t", 0)]


def test_a_sender_that_stops_sends_nothing_more() -> None:
    world = SenderWorld()

    async def play() -> None:
        world.submit(("t", 1), ("t", 2))
        await world.sender.stop()
        world.retry()
        await asyncio.sleep(0)

    asyncio.run(play())
    assert world.written == []
    eager_tasks.run_eagerly(world.node.topics.store.close())


def test_a_sender_that_stops_while_it_reads_a_topic_sends_nothing_more() -> None:
    world = SenderWorld()
    created_elsewhere(world, "late")

    async def play() -> None:
        world.store.opened = asyncio.Event()
        world.submit(("late", 0), ("deleted", 0))
        await world.sender.stop()
        world.store.opened.set()
        for _ in range(10):
            await asyncio.sleep(0)
        world.retry()

    asyncio.run(play())
    assert world.node.topics.partition("late", 0) is not None, "the read went on to its end"
    assert (world.requests, world.written) == ([], [])
