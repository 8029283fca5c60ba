import asyncio
from typing import Any

import pytest
from tests.unit.client.network.scripted import CLOSE, Scripted, eventually
from tests.unit.client.producer.leader import settings
from tests.unit.client.producer.transactional import PRODUCER_ID, TransactionalLeader, refused

from rota.client.config import ProducerConfig
from rota.client.errors import (
    CommitOutcomeUnknown,
    ConfigError,
    DeliveryFailed,
    IllegalUse,
    ProducerFenced,
    TransactionAbortable,
    TransactionAborted,
    TransactionFailed,
)
from rota.client.producer.producer import BATCHES_PER_TURN_MAX, Producer
from rota.client.types import GroupMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from rota.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from rota.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.messages.metadata import MetadataRequest
from rota.protocol.messages.produce import ProduceRequest
from rota.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

P0 = TopicPartition("t", 0)
MEMBER = GroupMetadata("g", 3, "m-1", "i-1")


def config(broker: TransactionalLeader, **more: Any) -> ProducerConfig:
    return settings(broker, **{"transactional_id": "id", **more})


def last(broker: TransactionalLeader, kind: type) -> Any:
    return [request for request in broker.requests if type(request) is kind][-1]


def version_of(broker: TransactionalLeader, kind: type) -> int:
    """The version of the last request of that kind."""
    return [
        header.api_version
        for header, request in zip(broker.headers, broker.requests, strict=True)
        if type(request) is kind
    ][-1]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_commit_ends_what_was_sent(version: int) -> None:
    async with TransactionalLeader(version=version) as broker, Producer(config(broker)) as producer:
        for values in ((b"a", b"b"), (b"c",)):
            await producer.begin_transaction()
            for value in values:
                await producer.send("t", value, partition=0)
            await producer.commit_transaction()
    assert broker.committed == [[b"a", b"b"], [b"c"]]
    assert all(is_transactional for *_, is_transactional in broker.produced)
    found = last(broker, FindCoordinatorRequest)
    assert (found.key_type, found.coordinator_keys) == (1, ("id",))
    assert last(broker, ProduceRequest).transactional_id == "id"


async def test_version_1_adds_partitions_and_keeps_epoch_and_sequences() -> None:
    async with TransactionalLeader(version=1) as broker, Producer(config(broker)) as producer:
        for value in (b"a", b"b"):
            async with producer.transaction():
                await producer.send("t", value, partition=0)
    assert [(epoch, sequence) for _, epoch, sequence, _ in broker.produced] == [(0, 0), (0, 1)]
    assert broker.counted()[AddPartitionsToTxnRequest] == 2
    assert version_of(broker, AddPartitionsToTxnRequest) == 3
    assert version_of(broker, ProduceRequest) == 11
    assert version_of(broker, EndTxnRequest) == 4


async def test_a_cancelled_request_for_partitions_is_not_sent_again() -> None:
    """The loop that ends cancels all tasks: one that begins another in its place would go on for ever."""
    async with TransactionalLeader(version=1) as broker, Producer(config(broker)) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a", partition=0)
        transactions = producer._transactions
        assert transactions is not None
        transactions.add_partitions()
        adding = transactions._adding
        assert adding is not None
        adding.cancel()
        await asyncio.wait({adding})
        await asyncio.sleep(0)
        assert transactions._adding is None
        transactions.add_partitions()  # the next batch asks again
        async with asyncio.timeout(10):
            await producer.commit_transaction()


async def test_version_1_adds_a_partition_before_its_first_batch() -> None:
    """The coordinator is another broker, so that Produce could overtake AddPartitionsToTxn."""
    async with TransactionalLeader(version=1) as broker, Scripted(1) as coordinator:
        broker.coordinate_at(coordinator)
        add, answers = broker._answers[AddPartitionsToTxnRequest], []

        async def slow(request: AddPartitionsToTxnRequest) -> Any:
            await turns()
            answers.append("AddPartitionsToTxn")
            return add(request)

        def produce(request: ProduceRequest) -> Any:
            answers.append("Produce")
            return broker.produce(request)

        coordinator.on(AddPartitionsToTxnRequest, slow)
        broker.on(ProduceRequest, produce)
        async with Producer(config(broker)) as producer, producer.transaction():
            await asyncio.gather(*(producer.send("t", b"v", partition=at) for at in (0, 1)))
        assert answers[0] == "AddPartitionsToTxn"
        assert broker.committed == [[b"v", b"v"]]


async def turns() -> None:
    """Let the loop turn, so that a request that does not wait would be sent."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_version_2_takes_the_epoch_of_each_end() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        for value in (b"a", b"b"):
            async with producer.transaction():
                await producer.send("t", value, partition=0)
    assert [(epoch, sequence) for _, epoch, sequence, _ in broker.produced] == [(0, 0), (1, 0)]
    assert not broker.counted()[AddPartitionsToTxnRequest]
    assert version_of(broker, EndTxnRequest) == 5


async def test_a_transaction_without_records_needs_no_request() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        async with producer.transaction():
            pass
        await producer.begin_transaction()
        await producer.abort_transaction()
    assert not broker.counted()[EndTxnRequest]


async def test_an_abort_drops_records_that_were_not_sent() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker, linger_ms=60_000)) as producer:
        await producer.begin_transaction()
        delivery = await producer.send("t", b"lingers")
        await producer.abort_transaction()
        with pytest.raises(DeliveryFailed) as failed:
            await delivery
        assert isinstance(failed.value.cause, TransactionAborted)
        assert not failed.value.maybe_written
        async with producer.transaction():
            await producer.send("t", b"next")
    assert [values for values, *_ in broker.produced] == [[b"next"]]
    assert broker.committed == [[b"next"]]


async def test_an_abort_waits_for_the_responses_of_its_records() -> None:
    """EndTxn must not overtake a Produce request: the records would be in no transaction."""
    async with TransactionalLeader() as broker, Scripted(1) as coordinator:
        broker.coordinate_at(coordinator)
        arrived, answers = asyncio.Event(), []

        async def slow(request: ProduceRequest) -> Any:
            arrived.set()
            await turns()
            answers.append("Produce")
            return broker.produce(request)

        def end(request: EndTxnRequest) -> Any:
            answers.append("EndTxn")
            return broker.end(request)

        broker.on(ProduceRequest, slow)
        coordinator.on(EndTxnRequest, end)
        async with Producer(config(broker)) as producer:
            await producer.begin_transaction()
            delivery = await producer.send("t", b"a")
            await arrived.wait()
            await producer.abort_transaction()
            assert answers == ["Produce", "EndTxn"]
            assert (await delivery).offset == 0
    assert broker.aborted == [[b"a"]]


async def test_an_abort_does_not_send_records_again() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.on(ProduceRequest, lambda request: refused(request, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        await producer.begin_transaction()
        delivery = await producer.send("t", b"a")
        await eventually(lambda: broker.counted()[ProduceRequest])
        async with asyncio.timeout(10):
            await producer.abort_transaction()
        with pytest.raises(DeliveryFailed, match="was aborted"):
            await delivery


async def test_a_record_that_waits_for_its_topic_does_not_enter_the_next_transaction() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.error = ErrorCode.LEADER_NOT_AVAILABLE
        await producer.begin_transaction()
        sending = asyncio.create_task(producer.send("late", b"a"))
        await eventually(lambda: broker.counted()[MetadataRequest] > 2)
        await producer.abort_transaction()
        await producer.begin_transaction()
        broker.error = 0
        with pytest.raises(IllegalUse, match="ended while"):
            await sending
        await producer.commit_transaction()
    assert not broker.produced


async def test_a_refused_record_fails_the_transaction() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.codes[ProduceRequest] = [ErrorCode.INVALID_TXN_STATE]
        await producer.begin_transaction()
        await producer.send("t", b"a", partition=0)
        with pytest.raises(TransactionAbortable, match="INVALID_TXN_STATE"):
            await producer.commit_transaction()
        with pytest.raises(TransactionAbortable):
            await producer.send("t", b"b", partition=0)
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"a", partition=0)
    assert (broker.aborted, broker.committed) == ([[]], [[b"a"]])


async def test_a_sequence_error_fails_the_transaction_instead_of_changing_the_epoch() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.codes[ProduceRequest] = [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        with pytest.raises(TransactionAbortable):
            async with producer.transaction():
                await producer.send("t", b"a", partition=0)
        async with producer.transaction():
            await producer.send("t", b"b", partition=0)
    assert [(values, epoch, sequence) for values, epoch, sequence, _ in broker.produced] == [
        ([b"a"], 0, 0),
        ([b"b"], 1, 0),
    ]


async def test_version_1_gets_a_new_epoch_after_a_failed_record() -> None:
    async with TransactionalLeader(version=1) as broker, Producer(config(broker)) as producer:
        broker.codes[ProduceRequest] = [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        with pytest.raises(TransactionAbortable):
            async with producer.transaction():
                await producer.send("t", b"a", partition=0)
        async with producer.transaction():
            await producer.send("t", b"b", partition=0)
    assert [(epoch, sequence) for _, epoch, sequence, _ in broker.produced] == [(0, 0), (1, 0)]
    again = last(broker, InitProducerIdRequest)
    assert (again.producer_id, again.producer_epoch) == (PRODUCER_ID, 0)


async def test_a_fenced_producer_can_only_be_closed() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.codes[ProduceRequest] = [ErrorCode.INVALID_PRODUCER_EPOCH]
        broker.codes[EndTxnRequest] = [ErrorCode.PRODUCER_FENCED]
        with pytest.raises(ProducerFenced):
            async with producer.transaction():
                await producer.send("t", b"a", partition=0)
        for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(ProducerFenced):
                await call()
        with pytest.raises(ProducerFenced):
            await producer.send("t", b"a", partition=0)


async def test_a_commit_that_the_coordinator_has_aborted_can_be_repeated_in_a_new_transaction() -> None:
    """INVALID_TXN_STATE: the transaction timed out, and was aborted."""
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.codes[EndTxnRequest] = [ErrorCode.INVALID_TXN_STATE]
        await producer.begin_transaction()
        await producer.send("t", b"a", partition=0)
        with pytest.raises(TransactionAbortable, match="INVALID_TXN_STATE"):
            await producer.commit_transaction()
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"b", partition=0)
    assert broker.committed == [[b"b"]]


@pytest.mark.parametrize("code", [ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE])
async def test_an_abort_that_is_refused_is_fatal(code: ErrorCode) -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.codes[EndTxnRequest] = [code]
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"a", partition=0)
        with pytest.raises(TransactionFailed):
            await producer.abort_transaction()
        with pytest.raises(TransactionFailed):
            await producer.begin_transaction()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING])
async def test_an_abort_of_a_forgotten_producer_gets_a_new_identity(code: ErrorCode, version: int) -> None:
    async with TransactionalLeader(version=version) as broker, Producer(config(broker)) as producer:
        broker.codes[EndTxnRequest] = [code]
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"a", partition=0)
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"b", partition=0)
        assert broker.counted()[InitProducerIdRequest] == 2
    assert [epoch for _, epoch, _, _ in broker.produced][-1] == 1


@pytest.mark.parametrize("version", [1, 2])
async def test_retriable_codes_are_retried(version: int) -> None:
    async with TransactionalLeader(version=version) as broker:
        broker.codes[InitProducerIdRequest] = [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR]
        broker.codes[AddPartitionsToTxnRequest] = [ErrorCode.CONCURRENT_TRANSACTIONS]
        broker.codes[AddOffsetsToTxnRequest] = [ErrorCode.CONCURRENT_TRANSACTIONS]
        broker.codes[TxnOffsetCommitRequest] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        broker.codes[ProduceRequest] = [ErrorCode.CONCURRENT_TRANSACTIONS]
        broker.codes[EndTxnRequest] = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.CONCURRENT_TRANSACTIONS]
        async with Producer(config(broker)) as producer, producer.transaction():
            await producer.send("t", b"a", partition=0)
            await producer.send_offsets({P0: 5}, MEMBER)
    assert (broker.committed, broker.offsets) == ([[b"a"]], {("t", 0): 5})


async def test_offsets_carry_the_membership() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        async with producer.transaction():
            await producer.send_offsets({P0: 5}, MEMBER)
            assert broker.offsets == {}
        assert broker.offsets == {("t", 0): 5}
    sent = last(broker, TxnOffsetCommitRequest)
    assert (sent.group_id, sent.generation_id, sent.member_id, sent.group_instance_id) == ("g", 3, "m-1", "i-1")
    assert version_of(broker, TxnOffsetCommitRequest) == 5
    assert not broker.counted()[AddOffsetsToTxnRequest]


async def test_version_1_adds_the_group_first() -> None:
    async with TransactionalLeader(version=1) as broker, Producer(config(broker)) as producer, producer.transaction():
        await producer.send_offsets({P0: 5}, "g")
    kinds = [type(request) for request in broker.requests]
    assert kinds.index(AddOffsetsToTxnRequest) < kinds.index(TxnOffsetCommitRequest)
    assert version_of(broker, TxnOffsetCommitRequest) == 4
    assert broker.offsets == {("t", 0): 5}


async def test_offsets_of_a_removed_member_fail_the_transaction() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.codes[TxnOffsetCommitRequest] = [ErrorCode.ILLEGAL_GENERATION]

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"a", partition=0)
                await producer.send_offsets({P0: 5}, MEMBER)

        with pytest.raises(TransactionAbortable, match="ILLEGAL_GENERATION"):
            await block()
        async with producer.transaction():
            await producer.send("t", b"a", partition=0)
    assert len(broker.committed) == len(broker.aborted) == 1
    assert not broker.offsets


async def test_a_commit_without_answer_can_be_repeated() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.on(EndTxnRequest, lambda request: CLOSE)
        await producer.begin_transaction()
        await producer.send("t", b"a", partition=0)
        with pytest.raises(CommitOutcomeUnknown):
            await producer.commit_transaction(timeout_ms=500)
        with pytest.raises(IllegalUse, match="not known"):
            await producer.abort_transaction()
        broker.on(EndTxnRequest, broker.end)
        await producer.commit_transaction()
        async with producer.transaction():
            await producer.send("t", b"b", partition=0)
    assert broker.committed == [[b"a"], [b"b"]]


async def test_a_cancelled_commit_goes_on_and_the_next_call_waits_for_it() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        arrived = asyncio.Event()

        async def slow(request: EndTxnRequest) -> EndTxnResponse:
            arrived.set()
            for _ in range(100):  # turns of the loop in which the next transaction could begin
                await asyncio.sleep(0)
            answer: EndTxnResponse = broker.end(request)
            return answer

        broker.on(EndTxnRequest, slow)
        await producer.begin_transaction()
        await producer.send("t", b"a", partition=0)
        commit = asyncio.create_task(producer.commit_transaction())
        await arrived.wait()
        commit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await commit
        await producer.begin_transaction()
        assert broker.committed == [[b"a"]]
        await producer.send("t", b"b", partition=0)
        await producer.commit_transaction()
    assert broker.committed == [[b"a"], [b"b"]]


@pytest.mark.parametrize("call", ["commit_transaction", "abort_transaction"])
async def test_tx10_a_cancelled_end_that_succeeds_is_the_success_of_the_same_call_again(call: str) -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        arrived = asyncio.Event()

        async def slow(request: EndTxnRequest) -> EndTxnResponse:
            arrived.set()
            await turns()
            answer: EndTxnResponse = broker.end(request)
            return answer

        broker.on(EndTxnRequest, slow)
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"a", partition=0)
        end = asyncio.create_task(getattr(producer, call)())
        await arrived.wait()
        end.cancel()
        await asyncio.wait({end})
        assert producer.is_commit_pending or producer.is_abort_pending
        await getattr(producer, call)()
        assert broker.counted()[EndTxnRequest] == 1
        with pytest.raises(IllegalUse, match="no transaction is open"):
            await getattr(producer, call)()


@pytest.mark.parametrize("committed", [True, False])
async def test_an_end_waits_for_the_response_of_send_offsets(committed: bool) -> None:
    """EndTxn must not overtake a TxnOffsetCommit: the commit would be without its offsets, and the producer fenced."""
    async with TransactionalLeader() as broker, Scripted(1) as coordinator:
        broker.coordinate_at(coordinator)
        arrived, answers = asyncio.Event(), []

        async def slow(request: TxnOffsetCommitRequest) -> Any:
            arrived.set()
            await turns()
            answers.append("TxnOffsetCommit")
            return broker.commit_offsets(request)

        def end(request: EndTxnRequest) -> Any:
            answers.append("EndTxn")
            return broker.end(request)

        broker.on(TxnOffsetCommitRequest, slow)
        coordinator.on(EndTxnRequest, end)
        async with Producer(config(broker)) as producer:
            await producer.begin_transaction()
            sending = asyncio.create_task(producer.send_offsets({P0: 5}, MEMBER))
            await arrived.wait()
            await (producer.commit_transaction if committed else producer.abort_transaction)()
            await sending
        assert answers == ["TxnOffsetCommit", "EndTxn"]
    assert broker.offsets == ({P0: 5} if committed else {})


async def test_a_cancelled_send_of_offsets_fails_the_transaction() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        broker.on(TxnOffsetCommitRequest, lambda request: None)
        await producer.begin_transaction()
        sending = asyncio.create_task(producer.send_offsets({P0: 5}, MEMBER))
        await eventually(lambda: broker.counted()[TxnOffsetCommitRequest])
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        with pytest.raises(TransactionAbortable):
            await producer.commit_transaction()
        await producer.abort_transaction()


async def test_tx1_a_send_that_yields_to_other_tasks_does_not_enter_the_next_transaction() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        producer._batches_since_yield = BATCHES_PER_TURN_MAX + 1
        sending = asyncio.create_task(producer.send("t", b"a"))
        await asyncio.sleep(0)
        await producer.begin_transaction()
        with pytest.raises(IllegalUse, match="no transaction is open"):
            await sending


@pytest.mark.parametrize("ends", ["abort", "commit"])
async def test_tx3_a_call_ends_no_transaction_that_began_while_it_waited(ends: str) -> None:
    """Else it would commit a part of what another task writes."""
    gate = asyncio.Event()
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        end = broker.end

        async def slow(request: EndTxnRequest) -> Any:
            await gate.wait()
            return end(request)

        broker.on(EndTxnRequest, slow)
        calls = {"abort": producer.abort_transaction, "commit": producer.commit_transaction}
        await producer.begin_transaction()
        await producer.send("t", b"a")
        first = asyncio.create_task(calls.pop(ends)())
        await eventually(lambda: broker.counted()[EndTxnRequest])
        next_one = asyncio.create_task(producer.begin_transaction())
        await asyncio.sleep(0)
        (other,) = calls.values()
        late = asyncio.create_task(other())
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, next_one)
        with pytest.raises(IllegalUse, match="ended while"):
            await late
        await producer.send("t", b"b")
        await producer.commit_transaction()
    assert broker.committed == ([[b"a"], [b"b"]] if ends == "commit" else [[b"b"]])


async def test_pd13_closing_in_time_does_not_wait_for_the_end_of_a_commit() -> None:
    async with TransactionalLeader() as broker:
        broker.on(EndTxnRequest, lambda _: None)
        producer = await Producer(config(broker)).start()
        await producer.begin_transaction()
        await producer.send("t", b"a")
        committing = asyncio.create_task(producer.commit_transaction())
        await eventually(lambda: broker.counted()[EndTxnRequest])
        async with asyncio.timeout(20):
            await producer.close(timeout_ms=5)
        with pytest.raises(CommitOutcomeUnknown):
            await committing


async def test_close_aborts_an_open_transaction() -> None:
    async with TransactionalLeader() as broker:
        producer = await Producer(config(broker)).start()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"a")
        await producer.close()
    assert (broker.aborted, broker.committed) == ([[b"a"]], [])


async def test_start_raises_what_the_coordinator_refuses() -> None:
    async with TransactionalLeader() as broker:
        broker.codes[InitProducerIdRequest] = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
        with pytest.raises(TransactionFailed, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await Producer(config(broker)).start()
        await eventually(lambda: not broker._writers)


async def test_tx2_a_refused_look_up_of_the_coordinator_is_fatal_for_start_and_commit() -> None:
    """The ACL on the transactional id was taken away: FindCoordinator is what is refused first."""
    denied = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    async with TransactionalLeader() as broker:
        broker.codes[FindCoordinatorRequest] = [denied]
        with pytest.raises(TransactionFailed, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await Producer(config(broker)).start()
        async with Producer(config(broker)) as producer:
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"a")
            broker.codes[EndTxnRequest] = [int(ErrorCode.NOT_COORDINATOR)]
            broker.codes[FindCoordinatorRequest] = [denied]
            for _ in range(2):
                with pytest.raises(TransactionFailed, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
                    await producer.commit_transaction()


async def test_without_a_transactional_id_there_are_no_transactions() -> None:
    async with TransactionalLeader() as broker, Producer(settings(broker)) as producer:
        with pytest.raises(ConfigError, match="transactional_id"):
            producer.transaction()
        with pytest.raises(ConfigError, match="transactional_id"):
            await producer.begin_transaction()


async def test_records_need_a_transaction() -> None:
    async with TransactionalLeader() as broker, Producer(config(broker)) as producer:
        for _ in range(2):
            with pytest.raises(IllegalUse, match="no transaction is open"):
                await producer.send("t", b"a", partition=0)
            async with producer.transaction():
                await producer.send("t", b"b", partition=0)
    assert broker.committed == [[b"b"], [b"b"]]
