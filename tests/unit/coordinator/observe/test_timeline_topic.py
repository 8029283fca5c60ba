"""The timeline's topic in a broker: created with the first event, internal, read back after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.group import notes
from rota.coordinator.metadata.changes import Change, PartitionsChanged, TopicDeleted
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, GROUP_TIMELINE
from rota.coordinator.observe import timeline_topic
from rota.coordinator.observe.timeline import Timelines
from rota.coordinator.observe.timeline_log import TimelineLog
from rota.coordinator.runtime.contract import Note
from rota.coordinator.runtime.shard import Shard
from rota.protocol.group_timeline import EventType, GroupEvent

Config = Callable[..., BrokerConfig]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    def build(**more: str) -> BrokerConfig:
        own = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), "offsets.topic.num.partitions": "4"}
        return BrokerConfig({**own, **{name.replace("_", "."): value for name, value in more.items()}})

    return build


async def until(condition: Callable[[], object]) -> None:
    """Return when it holds: the broker writes to a disk, in threads."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def add(broker: Broker, group_id: str, time_ms: int) -> None:
    broker.groups.timelines.add(group_id, GroupEvent(time_ms=time_ms, type=EventType.EMPTIED))


def is_read(broker: Broker, group_id: str) -> bool:
    """Whether the partition of the group's timeline is led and read, so that its events go to the log."""
    timelines = broker.groups.timelines
    assert isinstance(timelines, TimelineLog)
    return isinstance(timelines.ready(group_id), Shard)


def times(broker: Broker, group_id: str) -> list[int]:
    return [event.time_ms for event in broker.groups.timelines.of(group_id)]


async def test_the_topic_is_created_with_the_first_event_and_read_back_after_a_restart(config: Config) -> None:
    async with Broker(config()) as broker:
        await broker.groups.ensure_topic()
        assert GROUP_TIMELINE not in broker.topics
        add(broker, "g", 1)
        await until(lambda: GROUP_TIMELINE in broker.topics)
        topic = broker.topics.get(GROUP_TIMELINE)
        assert topic is not None
        assert topic.is_internal
        assert (len(topic.partitions), topic.configs["cleanup.policy"]) == (1, "compact")
        await until(lambda: is_read(broker, "g"))  # before that events wait in memory (TL2), and a stop loses them
        add(broker, "g", 2)
    async with Broker(config()) as broker:
        await until(lambda: times(broker, "g") == [1, 2])


async def test_tl1_without_the_offsets_topic_nothing_is_created_and_events_wait(config: Config) -> None:
    async with Broker(config(), memory=True) as broker:
        add(broker, "g", 1)
        await broker.timeline_topic.stop()
        assert GROUP_TIMELINE not in broker.topics
        assert times(broker, "g") == [1]
        await broker.groups.ensure_topic()
        broker.timeline_topic.request()  # too early: RETRY_AFTER_MS is not over
        assert GROUP_TIMELINE not in broker.topics
        assert CONSUMER_OFFSETS in broker.topics


async def test_the_topic_can_be_switched_off(config: Config) -> None:
    async with Broker(config(rota_group_timeline_topic_enable="false"), memory=True) as broker:
        await broker.groups.ensure_topic()
        add(broker, "g", 1)
        assert isinstance(broker.groups.timelines, Timelines)
        assert times(broker, "g") == [1]
        assert GROUP_TIMELINE not in broker.topics


async def test_a_topic_that_is_deleted_is_created_again_with_the_next_event(config: Config) -> None:
    async with Broker(config(), memory=True) as broker:
        await broker.groups.ensure_topic()
        add(broker, "g", 1)
        await until(lambda: GROUP_TIMELINE in broker.topics)
        await broker.topics.delete(GROUP_TIMELINE)
        add(broker, "g", 2)
        await until(lambda: GROUP_TIMELINE in broker.topics)
        assert times(broker, "g")[-1:] == [2]


async def test_tl1_a_creation_that_never_ends_does_not_hold_up_a_stop(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline_topic, "STOP_WAIT_SECONDS", 0.01)
    async with Broker(config(), memory=True) as broker:
        await broker.groups.ensure_topic()
        never = asyncio.Event()
        monkeypatch.setattr(broker.topics, "create", lambda *args, **more: never.wait())
        add(broker, "g", 1)
        creation = broker.timeline_topic._creation
        assert creation is not None
        async with asyncio.timeout(5):
            await broker.timeline_topic.stop()
            await asyncio.wait((creation,))
    assert creation.cancelled()


async def test_tl1_an_unforeseen_failure_of_the_creation_is_not_repeated_by_each_event(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    async def fail(*args: object, **more: object) -> None:
        calls.append(args)
        raise OSError("no space")

    async with Broker(config(), memory=True) as broker:
        await broker.groups.ensure_topic()
        monkeypatch.setattr(broker.topics, "create", fail)
        for time_ms in range(3):
            add(broker, "g", time_ms)
            await broker.timeline_topic.stop()
        assert len(calls) == 1
        assert times(broker, "g") == [0, 1, 2]


async def test_tl9_in_a_cluster_a_topic_with_fewer_partitions_than_the_groups_topic_grows(config: Config) -> None:
    async with Broker(config()) as broker:
        await broker.groups.ensure_topic()
        add(broker, "g", 1)
        await until(lambda: GROUP_TIMELINE in broker.topics)
        broker.timeline_topic._is_cluster = True
        add(broker, "g", 2)
        broker.timeline_topic.request()
        await until(lambda: broker.topics.partition(GROUP_TIMELINE, 3) is not None)
        await until(lambda: times(broker, "g") == [1, 2])
        add(broker, "g", 3)
    async with Broker(config()) as broker:
        await until(lambda: times(broker, "g") == [1, 2, 3])


async def test_tl9_a_topic_that_has_all_partitions_or_is_of_one_broker_does_not_grow(config: Config) -> None:
    async with Broker(config(), memory=True) as broker:
        await broker.groups.ensure_topic()
        add(broker, "g", 1)
        await until(lambda: GROUP_TIMELINE in broker.topics)
        broker.timeline_topic.request()
        assert broker.timeline_topic._creation is None


async def test_a_topic_that_an_operator_gave_more_partitions_is_used_at_once(config: Config) -> None:
    async with Broker(config(), memory=True) as broker:
        await broker.groups.ensure_topic()
        add(broker, "g", 1)
        await until(lambda: GROUP_TIMELINE in broker.topics)
        await broker.topics.add_partitions(GROUP_TIMELINE, 3)
        await until(lambda: times(broker, "g") == [1])
        add(broker, "g", 2)
        assert times(broker, "g") == [1, 2]


@pytest.mark.parametrize("by", ["a stop", "a change of the topic"])
async def test_tl16_notes_of_this_turn_are_written_before_the_partition_is_given_up(config: Config, by: str) -> None:
    async with Broker(config()) as broker:
        await broker.groups.ensure_topic()
        add(broker, "g", 1)
        await until(lambda: GROUP_TIMELINE in broker.topics)
        topic = broker.topics.get(GROUP_TIMELINE)
        assert topic is not None
        await until(lambda: is_read(broker, "g"))
        broker.groups.notes.add("g", Note(notes.NOW_EMPTY, {"group": "g", "generation": 7}))
        if by == "a stop":
            broker._resign()
        else:
            broker._changed(TopicDeleted(topic))
    async with Broker(config()) as broker:
        await until(lambda: [event.generation for event in broker.groups.timelines.of("g")] == [-1, 7])


async def test_tl16_notes_of_the_turn_in_which_the_leader_epoch_changes_are_written_in_the_new_one(
    config: Config,
) -> None:
    def note(change: Change) -> None:
        if isinstance(change, PartitionsChanged):
            broker.groups.notes.add("g", Note(notes.NOW_EMPTY, {"group": "g", "generation": 7}))

    async with Broker(config()) as broker:
        await broker.groups.ensure_topic()
        add(broker, "g", 1)
        await until(lambda: GROUP_TIMELINE in broker.topics)
        await until(lambda: is_read(broker, "g"))
        broker.topics._listeners.insert(0, note)  # before the partitions hear of it
        await broker.topics.bump_leader_epoch(GROUP_TIMELINE, 0)
        await until(lambda: is_read(broker, "g"))
        await until(lambda: [event.generation for event in broker.groups.timelines.of("g")] == [-1, 7])
    async with Broker(config()) as broker:
        await until(lambda: [event.generation for event in broker.groups.timelines.of("g")] == [-1, 7])
