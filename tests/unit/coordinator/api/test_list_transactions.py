from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.api.init_producer_id import init_producer_id
from rota.coordinator.api.list_transactions import PATTERN_CHARS_SHOWN_MAX, list_transactions
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def listed(world: TransactionWorld, **filters: Any) -> ListTransactionsResponse:
    response: ListTransactionsResponse = world.send_request(list_transactions, ListTransactionsRequest(**filters), 2)
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


class ComparedId(int):
    """A producer id that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        ComparedId.comparisons += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_lit3_many_producer_ids_cost_each_transactional_id_one_look_up() -> None:
    world = three()
    wanted = tuple(ComparedId(number) for number in range(10**6, 10**6 + 100))
    ComparedId.comparisons = 0
    assert ids(listed(world, producer_id_filters=wanted)) == []
    assert ComparedId.comparisons < 100


def test_states_that_do_not_exist_are_named() -> None:
    response = listed(three(), state_filters=("Dead", "PrepareEpochFence", "Bogus", "Bogus"))
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


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (None, ["complete", "empty", "ongoing"]),
        ("", ["complete", "empty", "ongoing"]),
        ("empty", ["empty"]),
        ("empt", []),
        ("e.*|ongoing", ["empty", "ongoing"]),
        (".*[on].*", ["complete", "ongoing"]),
    ],
)
def test_a_pattern_selects_by_the_whole_id(pattern: str | None, matches: list[str]) -> None:
    assert ids(listed(three(), transactional_id_pattern=pattern)) == matches


def test_a_pattern_knows_all_characters() -> None:
    world = TransactionWorld()
    for name in ("zähler/1", "zähler/2", "other"):
        world.init(name)
    assert ids(listed(world, transactional_id_pattern=r"z\p{Ll}hler/\d")) == ["zähler/1", "zähler/2"]
    assert ids(listed(world, transactional_id_pattern="(?i)ZÄHLER/[^2]")) == ["zähler/1"]


@pytest.mark.parametrize("pattern", ["(", "a**", "(?=a)", r"\1"])
def test_an_invalid_pattern_is_refused(pattern: str) -> None:
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    response = three().send_request(list_transactions, request, 2)
    assert (response.error_code, response.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, ())


def test_lit2_a_pattern_that_takes_too_much_work_is_refused() -> None:
    world = TransactionWorld()
    world.init("a" * 1_000)
    request = ListTransactionsRequest(transactional_id_pattern="((.?){100}){90}")
    assert world.send_request(list_transactions, request, 2).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize(("count", "error"), [(8, ErrorCode.NONE), (40, ErrorCode.INVALID_REGULAR_EXPRESSION)])
def test_lit2_a_pattern_that_takes_too_much_work_with_all_ids_is_refused(count: int, error: ErrorCode) -> None:
    world = TransactionWorld()
    for number in range(count):
        world.init(chr(0x4E00 + number) * 100)
    response = world.send_request(list_transactions, ListTransactionsRequest(transactional_id_pattern="(.?){200}"), 2)
    assert (response.error_code, len(response.transaction_states)) == (error, 0 if error else count)


@pytest.fixture
def long_list(monkeypatch: pytest.MonkeyPatch) -> TransactionWorld:
    """35 ids, ten to a slice."""
    monkeypatch.setattr(f"{list_transactions.__module__}.IDS_PER_SLICE", 10)
    world = TransactionWorld()
    for number in range(35):
        world.init(f"id-{number}")
    return world


def test_lit1_a_long_list_is_collected_in_slices(long_list: TransactionWorld) -> None:
    reply = long_list.serve(list_transactions, ListTransactionsRequest(transactional_id_pattern="id-[0-6]+"), 2)
    slices = 0
    while not reply.answered:
        waiting, long_list.tick_queue[:] = list(long_list.tick_queue), []
        for each in waiting:
            each()
        slices += 1
    assert slices == 3
    assert ids(reply.value) == sorted(f"id-{number}" for number in range(35) if set(str(number)) <= set("0123456"))


def test_lit1_a_shard_that_loads_meanwhile_makes_the_list_wrong(long_list: TransactionWorld) -> None:
    transactions = long_list.node.transactions
    reply = long_list.serve(list_transactions, ListTransactionsRequest(), 2)
    transactions.resign(0)
    transactions.lead(0, 1)
    while not transactions.load_slice():
        pass
    long_list.end_turn()
    assert reply.value.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_lit1_an_expensive_pattern_is_matched_in_slices() -> None:
    world = TransactionWorld()
    for number in range(5):
        world.init("a" * 200 + str(number))
    request = ListTransactionsRequest(transactional_id_pattern="(.?){60}(.?){60}(.?){60}(.?){60}")
    reply = world.serve(list_transactions, request, 2)
    assert not reply.answered
    world.end_turn()
    assert len(reply.value.transaction_states) == 5


def test_lit2_the_log_has_the_begin_of_a_pattern_that_is_too_expensive() -> None:
    world = TransactionWorld()
    world.init("a" * 10_000)
    pattern = "(.?){1000}" * 6 + "x" * 2_000
    with capture_logs() as logs:
        reply = world.send_request(list_transactions, ListTransactionsRequest(transactional_id_pattern=pattern), 2)
    assert reply.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert [each["pattern"] for each in logs] == [pattern[:PATTERN_CHARS_SHOWN_MAX]]
