from __future__ import annotations

from typing import Any

from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.api.init_producer_id import init_producer_id
from rota.coordinator.api.list_transactions import list_transactions
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def listed(world: TransactionWorld, **filters: Any) -> ListTransactionsResponse:
    response: ListTransactionsResponse = world.ask(list_transactions, ListTransactionsRequest(**filters), 1)
    assert not response.error_code
    return response


def ids(response: ListTransactionsResponse) -> list[str]:
    return sorted(each.transactional_id for each in response.transaction_states)


def three() -> TransactionWorld:
    world = TransactionWorld()
    world.init("empty")
    world.end(world.began("complete"), id_="complete")
    world.began("ongoing")
    return world


def test_all_ids_are_listed() -> None:
    response = listed(three())
    assert ids(response) == ["complete", "empty", "ongoing"]
    assert {each.transactional_id: each.transaction_state for each in response.transaction_states} == {
        "empty": "Empty",
        "complete": "CompleteCommit",
        "ongoing": "Ongoing",
    }


def test_each_filter_selects() -> None:
    world = three()
    assert ids(listed(world, state_filters=("Ongoing", "Empty"))) == ["empty", "ongoing"]
    (producer,) = [each.producer_id for each in listed(world, state_filters=("Ongoing",)).transaction_states]
    assert ids(listed(world, producer_id_filters=(producer,))) == ["ongoing"]
    world.now_ms += 1_000
    assert ids(listed(world, duration_filter=100_000)) == ["empty"]  # never began: as in Kafka, longer than any time
    assert ids(listed(world, duration_filter=1_000)) == ["complete", "empty", "ongoing"]


def test_states_that_do_not_exist_are_named() -> None:
    response = listed(three(), state_filters=("Dead", "PrepareEpochFence", "Bogus"))
    assert (response.unknown_state_filters, response.transaction_states) == (("Bogus",), ())


def test_txc11_a_list_waits_for_the_records_that_it_shows() -> None:
    world = TransactionWorld()
    world.serve(init_producer_id, InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1), 5)
    response = world.serve(list_transactions, ListTransactionsRequest(), 1)
    assert not response.answered
    world.turn()
    assert ids(response.value) == ["tx"]


def test_txc11_a_list_that_lacks_the_ids_of_a_shard_is_an_error() -> None:
    world = three()
    world.serve(init_producer_id, InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1), 5)
    response = world.serve(list_transactions, ListTransactionsRequest(), 1)
    transactions = world.node.transactions
    transactions.shards[transactions.partition_of("tx")].abandon(ErrorCode.NOT_COORDINATOR)
    assert (response.value.error_code, response.value.transaction_states) == (ErrorCode.NOT_COORDINATOR, ())
