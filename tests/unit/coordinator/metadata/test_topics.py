"""The image of the topics: created, changed, deleted, one change on top of the other."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.changes import (
    Change,
    ConfigChanged,
    PartitionsAdded,
    PartitionsChanged,
    TopicCreated,
    TopicDeleted,
)
from rota.coordinator.metadata.commits import OPS_PER_COMMIT_MAX
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import ANY_VERSION, Op, Stat, Watch
from rota.coordinator.metadata.topic import INTERNAL
from rota.coordinator.metadata.topic_reader import READ_PER_SLICE
from rota.coordinator.metadata.topics import OPENED_PER_SLICE, PartitionState, Refusal, Topic, Topics
from rota.protocol.errors import ErrorCode


def topics_on(store: EmbeddedStore, brokers: tuple[int, ...] = (1,), first_id: int = 1, **how: str) -> Topics:
    ids = count(first_id)
    topics = Topics(store, broker_id=1, fresh_uuid=lambda: next(ids).to_bytes(16, "big"), **how)
    run_eagerly(topics.load())
    topics.brokers = {broker: BrokerRegistration(broker_id=broker) for broker in brokers}
    return topics


@pytest.fixture
def topics() -> Topics:
    return topics_on(EmbeddedStore())


def made(outcome: Topic | Refusal) -> Topic:
    assert isinstance(outcome, Topic), outcome
    return outcome


def code(outcome: object) -> ErrorCode:
    assert isinstance(outcome, Refusal)
    return outcome.code


def test_a_created_topic_is_in_the_image(topics: Topics) -> None:
    topic = made(run_eagerly(topics.create("t", 3, configs={"retention.ms": "1"})))
    assert topics.get("t") == topic == topics.by_id(topic.topic_id)
    assert topics.names() == ["t"]
    assert list(topics) == [topic]
    assert "t" in topics
    assert len(topics) == 1
    assert [(p.index, p.leader, p.replicas, p.isr, p.leader_epoch) for p in topic.partitions] == [
        (0, 1, (1,), (1,), 0),
        (1, 1, (1,), (1,), 0),
        (2, 1, (1,), (1,), 0),
    ]
    assert topic.replication_factor == 1
    assert not topic.is_internal


def test_a_restart_finds_everything(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    store = EmbeddedStore(path)
    before = topics_on(store, cluster_id="the-cluster")
    run_eagerly(before.create("kept", 2, configs={"cleanup.policy": "compact"}))
    run_eagerly(before.create("gone", 1))
    run_eagerly(before.add_partitions("kept", 5))
    run_eagerly(before.alter_config("kept", {"retention.ms": "7"}))
    run_eagerly(before.delete("gone"))
    run_eagerly(store.close())
    after = topics_on(EmbeddedStore(path), first_id=900, cluster_id="another")
    assert after.cluster_id == "the-cluster"
    assert after.names() == ["kept"]
    assert after.get("kept") == before.get("kept")
    assert len(made(after.get("kept") or Refusal(ErrorCode.NONE, "")).partitions) == 5


def test_a_topic_of_the_same_name_is_another_topic(topics: Topics) -> None:
    first = made(run_eagerly(topics.create("t")))
    run_eagerly(topics.delete("t"))
    second = made(run_eagerly(topics.create("t")))
    assert first.topic_id != second.topic_id
    assert topics.by_id(first.topic_id) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "x" * 250, "a\0"])
def test_a_wrong_name_is_refused(topics: Topics, name: str) -> None:
    assert code(run_eagerly(topics.create(name))) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a11_names_that_differ_only_in_case_collide_where_the_file_system_ignores_it(topics: Topics) -> None:
    run_eagerly(topics.create("Orders"))
    made(run_eagerly(topics.create("orders")))
    topics.ignores_case = True
    why = "the file system of log.dirs does not distinguish upper and lower case"
    refusal = run_eagerly(topics.create("ORDERS"))
    assert refusal in [
        Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic 'ORDERS' collides with existing topic: {name}: {why}")
        for name in ("Orders", "orders")
    ]
    made(run_eagerly(topics.create("other")))


def test_names_that_differ_in_dot_and_underscore_collide(topics: Topics) -> None:
    run_eagerly(topics.create("a.b_c"))
    refusal = run_eagerly(topics.create("a_b.c"))
    assert refusal == Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic 'a_b.c' collides with existing topic: a.b_c")
    run_eagerly(topics.delete("a.b_c"))
    made(run_eagerly(topics.create("a_b.c")))


def test_a_broker_that_has_gone_and_has_replicas_gets_those_of_new_partitions() -> None:
    """Law PL2."""
    topics = topics_on(EmbeddedStore(), (1, 2, 3))
    run_eagerly(topics.create("t", 1, 3))
    del topics.brokers[3]
    made(run_eagerly(topics.create("u", 1, 3)))
    run_eagerly(topics.add_partitions("t", 2))
    new = topics.get("u"), topics.get("t")
    assert [(set(topic.partitions[-1].replicas), 3 in topic.partitions[-1].isr) for topic in new if topic] == [
        ({1, 2, 3}, False),
        ({1, 2, 3}, False),
    ]
    assert made(run_eagerly(topics.create("w", assignment=[(0, [3, 2])]))).partitions[0].isr == (2,)
    assert code(run_eagerly(topics.create("v", 1, 4))) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_invalid_creations_are_refused(topics: Topics) -> None:
    run_eagerly(topics.create("t"))
    assert code(run_eagerly(topics.create("t"))) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert code(run_eagerly(topics.create("u", 0))) is ErrorCode.INVALID_PARTITIONS
    assert code(run_eagerly(topics.create("u", 1, 0))) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert code(run_eagerly(topics.create("u", 1, 2))) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert code(run_eagerly(topics.create("u", 10_001))) is ErrorCode.POLICY_VIOLATION
    assert code(run_eagerly(topics.create("u", assignment=[(0, [9])]))) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert topics.names() == ["t"]


def test_replicas_are_striped_over_the_brokers() -> None:
    topics = topics_on(EmbeddedStore(), brokers=(1, 2, 3))
    topic = made(run_eagerly(topics.create("t", 4, 2)))
    assert sorted({p.leader for p in topic.partitions}) == [1, 2, 3]
    assert all(len(set(p.replicas)) == 2 and p.leader == p.replicas[0] for p in topic.partitions)
    manual = made(run_eagerly(topics.create("m", assignment=[(1, [3, 1]), (0, [2, 3])])))
    assert [p.replicas for p in manual.partitions] == [(2, 3), (3, 1)]


def test_partitions_are_added_and_never_taken_away(topics: Topics) -> None:
    before = made(run_eagerly(topics.create("t", 2)))
    grown = made(run_eagerly(topics.add_partitions("t", 4)))
    assert grown.partitions[:2] == before.partitions
    assert grown.topic_id == before.topic_id
    assert [p.index for p in grown.partitions] == [0, 1, 2, 3]
    assert code(run_eagerly(topics.add_partitions("t", 4))) is ErrorCode.INVALID_PARTITIONS
    assert code(run_eagerly(topics.add_partitions("t", 3))) is ErrorCode.INVALID_PARTITIONS
    assert code(run_eagerly(topics.add_partitions("t", 5, [[1], [1]]))) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert code(run_eagerly(topics.add_partitions("t", 50_000))) is ErrorCode.POLICY_VIOLATION
    assert code(run_eagerly(topics.add_partitions("u", 4))) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topics.get("t") == grown


def test_listeners_are_called_after_the_image_has_changed(topics: Topics) -> None:
    changes: list[tuple[Change, Topic | None]] = []
    topics.on_change(lambda change: changes.append((change, topics.get("t"))))
    created = made(run_eagerly(topics.create("t")))
    grown = made(run_eagerly(topics.add_partitions("t", 2)))
    altered = made(run_eagerly(topics.alter_config("t", {"retention.ms": "5"})))
    run_eagerly(topics.delete("t"))
    assert changes == [
        (TopicCreated(created), created),
        (PartitionsAdded(grown, 1), grown),
        (ConfigChanged(altered), altered),
        (TopicDeleted(altered), None),
    ]


def test_a_refused_change_notifies_no_listener(topics: Topics) -> None:
    changes: list[Change] = []
    topics.on_change(changes.append)
    for change in (
        topics.create("a b"),
        topics.delete("t"),
        topics.add_partitions("t", 3),
        topics.alter_config("t", {}),
    ):
        assert isinstance(run_eagerly(change), Refusal)
    assert changes == []


def test_a_plan_changes_nothing(topics: Topics) -> None:
    made(topics.plan("t", 2))
    assert topics.names() == []
    run_eagerly(topics.create("t", 2))
    added = topics.plan_partitions("t", 3)
    assert not isinstance(added, Refusal)
    assert [state.index for state in added] == [2]
    assert len(made(topics.get("t") or Refusal(ErrorCode.NONE, "")).partitions) == 2


def test_after_a_crash_a_leader_has_a_new_epoch() -> None:
    store = EmbeddedStore()
    topics = topics_on(store, brokers=(1, 2))
    run_eagerly(topics.create("t", assignment=[(0, [1, 2]), (1, [2, 1]), (2, [1, 2])]))
    run_eagerly(topics.create("u"))
    changes: list[Change] = []
    topics.on_change(changes.append)
    run_eagerly(topics.bump_leader_epochs())
    run_eagerly(topics.bump_leader_epochs())
    changed = [(change.topic.name, change.indexes) for change in changes if isinstance(change, PartitionsChanged)]
    assert changed == [("t", (0, 2)), ("u", (0,))] * 2
    for image in (topics, topics_on(store)):
        topic = image.get("t")
        assert topic is not None
        assert [state.leader_epoch for state in topic.partitions] == [2, 0, 2]
        assert image.by_id(topic.topic_id) == topic


def test_one_partition_gets_a_new_epoch_and_others_keep_theirs() -> None:
    store = EmbeddedStore()
    topics = topics_on(store)
    run_eagerly(topics.create("t", 2))
    assert run_eagerly(topics.bump_leader_epoch("t", 1)) == 1
    assert (
        run_eagerly(topics.bump_leader_epoch("t", 5)) == run_eagerly(topics.bump_leader_epoch("no such topic", 0)) == 0
    )
    for image in (topics, topics_on(store)):
        topic = image.get("t")
        assert topic is not None
        assert [state.leader_epoch for state in topic.partitions] == [0, 1]


def test_the_store_has_it_under_the_paths_of_the_kafka_world(topics: Topics) -> None:
    run_eagerly(topics.create("t", 2, configs={"retention.ms": "5"}))
    assert run_eagerly(topics.store.children("/brokers/topics/t/partitions")) == ["0", "1"]
    data, _ = run_eagerly(topics.store.get("/brokers/topics/t/partitions/1/state"))
    assert data == b'{"controller_epoch":1,"isr":[1],"leader":1,"leader_epoch":0,"version":1}'
    assert znodes.read_config(run_eagerly(topics.store.get("/config/topics/t"))[0]) == {"retention.ms": "5"}
    assert znodes.uuid_text(znodes.uuid_bytes(topics.cluster_id)) == topics.cluster_id
    run_eagerly(topics.delete("t"))
    assert (
        run_eagerly(topics.store.children("/brokers/topics"))
        == run_eagerly(topics.store.children("/config/topics"))
        == []
    )


def test_another_broker_that_was_faster_is_not_overwritten() -> None:
    store = EmbeddedStore()
    first, second = topics_on(store), topics_on(store, first_id=500)
    made(run_eagerly(first.create("t")))
    assert code(run_eagerly(second.create("t"))) is ErrorCode.TOPIC_ALREADY_EXISTS
    run_eagerly(first.delete("t"))
    assert code(run_eagerly(first.delete("t"))) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def topics_on_disk(path: Path) -> Topics:
    """Changes wait for the journal here."""
    ids = count(1)
    topics = Topics(EmbeddedStore(path), broker_id=1, fresh_uuid=lambda: next(ids).to_bytes(16, "big"))
    await topics.load()
    return topics


async def test_changes_of_one_topic_at_one_time_build_on_each_other(tmp_path: Path) -> None:
    """Law T7."""
    topics = await topics_on_disk(tmp_path / "journal")
    await topics.create("t")
    names = [f"name-{number}" for number in range(20)]
    changes = [topics.update_config("t", lambda before, name=name: {**before, name: "1"}) for name in names]
    await asyncio.gather(*changes[:10], topics.add_partitions("t", 3), *changes[10:])
    topic = topics.get("t")
    assert topic is not None
    assert sorted(topic.configs) == sorted(names)
    assert len(topic.partitions) == 3
    await topics.store.close()
    again = await topics_on_disk(tmp_path / "journal")
    assert again.get("t") == topic
    await again.store.close()


async def test_of_concurrent_colliding_names_one_is_created(tmp_path: Path) -> None:
    """Law T4."""
    topics = await topics_on_disk(tmp_path / "journal")
    outcomes = await asyncio.gather(*(topics.create(name) for name in ("a.b", "a_b", "a.b", "other")))
    assert [outcome.code if isinstance(outcome, Refusal) else outcome.name for outcome in outcomes] == [
        "a.b",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "other",
    ]
    await topics.store.close()


async def test_a11_of_concurrent_names_that_differ_only_in_case_one_is_created(tmp_path: Path) -> None:
    topics = await topics_on_disk(tmp_path / "journal")
    topics.ignores_case = True
    outcomes = await asyncio.gather(*(topics.create(name) for name in ("Orders", "orders", "ORDERS")))
    assert [outcome.code if isinstance(outcome, Refusal) else outcome.name for outcome in outcomes] == [
        "Orders",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    await topics.store.close()


@pytest.mark.parametrize("ignores_case", [False, True])
def test_t13_no_topic_takes_the_place_of_an_internal_one(topics: Topics, *, ignores_case: bool) -> None:
    """Neither by the names of metrics nor by that of a folder: groups would never have a coordinator."""
    topics.ignores_case = ignores_case
    names = ("__consumer.offsets", "__transaction.state", "__rota.group.timeline", "__Consumer_Offsets")
    outcomes = [run_eagerly(topics.create(name)) for name in names]
    refused = [isinstance(outcome, Refusal) for outcome in outcomes]
    assert refused == [True, True, True, ignores_case]
    for name in INTERNAL:
        made(run_eagerly(topics.create(name)))


async def test_after_a_crash_the_new_epochs_of_all_topics_share_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = await topics_on_disk(tmp_path / "journal")
    for number in range(20):
        made(await topics.create(f"t{number}"))
    syncs, fdatasync = list[int](), os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: syncs.append(file) or fdatasync(file))
    await topics.bump_leader_epochs()
    assert len(syncs) <= 2
    assert {topic.partitions[0].leader_epoch for topic in topics} == {1}
    await topics.store.close()


async def test_a_topic_created_and_deleted_concurrently_does_not_exist(tmp_path: Path) -> None:
    topics = await topics_on_disk(tmp_path / "journal")
    changes: list[Change] = []
    topics.on_change(changes.append)
    await asyncio.gather(topics.create("t"), topics.delete("t"), topics.create("t"))
    assert [type(change) for change in changes] == [TopicCreated, TopicDeleted, TopicCreated]
    assert topics.names() == ["t"]
    await topics.store.close()


async def test_partitions_are_opened_in_slices_before_the_topic_is_visible(topics: Topics) -> None:
    placed: list[int] = []

    def place(topic: Topic, states: Sequence[PartitionState]) -> Iterator[None]:
        for state in states:
            assert topics.get("t") != topic
            placed.append(state.index)
            yield

    topics.before_partitions_added(place)
    creating = asyncio.ensure_future(topics.create("t", 3 * OPENED_PER_SLICE))
    await asyncio.sleep(0)
    assert len(placed) == OPENED_PER_SLICE
    await creating
    await topics.add_partitions("t", 3 * OPENED_PER_SLICE + 2)
    assert placed == list(range(3 * OPENED_PER_SLICE + 2))


class CountedStore(EmbeddedStore):
    """Counts what is read and committed in each turn of the loop, which `turn` numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0
        self.states_read: Counter[int] = Counter()
        self.commits: Counter[int] = Counter()

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        self.states_read[self.turn] += path.endswith("/state")
        return await super().get(path, watch)

    async def commit(self, ops: Sequence[Op]) -> None:
        self.commits[self.turn] += 1
        await super().commit(ops)

    async def count_turns(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


async def test_a_change_of_many_partitions_is_read_and_written_in_slices() -> None:
    store, changes = CountedStore(), list[Change]()
    topics = topics_on(store)
    topics.on_change(changes.append)
    counting = asyncio.create_task(store.count_turns())
    partitions = 2 * OPS_PER_COMMIT_MAX
    await asyncio.sleep(0)
    created = made(await asyncio.create_task(topics.create("t", partitions)))
    await asyncio.create_task(topics.delete("t"))
    counting.cancel()
    assert sum(store.states_read.values()) == partitions
    assert max(store.states_read.values()) == READ_PER_SLICE
    assert max(store.commits.values()) == 1
    assert changes == [TopicCreated(created), TopicDeleted(created)]
    assert len(created.partitions) == partitions


class TestAnImageThatLags:
    """Another broker has deleted the topic and created one of the same name, which this image does not have yet."""

    def setup_method(self) -> None:
        store = EmbeddedStore()
        self.other = topics_on(store)
        self.old = made(run_eagerly(self.other.create("t")))
        self.topics = topics_on(store, first_id=500)
        run_eagerly(self.other.delete("t"))
        self.new = made(run_eagerly(self.other.create("t")))
        assert self.topics.get("t") == self.old

    def test_partitions_are_added_to_the_new_topic_under_its_own_id(self) -> None:
        """Law T2: who saw the old id come back would delete the records of the new topic."""
        grown = made(run_eagerly(self.topics.add_partitions("t", 3)))
        run_eagerly(self.other.refresh("t"))
        assert self.other.get("t") == grown == self.topics.get("t")
        assert (grown.topic_id, len(grown.partitions)) == (self.new.topic_id, 3)

    def test_a_leader_of_the_old_topic_writes_no_isr_into_the_new_one(self) -> None:
        broker = self.topics.broker_id
        assert not run_eagerly(self.topics.change_isr("t", 0, 0, [broker]))
        run_eagerly(self.other.refresh("t"))
        state = self.other.partition("t", 0)
        assert (state, state.version if state else -1) == (self.new.partitions[0], 0)
        assert self.topics.get("t") == self.new

    def test_an_epoch_of_the_old_topic_is_not_bumped_in_the_new_one(self) -> None:
        run_eagerly(self.topics.bump_leader_epoch("t", 0))
        run_eagerly(self.other.refresh("t"))
        assert self.other.get("t") == self.new == self.topics.get("t")

    def test_a_topic_that_is_deleted_by_its_id_takes_no_later_one_of_its_name_with_it(self) -> None:
        outcome = run_eagerly(self.topics.delete("t", self.old.topic_id))
        run_eagerly(self.other.refresh("t"))
        assert self.other.get("t") == self.new == self.topics.get("t")
        assert code(outcome) is ErrorCode.UNKNOWN_TOPIC_ID

    def test_a_topic_that_is_deleted_by_its_name_is_the_one_that_has_it(self) -> None:
        made(run_eagerly(self.topics.delete("t")))
        run_eagerly(self.other.refresh("t"))
        assert self.other.get("t") is self.topics.get("t") is None


class ForeignChangeStore(EmbeddedStore):
    """Before the next commit or change of a node, another broker calls `foreign_change`."""

    foreign_change: Callable[[], object] | None = None

    def _let_others_change(self) -> None:
        if self.foreign_change is not None:
            change, self.foreign_change = self.foreign_change, None
            change()

    async def commit(self, ops: Sequence[Op]) -> None:
        self._let_others_change()
        await super().commit(ops)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        self._let_others_change()
        return await super().set(path, data, version)


class TestATopicThatIsCreatedAgainBeforeACommit:
    """T2. Another broker deletes the topic and creates it again after all reads, just before the change is written."""

    def setup_method(self) -> None:
        store = ForeignChangeStore()
        self.topics, self.other = topics_on(store, (1, 2)), topics_on(store, (1, 2), first_id=500)
        self.old = made(run_eagerly(self.topics.create("t", replication=2, configs={"segment.bytes": "9"})))
        run_eagerly(self.other.refresh("t"))
        store.foreign_change = self.create_again

    def create_again(self) -> None:
        made(run_eagerly(self.other.delete("t")))
        self.new = made(run_eagerly(self.other.create("t", replication=2)))

    def assert_is_new(self) -> None:
        run_eagerly(self.other.refresh("t"))
        run_eagerly(self.topics.refresh("t"))
        assert self.other.get("t") == self.new == self.topics.get("t")

    def test_the_isr_of_the_old_topic_is_not_written(self) -> None:
        state = self.old.partitions[0]
        assert not run_eagerly(self.topics.change_isr("t", 0, state.leader_epoch, (state.leader,)))
        self.assert_is_new()

    def test_a_leader_epoch_of_the_old_topic_is_not_written(self) -> None:
        run_eagerly(self.topics.bump_leader_epoch("t", 0))
        self.assert_is_new()

    def test_no_partition_is_added_for_the_old_topic(self) -> None:
        outcome = run_eagerly(self.topics.add_partitions("t", 3))
        assert code(outcome) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.assert_is_new()

    def test_no_partitions_are_added_in_several_commits_for_the_old_topic(self) -> None:
        outcome = run_eagerly(self.topics.add_partitions("t", OPS_PER_COMMIT_MAX))
        assert code(outcome) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.assert_is_new()

    def test_a_deletion_of_the_old_topic_does_not_delete_the_new_one(self) -> None:
        assert code(run_eagerly(self.topics.delete("t", self.old.topic_id))) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.assert_is_new()

    def test_configs_that_were_made_from_those_of_the_old_topic_are_made_again(self) -> None:
        made(run_eagerly(self.topics.update_config("t", lambda configs: {**configs, "retention.ms": "7"})))
        run_eagerly(self.other.refresh("t"))
        current = self.other.get("t")
        assert current is not None
        assert (current.topic_id, current.configs) == (self.new.topic_id, {"retention.ms": "7"})


def test_a_topic_without_a_node_for_its_id_gets_one() -> None:
    """An earlier version of Rota created it."""
    store = EmbeddedStore()
    topics = topics_on(store)
    topic = made(run_eagerly(topics.create("t")))
    run_eagerly(store.delete(znodes.topic_id_path("t", topic.topic_id)))
    topics = topics_on(store)
    assert run_eagerly(topics.bump_leader_epoch("t", 0)) == 1
    made(run_eagerly(topics.delete("t")))
    assert run_eagerly(store.exists(znodes.topic_path("t"))) is None


def test_a_leader_that_knows_older_replicas_does_not_put_one_back_into_the_isr() -> None:
    """RA4. The state of a completed reassignment arrived before the topic's node, in which the replica is gone."""
    store = EmbeddedStore()
    leader = topics_on(store, (1, 2))
    topic = made(run_eagerly(leader.create("t", replication=2)))
    state = topic.partitions[0]
    assert run_eagerly(leader.change_isr("t", 0, 0, (1,)))
    moved = replace(topic, partitions=(replace(state, replicas=(1,), isr=(1,)),))
    run_eagerly(store.set(znodes.topic_path("t"), znodes.topic_node(moved), topic.version))
    assert not run_eagerly(leader.change_isr("t", 0, 0, (1, 2)))
    assert leader.partition("t", 0) == replace(state, replicas=(1,), isr=(1,))
    assert run_eagerly(leader.change_isr("t", 0, 0, (1, 2)))
    assert leader.partition("t", 0) == replace(state, replicas=(1,), isr=(1,))


class LateAnswerStore(EmbeddedStore):
    """After the next commit, and before its answer, another broker calls `foreign_change`."""

    foreign_change: Callable[[], object] | None = None

    async def commit(self, ops: Sequence[Op]) -> list[Stat | None]:
        answer = await super().commit(ops)
        change, self.foreign_change = self.foreign_change, None
        if change is not None:
            change()
        return answer


def test_re2_an_isr_that_the_controller_changes_before_the_leader_has_its_answer_is_the_controllers() -> None:
    """The follower that the leader lets in dies at that moment: the leader would wait for it until it lags."""
    store = LateAnswerStore()
    leader, controller = topics_on(store, (1, 2)), topics_on(store, (1, 2))
    made(run_eagerly(leader.create("t", replication=2)))
    assert run_eagerly(leader.change_isr("t", 0, 0, (1,)))

    def shrink() -> None:
        run_eagerly(controller.refresh("t", (0,)))
        state = controller.partition("t", 0)
        assert state is not None
        path = znodes.state_path("t", 0)
        run_eagerly(store.set(path, znodes.state_node(replace(state, isr=(1,))), state.version))
        run_eagerly(leader.refresh("t", (0,)))

    store.foreign_change = shrink
    assert not run_eagerly(leader.change_isr("t", 0, 0, (1, 2)))
    state = leader.partition("t", 0)
    assert state is not None
    assert (state.isr, state.version) == ((1,), 3)


def test_a_leader_writes_the_elr_with_the_isr() -> None:
    """ELR1. A follower that has lost records is not in it."""
    leader = topics_on(EmbeddedStore(), (1, 2, 3))
    leader.min_insync_replicas = lambda _: 2
    made(run_eagerly(leader.create("t", assignment=[(0, (1, 2, 3))])))
    assert run_eagerly(leader.change_isr("t", 0, 0, (1,), lacking={3}))
    state = leader.partition("t", 0)
    assert state is not None
    assert (set(state.isr), set(state.elr)) == ({1}, {2})
    assert run_eagerly(leader.change_isr("t", 0, 0, (1, 2)))
    state = leader.partition("t", 0)
    assert state is not None
    assert (set(state.isr), set(state.elr)) == ({1, 2}, set())


class TestNodesBeyondTheStoresLimit:
    """S12. What ZooKeeper would refuse with its connection is refused before anything is written."""

    MANY = tuple(range(10_000, 10_020))  # a partition of a topic's node has 120 bytes then

    def test_a_topic_is_not_created(self) -> None:
        store = EmbeddedStore()
        topics = topics_on(store, self.MANY)
        before = run_eagerly(store.children("/config/topics")), store.last_change
        assert code(run_eagerly(topics.create("t", 10_000, 20))) is ErrorCode.INVALID_REQUEST
        assert code(run_eagerly(topics.create("t", configs={"retention.ms": "1" * (1 << 20)}))) is (
            ErrorCode.INVALID_REQUEST
        )
        assert (run_eagerly(store.children("/config/topics")), store.last_change) == before

    def test_a_topic_does_not_grow(self) -> None:
        store = EmbeddedStore()
        topics = topics_on(store, self.MANY)
        made(run_eagerly(topics.create("t", 5_000, 20)))
        assert code(run_eagerly(topics.add_partitions("t", 10_000))) is ErrorCode.INVALID_REQUEST
        assert len(run_eagerly(store.children("/brokers/topics/t/partitions"))) == 5_000
        assert len(made(run_eagerly(topics.add_partitions("t", 5_001))).partitions) == 5_001

    def test_configs_are_not_altered(self) -> None:
        topics = topics_on(EmbeddedStore())
        topic = made(run_eagerly(topics.create("t")))
        configs = {"leader.replication.throttled.replicas": "0:1," * (1 << 18)}
        assert code(run_eagerly(topics.alter_config("t", configs))) is ErrorCode.INVALID_REQUEST
        assert topics.get("t") == topic
