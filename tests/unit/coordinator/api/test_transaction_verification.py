"""The errors of a coordinator, as each version of Produce answers them (Apache Kafka 4.3.1)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World, answered, batch, produces

from rota.coordinator.api.produce import produce
from rota.coordinator.api.transaction_verification import produce_error
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.records.control import Marker

E = ErrorCode


@pytest.mark.parametrize(
    ("error", "version", "answered"),
    [
        (E.NONE, 12, E.NONE),
        (E.PRODUCER_FENCED, 12, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_EPOCH, 12, E.INVALID_PRODUCER_EPOCH),
        (E.TRANSACTION_ABORTABLE, 10, E.INVALID_TXN_STATE),
        (E.TRANSACTION_ABORTABLE, 11, E.TRANSACTION_ABORTABLE),
        (E.CONCURRENT_TRANSACTIONS, 11, E.NOT_ENOUGH_REPLICAS),
        (E.CONCURRENT_TRANSACTIONS, 12, E.CONCURRENT_TRANSACTIONS),
        (E.COORDINATOR_NOT_AVAILABLE, 12, E.NOT_ENOUGH_REPLICAS),
        (E.NOT_COORDINATOR, 9, E.NOT_ENOUGH_REPLICAS),
        (E.INVALID_PRODUCER_ID_MAPPING, 12, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_older_producers_get_a_code_that_they_know(error: E, version: int, answered: E) -> None:
    assert produce_error(error, version) is answered


def test_one_partition_is_refused_and_the_other_is_written() -> None:
    world = World()
    world.topic(partitions=2)
    reply: DelayedReply[dict[tuple[str, int], E]] = DelayedReply()
    reply.answer({("t", 1): E.TRANSACTION_ABORTABLE})
    world.node.verify_transaction = lambda *question, adds: reply
    records = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    response = world.serve(produce, produces([("t", 0, records), ("t", 1, records)], transactional_id="tx"), 10)
    (topic,) = response.responses
    codes = [(each.index, each.error_code) for each in topic.partition_responses]
    assert codes == [(0, E.NONE), (1, E.INVALID_TXN_STATE)]


@pytest.mark.parametrize(
    ("error", "version", "message"),
    [
        (E.TRANSACTION_ABORTABLE, 10, "Partition was not added to the transaction"),
        (
            E.NOT_COORDINATOR,
            12,
            "Unable to verify the partition has been added to the transaction. Underlying error: NOT_COORDINATOR",
        ),
        (E.PRODUCER_FENCED, 12, None),
    ],
)
def test_xl11_a_code_that_does_not_name_its_cause_has_it_as_a_text(error: E, version: int, message: str | None) -> None:
    world = World()
    world.topic()
    reply: DelayedReply[dict[tuple[str, int], E]] = DelayedReply()
    reply.answer({("t", 0): error})
    world.node.verify_transaction = lambda *question, adds: reply
    records = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    response = world.serve(produce, produces([("t", 0, records)], transactional_id="tx"), version)
    assert response.responses[0].partition_responses[0].error_message == message


def test_xl11_several_producers_in_a_request_are_refused_with_a_text() -> None:
    world = World()
    world.topic(partitions=2)
    batches = [
        ("t", number, batch(b"a", producer_id=number, producer_epoch=0, base_sequence=0, is_transactional=True))
        for number in range(2)
    ]
    (topic,) = world.serve(produce, produces(batches, transactional_id="tx"), 11).responses
    expected = (E.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID")
    assert [(each.error_code, each.error_message) for each in topic.partition_responses] == [expected] * 2


def test_a_marker_that_is_written_during_a_verification_makes_it_begin_again() -> None:
    """XL7. EndTxn is answered before its markers are written: the next transaction begins while they are on the way."""
    world = World()
    world.topic(partitions=1)
    questions: list[DelayedReply[dict[tuple[str, int], E]]] = []

    def verify(*question: Any, adds: bool) -> DelayedReply[dict[tuple[str, int], E]]:
        questions.append(DelayedReply())
        return questions[-1]

    world.node.verify_transaction = verify
    records = batch(b"a", producer_id=5, producer_epoch=1, base_sequence=0, is_transactional=True)
    reply = world.serve(produce, produces([("t", 0, records)], transactional_id="tx"), 12)
    partition = world.node.partitions.get("t", 0)
    assert partition is not None
    partition.append_marker(Marker(is_commit=True, coordinator_epoch=0), producer_id=5, producer_epoch=1, now_ms=0)
    questions[0].answer({})
    questions[1].answer({})
    (topic,) = answered(reply).responses
    assert [each.error_code for each in topic.partition_responses] == [E.NONE]
    assert len(questions) == 2


def test_a_partition_that_is_led_only_since_the_verification_began_is_tried_again() -> None:
    """XL7. The producer knows the new leader before that leader does; INVALID_TXN_STATE would abort its transaction."""
    world = World({"node.id": "0"})
    world.register(0, 1)
    world.topic("t", assignment=[(0, (0,))])
    world.topic("u", assignment=[(0, (1, 0))])
    world.partition("t").lead(1)
    question: DelayedReply[dict[tuple[str, int], E]] = DelayedReply()
    world.node.verify_transaction = lambda *_, adds: question
    records = batch(b"a", producer_id=5, producer_epoch=1, base_sequence=0, is_transactional=True)
    reply = world.serve(produce, produces([("t", 0, records), ("u", 0, records)], transactional_id="tx"), 12)
    world.partition("u").lead(1)
    question.answer({})
    codes = [E(topic.partition_responses[0].error_code) for topic in answered(reply).responses]
    assert codes == [E.NONE, E.NOT_LEADER_OR_FOLLOWER]
