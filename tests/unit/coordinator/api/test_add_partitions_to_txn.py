from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.coordinator.api.transaction_world import TransactionWorld, transaction

from rota.coordinator.api.add_partitions_to_txn import add_partitions_to_txn
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic

E = ErrorCode


@pytest.mark.parametrize("version", range(4))
def test_each_version_says_that_a_producer_is_fenced(version: int) -> None:
    world = TransactionWorld()
    producer_id, epoch = world.began()
    code = E.INVALID_PRODUCER_EPOCH if version < 2 else E.PRODUCER_FENCED
    assert world.add((producer_id, epoch + 1), {"t": (0, 1)}, version=version) == {("t", 0): code, ("t", 1): code}


def test_one_missing_partition_adds_none() -> None:
    world = TransactionWorld()
    producer = world.began()
    assert world.add(producer, {"t": (1, 99), "missing": (0,)}) == {
        ("t", 1): E.OPERATION_NOT_ATTEMPTED,
        ("t", 99): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert world.add(producer, {"t": (0,)}) == {("t", 0): E.NONE}


def test_a_producer_cannot_add_an_internal_topic_but_a_broker_can() -> None:
    world = TransactionWorld()
    producer = world.began()
    assert world.add(producer, {CONSUMER_OFFSETS: (0,)}) == {(CONSUMER_OFFSETS, 0): E.TOPIC_AUTHORIZATION_FAILED}
    by_broker = transaction("tx", producer, {CONSUMER_OFFSETS: (0,)}, verify_only=False)
    assert world.batched(by_broker) == {"tx": {(CONSUMER_OFFSETS, 0): E.NONE}}


def test_many_transactions_are_changed_or_verified_in_one_request() -> None:
    world = TransactionWorld()
    one, two = world.began("one"), world.began("two")
    answers = world.batched(
        transaction("one", one, {"t": (1,)}, verify_only=False),
        transaction("two", two, {"t": (0, 1)}, verify_only=True),
        transaction("three", two, {"t": (0,)}, verify_only=True),
        transaction("", two, {"t": (0,)}, verify_only=False),
    )
    assert answers == {
        "one": {("t", 1): E.NONE},
        "two": {("t", 0): E.NONE, ("t", 1): E.TRANSACTION_ABORTABLE},
        "three": {("t", 0): E.INVALID_PRODUCER_ID_MAPPING},
        "": {("t", 0): E.INVALID_REQUEST},
    }


def test_a_verification_answers_each_partition_once() -> None:
    world = TransactionWorld()
    named = (("t", (0, 0)), ("missing", ()), ("t", (0,)))
    topics = tuple(AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in named)
    verification = replace(transaction("tx", world.began(), {}, verify_only=True), topics=topics)
    request = AddPartitionsToTxnRequest(transactions=(verification,))
    (result,) = world.send_request(add_partitions_to_txn, request, 5).results_by_transaction
    (topic,) = result.topic_results
    assert (topic.name, [each.partition_index for each in topic.results_by_partition]) == ("t", [0])


@pytest.mark.parametrize("version", [3, 5])
def test_topics_and_partitions_are_answered_as_they_are_named(version: int) -> None:
    world = TransactionWorld()
    named = (("t", (1, 1)), ("missing", ()), ("t", (0,)))
    topics = tuple(AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in named)
    producer_id, epoch = world.began()
    if version == 3:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
        results = world.send_request(add_partitions_to_txn, request, 3).results_by_topic_v3_and_below
    else:
        requested = replace(transaction("tx", (producer_id, epoch), {}, verify_only=False), topics=topics)
        request = AddPartitionsToTxnRequest(transactions=(requested,))
        results = world.send_request(add_partitions_to_txn, request, 5).results_by_transaction[0].topic_results
    assert [(each.name, tuple(p.partition_index for p in each.results_by_partition)) for each in results] == list(named)


def test_no_transactions_are_no_results() -> None:
    assert TransactionWorld().batched() == {}
