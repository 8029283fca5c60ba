"""The metadata hash, with values that Apache Kafka 4.3.1 wrote."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import TopicsInMemory

from rota.coordinator.consumer_group.topics import NO_HASH, TopicMetadata, metadata_hash

KAFKAS_ID = bytes.fromhex("702e2e6e4f2a4462b15de516af073d05")
KAFKAS_HASH = -2680426935289299515  # of a topic of three partitions, on a broker without a rack


def kafkas() -> TopicsInMemory:
    topics = TopicsInMemory()
    topics.set("vec", 3, KAFKAS_ID)
    return topics


def test_the_hash_is_kafkas() -> None:
    assert metadata_hash({"vec"}, kafkas()) == KAFKAS_HASH


def test_topics_that_do_not_exist_do_not_count() -> None:
    assert metadata_hash({"vec", "none"}, kafkas()) == KAFKAS_HASH
    assert metadata_hash({"none"}, kafkas()) == NO_HASH
    assert metadata_hash(set(), kafkas()) == NO_HASH


def test_id_count_and_racks_make_a_difference_and_their_order_does_not() -> None:
    found = set()
    for topic in (
        TopicMetadata("vec", KAFKAS_ID, ((), ())),
        TopicMetadata("vec", b"x" * 16, ((), (), ())),
        TopicMetadata("vec", KAFKAS_ID, (("r1", "r2"), (), ())),
        TopicMetadata("vec", KAFKAS_ID, (("r1", "r3"), (), ())),
    ):
        topics = kafkas()
        topics._topics["vec"] = topic
        found.add(metadata_hash({"vec"}, topics))
    assert len(found | {KAFKAS_HASH}) == 5
    one, other = kafkas(), kafkas()
    one._topics["vec"] = TopicMetadata("vec", KAFKAS_ID, (("r1", "r2"),))
    other._topics["vec"] = TopicMetadata("vec", KAFKAS_ID, (("r2", "r1"),))
    assert metadata_hash({"vec"}, one) == metadata_hash({"vec"}, other)


def test_several_topics_are_ordered_by_name() -> None:
    topics = kafkas()
    topics.set("abc", 1)
    assert metadata_hash(("vec", "abc"), topics) == metadata_hash(("abc", "vec"), topics) != KAFKAS_HASH
