import asyncio

import pytest
from tests.unit.client.network.scripted import CLOSE
from tests.unit.client.producer.test_transactions import config
from tests.unit.client.producer.transactional import TransactionalLeader

from rota.client.errors import (
    CommitOutcomeUnknown,
    DeliveryFailed,
    IllegalUse,
    ProducerFenced,
    TimedOut,
    TransactionAbortable,
)
from rota.client.producer.producer import Producer
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.end_txn import EndTxnRequest
from rota.protocol.messages.produce import ProduceRequest


async def transact(producer: Producer, *, waits: bool = False, error: Exception | None = None) -> None:
    """A transaction with one record, whose delivery is awaited if `waits`; its block raises `error`."""
    async with producer.transaction():
        delivery = await producer.send("t", b"a")
        if waits:
            await delivery
        if error is not None:
            raise error


async def test_the_end_of_the_block_commits() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer, producer.transaction():
        await producer.send("t", b"a")
    assert (broker.committed, broker.aborted) == ([[b"a"]], [])


async def test_an_exception_aborts_and_is_raised() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        with pytest.raises(ValueError, match="mine"):
            await transact(producer, waits=True, error=ValueError("mine"))
    assert (broker.committed, broker.aborted) == ([], [[b"a"]])


async def test_a_failed_record_is_raised_as_a_failure_of_the_transaction() -> None:
    """The caller has one type to handle, whether it awaits deliveries or not."""
    for waits in (True, False):
        async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
            broker.codes[ProduceRequest] = [ErrorCode.INVALID_RECORD]
            with pytest.raises(TransactionAbortable, match="INVALID_RECORD") as failed:
                await transact(producer, waits=waits)
            assert isinstance(failed.value.__cause__, DeliveryFailed)
            assert broker.committed == []


async def test_an_exception_of_ones_own_is_not_replaced_by_a_failure() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.codes[ProduceRequest] = [ErrorCode.INVALID_RECORD]

        async def block() -> None:
            async with producer.transaction():
                with pytest.raises(DeliveryFailed):
                    await producer.send_and_wait("t", b"a")
                raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            await block()


async def test_fencing_is_raised_from_the_exception_of_the_block() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.codes[EndTxnRequest] = [ErrorCode.PRODUCER_FENCED]
        with pytest.raises(ProducerFenced) as fenced:
            await transact(producer, waits=True, error=ValueError("mine"))
        assert isinstance(fenced.value.__cause__, ValueError)


async def test_a_cancelled_block_is_aborted() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        is_sent = asyncio.Event()

        async def block() -> None:
            async with producer.transaction():
                await producer.send_and_wait("t", b"a")
                is_sent.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(block())
        await is_sent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (broker.committed, broker.aborted) == ([], [[b"a"]])
        async with producer.transaction():
            await producer.send("t", b"b")
    assert broker.committed == [[b"b"]]


async def test_a_commit_whose_outcome_is_unknown_is_not_aborted() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.on(EndTxnRequest, lambda request: CLOSE)
        with pytest.raises(CommitOutcomeUnknown):
            async with producer.transaction(timeout_ms=50):
                await producer.send("t", b"a")
        assert all(request.committed for request in broker.requests if isinstance(request, EndTxnRequest))
        broker.on(EndTxnRequest, broker.end)
        await producer.commit_transaction()
    assert broker.committed == [[b"a"]]


async def test_records_that_cannot_be_delivered_in_time_abort_the_transaction() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.on(ProduceRequest, lambda request: CLOSE)
        with pytest.raises(TimedOut):
            async with producer.transaction(timeout_ms=500):
                await producer.send("t", b"a")
        broker.on(ProduceRequest, broker.produce)
        async with producer.transaction():
            await producer.send("t", b"b")
    assert broker.committed == [[b"b"]]


async def test_a_transaction_is_used_once() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        transaction = producer.transaction()
        async with transaction:
            pass
        with pytest.raises(IllegalUse, match="used once"):
            async with transaction:
                pass
