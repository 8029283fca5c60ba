"""Leaders, leaders that were named, replicas near by."""

from __future__ import annotations

from tests.unit.client.consumer.kit import P0, TOPIC

from rota.client.consumer.sources import Source, Sources
from rota.client.network.metadata import BrokerInfo, Metadata, TopicInfo
from rota.client.types import PartitionInfo


def known(leader: int, epoch: int, brokers: tuple[int, ...] = (1, 2, 3), topic_id: bytes = bytes(16)) -> Metadata:
    info = PartitionInfo(TOPIC, 0, leader, epoch, (1, 2, 3), (1, 2, 3))
    return Metadata(
        brokers={item: BrokerInfo(item, "h", 9092) for item in brokers},
        topics={TOPIC: TopicInfo(TOPIC, topic_id, False, {0: info})},
    )


def test_the_leader_is_fetched_from() -> None:
    assert Sources(1000).of(P0, known(1, 4), 0) == Source(1, 4)


def test_without_a_known_leader_there_is_no_source() -> None:
    assert Sources(1000).of(P0, known(-1, 4), 0) is None
    assert Sources(1000).of(P0, known(9, 4), 0) is None
    assert Sources(1000).of(P0, Metadata(), 0) is None


def test_a_leader_that_was_named_counts_until_the_metadata_know_better() -> None:
    sources = Sources(1000)
    sources.set_leader(P0, 2, 5)
    assert sources.of(P0, known(1, 4), 0) == Source(2, 5)
    assert sources.of(P0, known(3, 6), 0) == Source(3, 6)
    assert sources.of(P0, known(1, 4), 0) == Source(1, 4), "what was named is forgotten"


def test_a_named_leader_without_an_address_is_ignored() -> None:
    sources = Sources(1000)
    sources.set_leader(P0, 9, 5)
    assert sources.of(P0, known(1, 4), 0) == Source(1, 4)
    sources.set_leader(P0, -1, -1)
    assert sources.of(P0, known(1, 4), 0) == Source(1, 4)


def test_a_leader_that_was_named_for_a_deleted_topic_is_forgotten() -> None:
    """Law NC10. The epochs of the new topic of this name begin at 0 again."""
    sources = Sources(1000)
    sources.set_leader(P0, 2, 5, b"a" * 16)
    assert sources.of(P0, known(1, 4, topic_id=b"a" * 16), 0) == Source(2, 5)
    assert sources.of(P0, known(1, 0, topic_id=b"b" * 16), 0) == Source(1, 0)
    assert sources.of(P0, known(1, 0, topic_id=b"a" * 16), 0) == Source(1, 0)


def test_a_preferred_replica_is_used_until_it_expires() -> None:
    sources = Sources(1000)
    sources.set_preferred_replica(P0, 3, 50)
    assert sources.of(P0, known(1, 4), 1049) == Source(3, 4, is_leader=False)
    assert sources.of(P0, known(1, 4), 1050) == Source(1, 4)
    assert not sources.forget_replica(P0)


def test_a_refusing_or_unknown_replica_is_forgotten() -> None:
    sources = Sources(1000)
    sources.set_preferred_replica(P0, 3, 0)
    assert sources.forget_replica(P0)
    assert sources.of(P0, known(1, 4), 0) == Source(1, 4)
    sources.set_preferred_replica(P0, 3, 0)
    assert sources.of(P0, known(1, 4, brokers=(1, 2)), 0) == Source(1, 4)
