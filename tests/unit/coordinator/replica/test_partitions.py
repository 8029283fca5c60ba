from __future__ import annotations

import asyncio
import threading
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.topic import TopicConfig
from rota.coordinator.log.contract import Log, LogConfig, StorageFailed
from rota.coordinator.log.directory import LogDirectory
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.metadata.topics import OPENED_PER_SLICE, Topics
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partitions import REOPENING_MAX, Partitions
from rota.coordinator.storage import OpenedLog
from rota.protocol.errors import ErrorCode
from rota.protocol.records.record import Record, write_batch

NOW_MS = 1_700_000_000_000


def config_of(topic: Topic) -> LogConfig:
    return TopicConfig(topic.configs, BrokerConfig()).log_config()


def some_topics(store: EmbeddedStore) -> Topics:
    ids = count(1)
    topics = Topics(store, broker_id=1, fresh_uuid=lambda: next(ids).to_bytes(16, "big"))
    run_eagerly(topics.load())
    return topics


class World:
    """Topics and partitions in memory; `broken` logs refuse to open."""

    def __init__(self) -> None:
        self.topics = some_topics(EmbeddedStore())
        self.broken: set[tuple[str, int]] = set()
        self.partitions = Partitions(self.topics, self.open_log, config_of)

    def open_log(self, topic: Topic, index: int, config: LogConfig) -> Log:
        if (topic.name, index) in self.broken:
            raise StorageFailed("no such disk")
        return MemoryLog(config)

    def partition(self, name: str = "t", index: int = 0) -> Partition:
        partition = self.partitions.get(name, index)
        assert partition is not None
        return partition


@pytest.fixture
def world() -> World:
    return World()


def batch(value: bytes = b"v", key: bytes = b"k", at_ms: int = NOW_MS) -> bytes:
    return write_batch([Record(0, at_ms, key, value, ())])


def test_a_new_topic_has_its_logs_at_once(world: World) -> None:
    topic = run_eagerly(world.topics.create("t", 2, configs={"max.message.bytes": "500"}))
    assert isinstance(topic, Topic)
    for index in (0, 1):
        partition = world.partition("t", index)
        assert partition is world.partitions.get_by_id(topic.topic_id, index)
        assert partition.log.config.message_bytes_max == 500
        assert partition.error is ErrorCode.NONE
    assert world.partitions.get("t", 2) is None
    assert world.partitions.get("u", 0) is None
    assert len(world.partitions.all()) == 2


def test_added_partitions_are_opened_and_existing_ones_are_kept(world: World) -> None:
    run_eagerly(world.topics.create("t", 1))
    before = world.partition()
    run_eagerly(world.topics.add_partitions("t", 3))
    assert world.partition() is before
    assert [partition.index for partition in world.partitions.all()] == [0, 1, 2]


def test_only_replicas_of_this_broker_are_opened(world: World) -> None:
    world.topics.brokers = {broker: BrokerRegistration(broker_id=broker) for broker in (1, 2)}
    run_eagerly(world.topics.create("t", assignment=[(0, [2]), (1, [1])]))
    assert world.partitions.get("t", 0) is None
    assert world.partitions.get("t", 1) is not None


def test_a_follower_starts_at_the_high_watermark_of_the_checkpoint() -> None:
    def open_log(topic: Topic, index: int, config: LogConfig) -> Log:
        log = MemoryLog(config)
        for _ in range(3):
            log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
        log.high_watermark_checkpoint = 2
        return log

    topics = some_topics(EmbeddedStore())
    topics.brokers = {broker: BrokerRegistration(broker_id=broker) for broker in (1, 2)}
    partitions = Partitions(topics, open_log, config_of)
    run_eagerly(topics.create("t", assignment=[(0, [2, 1])]))
    partition = partitions.get("t", 0)
    assert partition is not None
    assert (partition.is_leader, partition.high_watermark, partition.log.log_end_offset) == (False, 2, 3)


def test_a_deleted_topic_answers_waiting_requests_and_is_removed(world: World) -> None:
    topic = run_eagerly(world.topics.create("t", 1))
    assert isinstance(topic, Topic)
    partition, high_watermarks = world.partition(), list[int]()
    partition.append(batch(), NOW_MS)
    partition.watch(lambda: high_watermarks.append(1))
    run_eagerly(world.topics.delete("t"))
    assert high_watermarks == [1]
    assert world.partitions.get("t", 0) is world.partitions.get_by_id(topic.topic_id, 0) is None
    with pytest.raises(StorageFailed):
        partition.append(batch(), NOW_MS)
    run_eagerly(world.topics.create("t", 1))
    assert world.partition().high_watermark == 0


class DeletedLog(MemoryLog):
    """Reports to `world` that it was deleted."""

    def __init__(self, config: LogConfig, world: SlicedWorld) -> None:
        super().__init__(config)
        self._world = world

    def destroy(self) -> None:
        self._world.deleted[self._world.turn] += 1
        super().destroy()


class SlicedWorld(World):
    """`opened` and `deleted` count the logs that were opened and deleted in each turn of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.turn, self.opened, self.deleted = 0, Counter[int](), Counter[int]()

    def open_log(self, topic: Topic, index: int, config: LogConfig) -> Log:
        self.opened[self.turn] += 1
        return DeletedLog(config, self)

    async def count_turns(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


MANY = 5 * OPENED_PER_SLICE


async def test_logs_of_a_change_are_opened_and_deleted_in_slices() -> None:
    world = SlicedWorld()
    counting = asyncio.create_task(world.count_turns())
    await asyncio.sleep(0)
    await asyncio.create_task(world.topics.create("t", MANY))
    await asyncio.create_task(world.topics.delete("t"))
    counting.cancel()
    for logs in (world.opened, world.deleted):
        assert sum(logs.values()) == MANY
        assert max(logs.values()) == OPENED_PER_SLICE
    assert world.partitions.all() == []


async def test_a_topic_created_while_one_of_its_name_is_being_deleted_keeps_its_logs() -> None:
    world = SlicedWorld()
    await world.topics.create("t", MANY)
    deletion = asyncio.create_task(world.topics.delete("t"))
    while not world.deleted:
        await asyncio.sleep(0)
    assert "t" not in world.topics
    assert len(world.partitions.all()) > 0
    topic = await world.topics.create("t", MANY)
    assert isinstance(topic, Topic)
    await deletion
    assert sum(world.deleted.values()) == MANY
    assert [partition.topic_id for partition in world.partitions.all()] == [topic.topic_id] * MANY


async def test_a_deletion_during_the_slices_of_a_creation_deletes_all_logs() -> None:
    world = SlicedWorld()
    creation = asyncio.create_task(world.topics.create("t", MANY))
    while not world.opened:
        await asyncio.sleep(0)
    assert "t" not in world.topics
    await world.topics.delete("t")
    assert isinstance(await creation, Topic)
    assert world.partitions.all() == []
    assert sum(world.deleted.values()) == MANY


def test_a_failed_log_of_a_topic_under_deletion_is_deleted_and_not_reopened() -> None:
    world = World()
    begun, removed = list[int](), list[int]()

    def begin_open(topic: Topic, index: int, config: LogConfig) -> OpenedLog:
        begun.append(index)
        return OpenedLog(MemoryLog(config))

    partitions = Partitions(
        world.topics,
        world.open_log,
        config_of,
        begin_open=begin_open,
        remove_log=lambda _, index: removed.append(index),
    )
    run_eagerly(world.topics.create("t", 2))
    partition = partitions.get("t", 1)
    assert partition is not None
    partition.fail("no such disk")
    steps = world.topics.replace_topic("t", None)
    next(steps)
    partitions.reopen_failed(1 << 40)
    for _ in steps:
        pass
    assert (begun, removed) == ([], [0, 1])


@pytest.mark.parametrize("recovered", [0, 2, 3])
async def test_a_recovered_log_that_is_shorter_gives_up_its_place_in_the_isr(recovered: int) -> None:
    """ELR2. A failure that lost nothing, as that of a full disk, keeps it."""
    world, left = World(), list[bool]()

    def begin_open(_topic: Topic, _index: int, config: LogConfig) -> OpenedLog:
        log = MemoryLog(config)
        for _ in range(recovered):
            log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
        return OpenedLog(log)

    async def hand_over(_name: str, _index: int, *, lost_records: bool = False, cannot_recover: bool = False) -> None:
        left.append(lost_records)

    partitions = Partitions(world.topics, world.open_log, config_of, begin_open=begin_open, hand_over=hand_over)
    await world.topics.create("t", 1)
    partition = partitions.get("t", 0)
    assert partition is not None
    for _ in range(3):
        partition.append(batch(), now_ms=NOW_MS)
    partition.fail("no such disk")
    partitions.reopen_failed(1 << 40)
    await partitions.stop_reopening()
    assert partition.offline is None
    assert (any(left[:-1]), left[-1]) == (False, recovered < 3)


@pytest.mark.parametrize("recovered", [2, 3])
async def test_elr2_a_log_that_could_not_be_opened_has_lost_what_its_checkpoint_has(recovered: int) -> None:
    """Where it ended is not known: at its high watermark, at least."""
    world, left = World(), list[bool]()
    world.broken.add(("t", 0))

    def begin_open(_topic: Topic, _index: int, config: LogConfig) -> OpenedLog:
        log = MemoryLog(config)
        for _ in range(recovered):
            log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
        opening = OpenedLog(log)
        opening.high_watermark_before = 3
        return opening

    async def hand_over(_name: str, _index: int, *, lost_records: bool = False, cannot_recover: bool = False) -> None:
        left.append(lost_records)

    partitions = Partitions(world.topics, world.open_log, config_of, begin_open=begin_open, hand_over=hand_over)
    await world.topics.create("t", 1)
    partitions.reopen_failed(1 << 40)
    await partitions.stop_reopening()
    assert (any(left[:-1]), left[-1]) == (False, recovered < 3)


class Recovering(OpenedLog):
    """Its recovery takes until the test ends."""

    release = threading.Event()

    def run(self) -> None:
        self.release.wait()


@pytest.mark.parametrize("role", ["many", "again"])
async def test_failed_partitions_do_not_wait_for_their_recovery_to_leave_the_isr(role: str) -> None:
    """R1. Nor for the growing wait before it, which a full disk leads to."""
    world, left, found = World(), list[int](), list[int]()

    async def hand_over(_name: str, index: int, *, lost_records: bool = False, cannot_recover: bool = False) -> None:
        left.append(index)

    opening: type[OpenedLog] = Recovering if role == "many" else OpenedLog
    Recovering.release.clear()
    partitions = Partitions(
        world.topics,
        world.open_log,
        config_of,
        begin_open=lambda _topic, _index, config: opening(MemoryLog(config)),
        hand_over=hand_over,
        on_storage=lambda partition: found.append(partition.index) if partition.offline else None,
    )
    await world.topics.create("t", 3 * REOPENING_MAX if role == "many" else 1)
    if role == "again":
        partitions.all()[0].fail("the disk is full")
        partitions.reopen_failed(0)
        await partitions.stop_reopening()
        left.clear()
        found.clear()
    for partition in partitions.all():
        partition.fail("the disk is full")
    partitions.reopen_failed(1)
    for _ in range(100):
        await asyncio.sleep(0)
    Recovering.release.set()
    await partitions.stop_reopening()
    assert {partition.index for partition in partitions.all()} == set(left) == set(found)
    assert [partition.offline for partition in partitions.all()].count(None) == (REOPENING_MAX if role == "many" else 0)


class Broken(OpenedLog):
    """It cannot be recovered."""

    def run(self) -> None:
        raise StorageFailed("the disk is broken")


async def test_ue1_a_log_that_cannot_be_recovered_gives_way_to_any_replica_after_each_attempt() -> None:
    world, gave_way = World(), list[bool]()

    async def hand_over(_name: str, _index: int, *, lost_records: bool = False, cannot_recover: bool = False) -> None:
        gave_way.append(cannot_recover)
        if cannot_recover:
            raise StoreFailed("no answer")

    partitions = Partitions(
        world.topics,
        world.open_log,
        config_of,
        begin_open=lambda _topic, _index, config: Broken(MemoryLog(config)),
        hand_over=hand_over,
    )
    await world.topics.create("t")
    partitions.all()[0].fail("the disk is broken")
    for now_ms in (0, 100_000):
        partitions.reopen_failed(now_ms)
        await partitions.stop_reopening()
    assert gave_way == 2 * [False, False, True]  # found, before the attempt, after it


def test_a_changed_config_is_in_force_at_once(world: World) -> None:
    run_eagerly(world.topics.create("t", 1))
    run_eagerly(world.topics.alter_config("t", {"retention.bytes": "77"}))
    assert world.partition().log.config.retention_bytes == 77


def test_a_disk_that_refuses_takes_one_partition_offline(world: World) -> None:
    world.broken.add(("t", 1))
    with capture_logs() as logs:
        run_eagerly(world.topics.create("t", 2))
    assert world.partition("t", 0).error is ErrorCode.NONE
    assert world.partition("t", 1).error is ErrorCode.KAFKA_STORAGE_ERROR
    assert [(line["topic"], line["partition"], line["reason"]) for line in logs] == [("t", 1, "no such disk")]
    world.partitions.flush()
    run_eagerly(world.topics.alter_config("t", {"retention.bytes": "77"}))
    run_eagerly(world.topics.delete("t"))
    assert world.partitions.all() == []


def test_a_restart_opens_the_logs_again(tmp_path: Path) -> None:
    for turn in range(3):
        directory, store = (
            LogDirectory(tmp_path, node_id=1, cluster_id="c"),
            EmbeddedStore(tmp_path / "metadata.journal"),
        )
        topics = some_topics(store)
        partitions = Partitions(
            topics,
            lambda topic, index, config, directory=directory: directory.open_log(  # type: ignore[misc]
                topic.name, index, config, topic_id=topic.topic_id
            ),
            config_of,
        )
        partitions.open()
        if turn == 0:
            run_eagerly(topics.create("t", 1))
        partition = partitions.get("t", 0)
        assert partition is not None
        assert partition.high_watermark == turn
        partition.append(batch(), NOW_MS)
        partitions.close()
        directory.close()
        run_eagerly(store.close())


def test_a_folder_that_cannot_be_renamed_stops_no_start(world: World) -> None:
    def refuse(_: object) -> dict[tuple[str, int], str]:
        raise StorageFailed("read-only")

    partitions = Partitions(world.topics, world.open_log, config_of, set_strays_aside=refuse)
    with capture_logs() as lines:
        partitions.open()
    assert [(line["event"], line["reason"]) for line in lines] == [("Stray logs could not be set aside", "read-only")]
