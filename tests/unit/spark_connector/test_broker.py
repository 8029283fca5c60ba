"""The driver's questions, on a real broker."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest
from tests.interop.kit import unique
from tests.unit.spark_connector.conftest import Write, create

from rota.client import KafkaError, TopicPartition, UnknownTopic
from rota.spark_connector import broker
from rota.spark_connector.broker import Brokers
from rota.spark_connector.options import Topics


@pytest.fixture
def asked(bootstrap: str) -> Iterator[Brokers]:
    brokers = Brokers({"bootstrap.servers": bootstrap})
    yield brokers
    brokers.close()


def test_partitions_by_name_by_pattern_and_as_told(asked: Brokers, bootstrap: str) -> None:
    prefix = unique("t")
    one, two = create(bootstrap, f"{prefix}.a"), create(bootstrap, f"{prefix}.b", 1)
    places = (TopicPartition(one, 0), TopicPartition(one, 1), TopicPartition(two, 0))
    assert asked.partitions(Topics(names=(two, one))) == places
    assert asked.partitions(Topics(pattern=f"{prefix}.[ab]")) == places
    assert asked.partitions(Topics(pattern=prefix)) == (), "the whole name has to match"
    assert asked.partitions(Topics(assigned=places[1:2])) == places[1:2]


def test_a_topic_that_is_not_there_is_named(asked: Brokers) -> None:
    with pytest.raises(UnknownTopic, match=r"nowhere.*Create it first"):
        asked.partitions(Topics(names=("nowhere",)))

    with pytest.raises(UnknownTopic, match=r"nowhere-3|nowhere.*3"):
        asked.partitions(Topics(assigned=(TopicPartition("nowhere", 3),)))


def test_what_is_there_can_be_asked_for_alone(asked: Brokers, topic: str) -> None:
    there, not_there = TopicPartition(topic, 1), (TopicPartition(topic, 7), TopicPartition("nowhere", 0))
    assert asked.ids([topic]) == {}
    assert asked.existing((there, *not_there)) == (there,)
    assert asked.present(Topics(names=("nowhere", topic))) == (TopicPartition(topic, 0), there)
    assert list(asked.ids([topic, "nowhere"])) == [topic]
    with pytest.raises(UnknownTopic, match="nowhere"):
        asked.require(Topics(names=("nowhere", topic)))
    asked.require(Topics(names=(topic,)))


def test_offsets_times_and_the_group(asked: Brokers, topic: str, write: Write) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    write(topic, 0, [(b"k", b"v")] * 5)
    assert asked.earliest((first, second)) == {first: 0, second: 0}
    assert asked.latest((first, second)) == {first: 5, second: 0}
    assert asked.at_times({first: 2500, second: 0}) == {first: 2, second: None}
    group = unique("group")
    assert asked.committed(group, (first, second)) == {first: None, second: None}
    asked.commit(group, {first: 3})
    assert asked.committed(group, (first, second)) == {first: 3, second: None}


def test_it_can_be_pickled_and_asked_again_after_a_close(asked: Brokers, topic: str) -> None:
    place = TopicPartition(topic, 0)
    assert asked.latest((place,)) == {place: 0}
    again = pickle.loads(pickle.dumps(asked))
    try:
        assert again.latest((place,)) == {place: 0}
    finally:
        again.close()
    asked.close()
    assert asked.latest((place,)) == {place: 0}


def test_a_commit_that_does_not_succeed_is_told(asked: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "COMMIT_MS", 300)
    with pytest.raises(KafkaError, match="nowhere"):
        asked.commit(unique("group"), {TopicPartition("nowhere", 0): 3})
