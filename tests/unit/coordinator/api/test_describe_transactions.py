from __future__ import annotations

from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.api.describe_transactions import describe_transactions
from rota.coordinator.api.end_txn import end_txn
from rota.coordinator.api.init_producer_id import init_producer_id
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_transactions import DescribeTransactionsRequest, TopicData, TransactionState
from rota.protocol.messages.end_txn import EndTxnRequest
from rota.protocol.messages.init_producer_id import InitProducerIdRequest


def describe(world: TransactionWorld, *ids: str) -> tuple[TransactionState, ...]:
    states: tuple[TransactionState, ...] = world.send_request(
        describe_transactions, DescribeTransactionsRequest(transactional_ids=ids), 0
    ).transaction_states
    return states


def test_a_transaction_is_described_with_its_partitions() -> None:
    world = TransactionWorld()
    producer_id, epoch = world.began()
    world.add((producer_id, epoch), {"t": (2,)})
    (state,) = describe(world, "tx")
    assert state == TransactionState(
        transactional_id="tx",
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=state.transaction_start_time_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=(TopicData(topic="t", partitions=(0, 2)),),
    )
    assert world.now_ms - 1000 < state.transaction_start_time_ms <= world.now_ms


def test_a_complete_transaction_has_no_partitions() -> None:
    world = TransactionWorld()
    world.end(world.began())
    (state,) = describe(world, "tx")
    assert (state.transaction_state, state.topics) == ("CompleteCommit", ())


def test_txc16_a_decided_transaction_has_the_partitions_without_a_marker() -> None:
    world = TransactionWorld()
    producer = world.began()
    world.add(producer, {"t": (1, 2)})
    world.partition(index=1).offline = "its disk is gone"
    world.end(producer)
    (state,) = describe(world, "tx")
    assert (state.transaction_state, state.topics) == ("PrepareCommit", (TopicData(topic="t", partitions=(1,)),))


def test_what_is_not_known_is_said() -> None:
    assert describe(TransactionWorld(), "unknown", "") == (
        TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id="unknown"),
        TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=""),
    )


def test_txc11_a_description_waits_for_the_records_that_it_shows() -> None:
    world = TransactionWorld()
    producer = world.began()
    end = EndTxnRequest(transactional_id="tx", producer_id=producer[0], producer_epoch=producer[1], committed=False)
    world.serve(end_txn, end, 5)
    request = DescribeTransactionsRequest(transactional_ids=("", "tx"))
    described = world.serve(describe_transactions, request, 0)
    assert not described.answered
    world.turn()
    assert [state.transaction_state for state in described.value.transaction_states] == ["", "PrepareAbort"]


def test_txc11_a_description_of_what_is_not_written_is_refused() -> None:
    world = TransactionWorld()
    world.init()
    world.serve(init_producer_id, InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1), 5)
    described = world.serve(describe_transactions, DescribeTransactionsRequest(transactional_ids=("tx",)), 0)
    transactions = world.node.transactions
    transactions.shards[transactions.partition_of("tx")].abandon(ErrorCode.NOT_COORDINATOR)
    [state] = described.value.transaction_states
    assert (state.error_code, state.transaction_timeout_ms) == (ErrorCode.NOT_COORDINATOR, 0)
