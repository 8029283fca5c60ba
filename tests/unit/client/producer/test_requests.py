"""Batches as a request, and its answer taken apart."""

from __future__ import annotations

from tests.unit.client.producer.kit import answer, batch

from rota.client.producer.batch import Batch
from rota.client.producer.requests import answers, offset_topics, request, version_max
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import LeaderIdAndEpoch, ProduceResponse, TopicProduceResponse

IDS = {"t": b"t" * 16, "u": b"u" * 16}


def batches() -> list[Batch]:
    made = [batch(b"1"), batch(b"2", partition=1), batch(b"3")]
    made[2].queue.partition = TopicPartition("u", 0)
    for item in made:
        item.seal()
    return made


def test_topics_go_by_their_ids_when_all_are_known() -> None:
    produce_request = request(batches(), -1, 30_000, 13, IDS.get)
    assert [topic.topic_id for topic in produce_request.topic_data] == [IDS["t"], IDS["u"]]
    assert [len(topic.partition_data) for topic in produce_request.topic_data] == [2, 1]
    assert version_max(produce_request) is None


def test_topics_go_by_name_when_one_id_is_missing_or_the_broker_is_older() -> None:
    for produce_request in (
        request(batches(), 1, 30_000, 13, {"t": IDS["t"]}.get),
        request(batches(), 1, 30_000, 12, IDS.get),
    ):
        assert [topic.name for topic in produce_request.topic_data] == ["t", "u"]
        assert version_max(produce_request) == 12


def test_answers_find_their_batches_in_any_order() -> None:
    made = batches()
    for version, key in ((13, "topic_id"), (12, "name")):
        produce_request = request(made, -1, 30_000, version, IDS.get)
        parts = {"t": (answer(offset=1),), "u": (answer(offset=3),)}
        responses = tuple(
            TopicProduceResponse(**{key: IDS[name] if key == "topic_id" else name}, partition_responses=parts[name])
            for name in ("u", "t")
        )
        found = [
            item and item.base_offset
            for _, item in answers(made, produce_request, ProduceResponse(responses=responses), IDS.get)
        ]
        assert found == [1, None, 3]


def test_a_leader_that_is_named_for_a_deleted_topic_is_left_out() -> None:
    """Law NC10. The topic is created again while the request is under way."""
    made = batches()[:1]
    leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=7)
    part = answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader)
    for version, key in ((13, IDS["t"]), (12, "t")):
        produce_request = request(made, -1, 30_000, version, IDS.get)
        topic = TopicProduceResponse(**{"topic_id" if version == 13 else "name": key}, partition_responses=(part,))
        response = ProduceResponse(responses=(topic,))
        assert [found for _, found in answers(made, produce_request, response, IDS.get)] == [part]
        ((_, found),) = answers(made, produce_request, response, {"t": IDS["u"]}.get)
        assert found is not None
        assert found.error_code == part.error_code
        assert found.current_leader == (None if version == 13 else leader), "a name says nothing of the id"


def test_offsets_are_sent_by_topic() -> None:
    offsets = {TopicPartition(topic, n): OffsetAndMetadata(n, "m", 5) for topic, n in (("t", 1), ("u", 0), ("t", 2))}
    topics = {topic.name: topic.partitions for topic in offset_topics(offsets)}
    assert {name: [part.partition_index for part in parts] for name, parts in topics.items()} == {"t": [1, 2], "u": [0]}
    part = topics["t"][0]
    assert (part.committed_offset, part.committed_metadata, part.committed_leader_epoch) == (1, "m", 5)
