"""The driver's questions, on a real broker."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator

import pytest
from tests.interop.kit import unique
from tests.unit.spark_connector.conftest import Write, create

from rota.client import Admin, AdminConfig, KafkaError, TopicPartition, UnknownTopic
from rota.spark_connector import broker
from rota.spark_connector.broker import DriverClient
from rota.spark_connector.options import TopicSelection


@pytest.fixture
def client(bootstrap: str) -> Iterator[DriverClient]:
    client = DriverClient({"bootstrap.servers": bootstrap})
    yield client
    client.close()


def test_partitions_by_name_by_pattern_and_by_assignment(client: DriverClient, bootstrap: str) -> None:
    prefix = unique("t")
    one, two = create(bootstrap, f"{prefix}.a"), create(bootstrap, f"{prefix}.b", 1)
    places = (TopicPartition(one, 0), TopicPartition(one, 1), TopicPartition(two, 0))
    assert client.partitions(TopicSelection(names=(two, one))) == places
    assert client.partitions(TopicSelection(pattern=f"{prefix}.[ab]")) == places
    assert client.partitions(TopicSelection(pattern=prefix)) == (), "the whole name has to match"
    assert client.partitions(TopicSelection(assigned=places[1:2])) == places[1:2]


def test_an_unknown_topic_or_partition_is_named(client: DriverClient) -> None:
    with pytest.raises(UnknownTopic, match=r"nowhere.*Create it first"):
        client.partitions(TopicSelection(names=("nowhere",)))

    with pytest.raises(UnknownTopic, match=r"nowhere-3|nowhere.*3"):
        client.partitions(TopicSelection(assigned=(TopicPartition("nowhere", 3),)))


def test_existing_omits_unknown_topics_and_partitions(client: DriverClient, topic: str) -> None:
    there, not_there = TopicPartition(topic, 1), (TopicPartition(topic, 7), TopicPartition("nowhere", 0))
    assert client.topic_ids([topic]) == {}
    assert client.existing((there, *not_there)) == (there,)
    assert client.present_partitions(TopicSelection(names=("nowhere", topic))) == (TopicPartition(topic, 0), there)
    assert list(client.topic_ids([topic, "nowhere"])) == [topic]
    with pytest.raises(UnknownTopic, match="nowhere"):
        client.require(TopicSelection(names=("nowhere", topic)))
    client.require(TopicSelection(names=(topic,)))


def test_offsets_times_and_the_group(client: DriverClient, topic: str, write: Write) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    write(topic, 0, [(b"k", b"v")] * 5)
    assert client.earliest((first, second)) == {first: 0, second: 0}
    assert client.latest((first, second)) == {first: 5, second: 0}
    assert client.offsets_for_times({first: 2500, second: 0}) == {first: 2, second: None}
    group = unique("group")
    assert client.committed(group, (first, second)) == {first: None, second: None}
    client.commit(group, {first: 3})
    assert client.committed(group, (first, second)) == {first: 3, second: None}


def test_offsets_lack_a_partition_that_was_deleted_after_the_metadata_were_read(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "EXISTENCE_CHECK_MS", 300)
    client = DriverClient({"bootstrap.servers": bootstrap})
    deleted, kept = TopicPartition(create(bootstrap, unique("t"), 1), 0), TopicPartition(topic, 0)
    try:
        assert client.existing((deleted, kept)) == tuple(sorted((deleted, kept)))
        asyncio.run(_delete(bootstrap, deleted.topic))
        assert client.latest_at_least({deleted: 5}, (deleted, kept)) == {kept: 0}
        assert client.latest_at_least({deleted: 5}, (deleted,)) == {}
        assert client.earliest_of_existing((deleted, kept)) == {kept: 0}
    finally:
        client.close()


def test_sp19_a_broker_that_is_slower_than_the_check_for_deleted_partitions_is_waited_for(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "EXISTENCE_CHECK_MS", 1)
    client = DriverClient(
        {"bootstrap.servers": bootstrap, "default.api.timeout.ms": "5000", "request.timeout.ms": "4000"}
    )
    try:
        assert client.earliest_of_existing((TopicPartition(topic, 0),)) == {TopicPartition(topic, 0): 0}
    finally:
        client.close()


async def _delete(bootstrap: str, topic: str) -> None:
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.delete_topics([topic])


def test_the_driver_client_can_be_pickled_and_used_after_close(client: DriverClient, topic: str) -> None:
    place = TopicPartition(topic, 0)
    assert client.latest((place,)) == {place: 0}
    again = pickle.loads(pickle.dumps(client))
    try:
        assert again.latest((place,)) == {place: 0}
    finally:
        again.close()
    client.close()
    assert client.latest((place,)) == {place: 0}


def test_a_failed_commit_raises(client: DriverClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "COMMIT_TIMEOUT_MS", 300)
    with pytest.raises(KafkaError, match="nowhere"):
        client.commit(unique("group"), {TopicPartition("nowhere", 0): 3})
