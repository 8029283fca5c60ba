from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.changes import (
    BrokersChanged,
    Change,
    ConfigChanged,
    ControllerChanged,
    PartitionsAdded,
    PartitionsChanged,
    TopicCreated,
    TopicDeleted,
)
from rota.coordinator.metadata.image import Image, Work
from rota.coordinator.metadata.topic import PartitionState, Topic


def state(index: int, version: int = 0, leader: int = 1) -> PartitionState:
    return PartitionState(
        index=index, leader=leader, replicas=(1, 2), isr=(leader,), leader_epoch=version, version=version
    )


def topic_of(*states: PartitionState, topic_id: int = 1) -> Topic:
    return Topic(name="t", topic_id=bytes([topic_id] * 16), partitions=states)


def changes_of(image: Image) -> list[Change]:
    changes: list[Change] = []
    image.on_change(changes.append)
    return changes


def test_a_topic_changes_in_one_step_and_its_partitions_one_a_step() -> None:
    image, steps = Image(1), list[str]()

    def work(name: str) -> Work:
        def do(_: Topic, states: Sequence[PartitionState]) -> Iterator[None]:
            for each in states:
                steps.append(f"{name} {each.index}")
                yield

        return do

    def replaced(topic: Topic | None) -> list[list[str]]:
        """The works and changes of each step."""
        every = list[list[str]]()
        for _ in image.replace_topic("t", topic):
            every.append(steps.copy())
            steps.clear()
        return [*every, steps.copy()]

    image.on_change(lambda change: steps.append(f"{type(change).__name__} {len(change.topic.partitions)}"))  # type: ignore[union-attr]
    image.before_partitions_added(work("open"))
    image.after_partitions_added(work("follow"))
    image.after_partitions_removed(work("delete"))
    image.after_partitions_removed(work("forget"))
    assert replaced(topic_of(state(0), state(1))) == [
        ["open 0"],
        ["open 1"],
        ["TopicCreated 2", "follow 0"],
        ["follow 1"],
        [],
    ]
    steps.clear()
    assert replaced(topic_of(state(0), state(1), state(2))) == [["open 2"], ["PartitionsAdded 3", "follow 2"], []]
    steps.clear()
    assert replaced(None)[:4] == [["TopicDeleted 3", "forget 0"], ["forget 1"], ["forget 2"], ["delete 0"]]


def test_each_difference_is_one_change() -> None:
    image = Image(1)
    changes = changes_of(image)
    image.apply_topic(topic_of(state(0)))
    image.apply_topic(topic_of(state(0)))
    image.apply_topic(replace(topic_of(state(0, 1, 2), state(1)), configs={"a": "b"}))
    match changes:
        case [TopicCreated(), PartitionsAdded(before=1), PartitionsChanged(indexes=(0,)), ConfigChanged(topic)]:
            assert topic == image.get("t")
        case _:
            raise AssertionError(changes)


def test_a_topic_of_another_id_is_another_topic() -> None:
    image = Image(1)
    image.apply_topic(topic_of(state(0, 9)))
    changes = changes_of(image)
    fresh = topic_of(state(0), topic_id=2)
    image.apply_topic(fresh)
    assert [type(change) for change in changes] == [TopicDeleted, TopicCreated]
    assert image.by_id(bytes([1] * 16)) is None
    assert image.by_id(fresh.topic_id) == fresh
    image.remove_topic("t")
    image.remove_topic("t")
    assert len(changes) == 3
    assert image.colliding_names("t") == []


@given(st.permutations(range(5)))
def test_states_of_earlier_versions_change_nothing_in_any_order(versions: list[int]) -> None:
    image = Image(1)
    image.apply_topic(topic_of(state(0, versions[0], leader=versions[0])))
    for version in versions[1:]:
        image.apply_states(bytes([1] * 16), [state(0, version, leader=version), state(7, version)])
        image.apply_states(bytes(16), [state(0, 99)])
    assert image.partition("t", 0) == state(0, 4, leader=4)
    assert image.partition("t", 1) is None
    assert image.partition("u", 0) is None


def test_a_reassignment_does_not_take_back_a_newer_leader() -> None:
    image = Image(1)
    image.apply_topic(topic_of(state(0, 5, leader=2)))
    image.apply_topic(topic_of(replace(state(0, 4, leader=1), replicas=(1, 2, 3), adding=(3,))))
    found = image.partition("t", 0)
    assert found is not None
    assert (found.leader, found.version, found.replicas, found.adding) == (2, 5, (1, 2, 3), (3,))
    image.apply_states(bytes([1] * 16), [state(0, 6, leader=1)])
    found = image.partition("t", 0)
    assert found is not None
    assert (found.leader, found.replicas) == (1, (1, 2, 3))


def test_changes_of_brokers_and_controller_are_emitted() -> None:
    image = Image(1)
    changes = changes_of(image)
    first, again = BrokerRegistration(broker_id=1, epoch=3), BrokerRegistration(broker_id=1, epoch=5)
    for brokers in ({1: first}, {1: first}, {1: again}):
        image.apply_brokers(brokers)
    for controller in (1, 1, None):
        image.apply_controller(controller)
    assert changes == [
        BrokersChanged({1: first}),
        BrokersChanged({1: again}),
        ControllerChanged(1),
        ControllerChanged(None),
    ]


def test_absent_brokers_are_those_with_replicas_that_are_not_live_and_are_looked_up_once_after_each_change() -> None:
    """Law PL2. A request of a thousand topics asks for each of them."""
    looks = list[int]()

    class Watched(Image):
        def __iter__(self) -> Iterator[Topic]:
            looks.append(1)
            return super().__iter__()

    image, topic = Watched(1), topic_of(state(0))
    image.apply_brokers({1: BrokerRegistration(broker_id=1)})
    assert image.absent_brokers() == set()
    image.apply_topic(topic)
    assert [image.absent_brokers() for _ in range(3)] == [{2}] * 3
    assert len(looks) == 2
    image.apply_topic(replace(topic, partitions=(replace(state(0), replicas=(1, 2, 3), adding=(3,)),)))
    assert image.absent_brokers() == {2, 3}
    image.apply_brokers({2: BrokerRegistration(broker_id=2)})
    assert image.absent_brokers() == {1, 3}
    image.remove_topic("t")
    assert image.absent_brokers() == set()
