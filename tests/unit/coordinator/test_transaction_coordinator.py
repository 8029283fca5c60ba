"""The coordinator on its topic: crashes of the broker, changes of the leader, ids that are drawn and expire."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World
from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import TRANSACTION_STATE
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.events import Producer
from rota.coordinator.transaction.state import ProducerReply, TransactionValue
from rota.coordinator.transaction_coordinator import MarkerJob, TransactionCoordinator
from rota.protocol.errors import ErrorCode

E = ErrorCode


class Sender:
    """Keeps the jobs; a test says what was written."""

    def __init__(self) -> None:
        self.jobs: list[MarkerJob] = []

    def submit(self, job: MarkerJob) -> None:
        self.jobs.append(job)


class CoordinatorWorld(World):
    """A coordinator whose markers the test writes. `restart` replaces it with a new one over the same logs."""

    def __init__(self) -> None:
        super().__init__()
        self.node.topics.on_change(lambda change: None)
        eager_tasks.run_eagerly(self.transaction_topic.ensure())
        self.sender = Sender()
        self.producer_ids = iter(range(100))
        self.restart()

    async def take_producer_id(self) -> int:
        producer_id = next(self.producer_ids, None)
        if producer_id is None:
            raise StoreFailed("no ids")
        return producer_id

    def restart(self, epoch: int = 0) -> None:
        self.coordinator = TransactionCoordinator(
            shards=4,
            partition=self.transaction_topic.partition,
            timers=self.node.timers,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
            tick_queue=self.tick_queue.append,
            ensure_topic=self.transaction_topic.ensure,
            leader=lambda index: index,
            take_producer_id=self.take_producer_id,
            sender=self.sender,
        )
        for index in range(4):
            self.coordinator.lead(index, epoch)
        self.end_turn()

    def settle(self, reply: Any) -> Any:
        self.end_turn()
        if isinstance(reply, DelayedReply):
            assert reply.answered
            return reply.value
        return reply

    def began(self, *partitions: tuple[str, int]) -> Producer:
        reply: ProducerReply = self.settle(self.coordinator.init_producer("tx", 60_000, None))
        producer = Producer(reply.producer_id, reply.epoch)
        self.settle(self.coordinator.add_partitions("tx", producer, partitions, 2))
        return producer

    def end(self, producer: Producer, *, is_commit: bool = True) -> ProducerReply:
        reply = self.coordinator.end_transaction("tx", producer, is_commit=is_commit, client_version=2)
        body: ProducerReply = self.settle(reply)
        return body

    def state(self) -> str:
        value = self.coordinator.describe("tx")
        assert isinstance(value, TransactionValue)
        return value.state.value


@pytest.fixture
def world() -> CoordinatorWorld:
    return CoordinatorWorld()


def test_markers_are_sent_when_the_decision_is_written_and_the_reply_does_not_wait_for_them(
    world: CoordinatorWorld,
) -> None:
    producer = world.began(("t", 0), ("t", 1))
    reply = world.coordinator.end_transaction("tx", producer, is_commit=True, client_version=2)
    assert world.sender.jobs == []
    assert world.settle(reply) == ProducerReply(E.NONE, 0, 1)
    (job,) = world.sender.jobs
    assert (job.markers.producer, job.coordinator_epoch, job.is_current()) == ((0, 1), 0, True)
    assert world.state() == "PrepareCommit"
    job.written([("t", 0)])
    assert world.state() == "PrepareCommit"
    job.written([("t", 1)])
    world.end_turn()
    assert world.state() == "CompleteCommit"


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_decision_that_is_loaded_is_completed(world: CoordinatorWorld, is_commit: bool) -> None:
    world.end(world.began(("t", 0)), is_commit=is_commit)
    (before,) = world.sender.jobs
    world.restart()
    (_, after) = world.sender.jobs
    assert after.markers == before.markers
    after.written([("t", 0)])
    world.end_turn()
    assert world.state() == ("CompleteCommit" if is_commit else "CompleteAbort")


def test_a_shard_that_moved_away_ends_its_jobs(world: CoordinatorWorld) -> None:
    world.end(world.began(("t", 0)))
    (job,) = world.sender.jobs
    world.coordinator.resign(world.coordinator.partition_of("tx"), 1)
    assert not job.is_current()
    job.written([("t", 0)])  # a late response
    assert world.coordinator.describe("tx") is E.NOT_COORDINATOR
    world.coordinator.lead(world.coordinator.partition_of("tx"), 2)
    world.end_turn()
    assert world.state() == "PrepareCommit"
    assert [each.coordinator_epoch for each in world.sender.jobs] == [0, 2]


def test_a_standby_that_becomes_the_leader_completes_what_it_has_replayed(world: CoordinatorWorld) -> None:
    index = world.coordinator.partition_of("tx")
    producer = world.began(("t", 0))
    other = TransactionCoordinator(
        shards=4,
        partition=world.transaction_topic.partition,
        timers=world.node.timers,
        now_ms=lambda: world.now_ms,
        wall_ms=lambda: world.now_ms,
        tick_queue=world.tick_queue.append,
        ensure_topic=world.transaction_topic.ensure,
        leader=lambda index: index,
        take_producer_id=world.take_producer_id,
        sender=(sender := Sender()),
    )
    other.follow(index)
    world.end(producer)
    other.log_grew(index)
    world.end_turn()
    assert sender.jobs == []
    world.coordinator.resign(index, 1)
    other.lead(index, 1)
    world.end_turn()
    assert [(job.markers.is_commit, job.coordinator_epoch) for job in sender.jobs] == [(True, 1)]


def test_a_transaction_without_partitions_needs_no_sender(world: CoordinatorWorld) -> None:
    producer = world.began()
    assert world.end(producer, is_commit=False).error is E.NONE
    world.end_turn()
    assert (world.state(), world.sender.jobs) == ("CompleteAbort", [])


def test_ids_are_drawn_only_where_they_are_needed(world: CoordinatorWorld) -> None:
    producer = world.began()
    world.end(producer, is_commit=False)
    world.settle(world.coordinator.init_producer("tx", 60_000, None))
    assert next(world.producer_ids) == 1


def test_without_the_metadata_store_a_new_id_is_refused_for_now(world: CoordinatorWorld) -> None:
    world.producer_ids = iter(())
    reply = world.settle(world.coordinator.init_producer("tx", 60_000, None))
    assert reply == ProducerReply(E.COORDINATOR_LOAD_IN_PROGRESS)


def call_all(coordinator: TransactionCoordinator) -> list[ErrorCode]:
    producer = Producer(0, 0)
    bodies = [
        coordinator.init_producer("tx", 1, None),
        coordinator.add_partitions("tx", producer, (), 0),
        coordinator.verify_partitions("tx", producer, ()),
        coordinator.end_transaction("tx", producer, is_commit=True, client_version=0),
        coordinator.end_transaction("tx", producer, is_commit=True, client_version=2),
    ]
    errors = [getattr(body, "error", None) for body in bodies]
    found = coordinator.describe("tx")
    assert isinstance(found, ErrorCode)
    return [*[error for error in errors if error is not None], found]


def test_another_broker_refuses(world: CoordinatorWorld) -> None:
    for index in range(4):
        world.coordinator.resign(index, 5)
    assert call_all(world.coordinator) == [E.NOT_COORDINATOR] * 6
    assert list(world.coordinator.states()) == []


def test_a_shard_that_is_loading_refuses_for_now(world: CoordinatorWorld) -> None:
    world.began()
    coordinator = world.coordinator
    coordinator.lead(coordinator.partition_of("tx"), 9)
    assert call_all(coordinator) == [E.COORDINATOR_LOAD_IN_PROGRESS] * 6


def test_ids_that_are_not_used_expire(world: CoordinatorWorld) -> None:
    world.end(world.began(), is_commit=False)
    world.end_turn()
    world.now_ms += 1_000
    world.coordinator.expire_ids(1_001)
    world.end_turn()
    assert [name for name, _ in world.coordinator.states()] == ["tx"]
    world.coordinator.expire_ids(1_000)
    world.end_turn()
    assert list(world.coordinator.states()) == []
    world.restart(epoch=1)
    assert world.coordinator.describe("tx") is E.TRANSACTIONAL_ID_NOT_FOUND


def test_the_topic_is_created_once() -> None:
    world = TransactionWorld()
    assert eager_tasks.run_eagerly(world.node.transactions.ensure_topic())
    assert TRANSACTION_STATE in world.node.topics
    assert world.node.transactions.leader_of("tx") == 0
