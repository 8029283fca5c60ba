from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rota.client.network.metadata import BrokerInfo, Metadata, updated_from, with_brokers, with_leader
from rota.client.types import TopicPartition
from rota.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID, OTHER = b"\1" * 16, b"\2" * 16
P0 = TopicPartition("t", 0)


def answer(*topics: MetadataResponseTopic, brokers: tuple[int, ...] = (1, 2, 3), controller: int = 1) -> Any:
    listed = tuple(MetadataResponseBroker(node_id=item, host=f"b{item}", port=9092) for item in brokers)
    return MetadataResponse(brokers=listed, cluster_id="c", controller_id=controller, topics=topics)


def topic(*leaders: tuple[int, int], name: str | None = "t", topic_id: bytes = ID, error: int = 0) -> Any:
    """(leader, epoch) of each partition."""
    partitions = tuple(
        MetadataResponsePartition(partition_index=at, leader_id=leader, leader_epoch=epoch, replica_nodes=(1, 2))
        for at, (leader, epoch) in enumerate(leaders)
    )
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, partitions=partitions)


def known(*answers: MetadataResponse) -> Metadata:
    metadata = Metadata()
    for at, item in enumerate(answers):
        metadata = updated_from(metadata, item, at)
    return metadata


def test_a_response_sets_brokers_topics_and_leaders() -> None:
    metadata = known(answer(topic((1, 5), (2, 7))))
    assert (metadata.version, metadata.cluster_id, metadata.controller) == (1, "c", 1)
    assert metadata.brokers[2] == BrokerInfo(2, "b2", 9092)
    assert metadata.partitions("t") == (0, 1)
    assert metadata.leader(P0) == 1
    assert metadata.info(P0).replicas == (1, 2)  # type: ignore[union-attr]
    assert (metadata.topic_id("t"), metadata.topic_name(ID)) == (ID, "t")


def test_unknown_topics_are_none() -> None:
    metadata = known(answer())
    assert metadata.partitions("t") is metadata.leader(P0) is metadata.info(P0) is metadata.topic_id("t") is None
    assert metadata.topic_name(ID) is None


def test_a_topic_without_an_id_has_none() -> None:
    assert known(answer(topic((1, 1), topic_id=bytes(16)))).topic_id("t") is None
    assert known(answer(topic((1, 1), topic_id=bytes(16)))).topic_name(bytes(16)) is None


def test_a_leader_that_no_broker_is_known_for_leads_nothing() -> None:
    assert known(answer(topic((9, 1)))).leader(P0) is None
    assert known(answer(topic((-1, 1)))).leader(P0) is None


def test_the_version_grows_only_with_a_change() -> None:
    same = known(answer(topic((1, 5))), answer(topic((1, 5))))
    assert (same.version, same.at) == (1, 1)
    assert known(answer(topic((1, 5))), answer(topic((2, 6)))).version == 2
    assert known(answer(), answer(controller=2)).version == 2
    assert known(answer(), answer(brokers=(1, 2))).version == 2


def test_an_older_leader_is_not_believed() -> None:
    metadata = known(answer(topic((2, 6))), answer(topic((1, 5))))
    assert metadata.leader(P0) == 2
    assert metadata.version == 1


def test_the_same_epoch_may_have_news_of_its_leader() -> None:
    assert known(answer(topic((2, 6))), answer(topic((-1, 6)))).leader(P0) is None


def test_a_topic_of_another_id_is_another_topic() -> None:
    metadata = known(answer(topic((2, 6))), answer(topic((1, 0), topic_id=OTHER)))
    assert metadata.leader(P0) == 1
    assert metadata.topic_name(OTHER) == "t"


def test_a_response_without_topic_ids_does_not_lower_the_leader_epoch() -> None:
    metadata = known(answer(topic((2, 6))), answer(topic((1, 5), topic_id=bytes(16))))
    assert metadata.leader(P0) == 2


def test_a_response_without_leader_epochs_is_accepted() -> None:
    assert known(answer(topic((2, 6))), answer(topic((1, -1)))).leader(P0) == 1


def test_a_topic_with_an_error_is_known_by_its_error() -> None:
    metadata = known(answer(topic((1, 1))), answer(topic(error=3, topic_id=bytes(16))))
    assert metadata.topics["t"].error == 3
    assert metadata.partitions("t") is None
    assert metadata.topic_id("t") == ID, "what was read of it belongs to no later topic of that name"
    assert not metadata.has_topic("t", ID)
    assert known(answer(topic((1, 1)))).has_topic("t", ID)


def test_a_topic_without_a_name_is_matched_by_its_id() -> None:
    assert known(answer(topic((1, 1))), answer(topic((2, 2), name=None))).leader(P0) == 2
    assert known(answer(topic((2, 2), name=None))).topics == {}


def test_a_newer_leader_is_taken_over_at_once() -> None:
    metadata = known(answer(topic((1, 5))))
    assert with_leader(metadata, P0, 2, 6).leader(P0) == 2
    assert with_leader(metadata, P0, 2, 6).version == 2
    assert with_leader(metadata, P0, 2, 5) is metadata, "the epoch is not newer"
    assert with_leader(metadata, P0, 9, 6) is metadata, "nobody knows where it listens"
    assert with_leader(metadata, TopicPartition("t", 1), 2, 6) is metadata
    assert with_leader(metadata, TopicPartition("u", 0), 2, 6) is metadata
    assert with_leader(with_brokers(metadata, [BrokerInfo(9, "b9", 1)]), P0, 9, 6).leader(P0) == 9


def test_with_brokers_adds_and_replaces_broker_addresses() -> None:
    metadata = known(answer())
    assert with_brokers(metadata, [BrokerInfo(4, "b4", 1)]).brokers[4].host == "b4"
    assert with_brokers(metadata, [BrokerInfo(1, "b1", 9092)]) is metadata
    assert with_brokers(metadata, [BrokerInfo(-1, "", -1)]) is metadata
    assert with_brokers(metadata, [BrokerInfo(1, "elsewhere", 1)]).brokers[1].host == "elsewhere"


def test_brokers_introduce_themselves() -> None:
    assert str(BrokerInfo(3, "h", 1)) == "3 (h:1)"
    assert str(BrokerInfo(-1, "h", 1)) == "h:1", "a bootstrap address has no number yet"


@given(reply=st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 9)), min_size=1))
def test_epochs_only_grow(reply: list[tuple[int, int]]) -> None:
    metadata, highest = Metadata(), -1
    for leader, epoch in reply:
        metadata = updated_from(metadata, answer(topic((leader, epoch))), 0)
        info = metadata.info(P0)
        assert info is not None
        if epoch >= 0:
            assert info.leader_epoch >= min(epoch, highest)
        highest = info.leader_epoch
