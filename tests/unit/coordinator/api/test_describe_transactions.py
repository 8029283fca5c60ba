from __future__ import annotations

from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.api.describe_transactions import describe_transactions
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_transactions import DescribeTransactionsRequest, TopicData, TransactionState


def describe(world: TransactionWorld, *ids: str) -> tuple[TransactionState, ...]:
    states: tuple[TransactionState, ...] = world.ask(
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


def test_what_is_not_known_is_said() -> None:
    assert describe(TransactionWorld(), "unknown", "") == (
        TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id="unknown"),
        TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=""),
    )
