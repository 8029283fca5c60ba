import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.unit.client.consumer.bookkeeper import Group, consuming
from tests.unit.client.consumer.kit import TOPIC, batch
from tests.unit.client.network.scripted import CLOSE, eventually
from tests.unit.client.producer.leader import settings
from tests.unit.client.producer.transactional import TransactionalLeader

from rota.client.consumer.consumer import Consumer
from rota.client.errors import ConfigError, IllegalUse, ProducerFenced, TimedOut
from rota.client.producer.producer import Producer
from rota.client.read_process_write import Records, read_process_write
from rota.client.types import GroupMetadata
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.end_txn import EndTxnRequest
from rota.protocol.messages.produce import ProduceRequest
from rota.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

RIGHT: dict[str, Any] = {"enable_auto_commit": False, "isolation_level": "read_committed"}
P0 = (TOPIC, 0)


class Loop:
    """A group's consumer with six records to read, and a producer; `calls`: the keys of each call of `process`."""

    def __init__(self, group: Group, leader: TransactionalLeader, consumer: Consumer, producer: Producer) -> None:
        self.group, self.leader, self.consumer, self.producer = group, leader, consumer, producer
        self.calls: list[list[bytes | None]] = []

    async def process(self, records: Records) -> None:
        keys = [record.key for several in records.values() for record in several]
        self.calls.append(keys)
        for key in keys:
            await self.producer.send("results", key, partition=0)

    async def until(
        self, look: Callable[[], Any], process: Callable[[Records], Awaitable[object]] | None = None
    ) -> None:
        """Run until `look` returns something, or the loop ends."""
        task = asyncio.create_task(
            read_process_write(self.consumer, self.producer, process or self.process, max_records=3)
        )
        try:
            await eventually(lambda: task.done() or look())
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def loop() -> AsyncIterator[Loop]:
    group = Group()
    group.write(0, batch(0, 3), batch(3, 3))
    async with TransactionalLeader(partitions=1) as leader, consuming(group, **RIGHT) as consumer:
        consumer.subscribe([TOPIC])
        config = settings(leader, transactional_id="id", max_block_ms=500, default_api_timeout_ms=5_000)
        async with Producer(config) as producer:
            yield Loop(group, leader, consumer, producer)


def results(leader: TransactionalLeader) -> list[bytes | None]:
    return [value for values in leader.committed for value in values]


ALL = [b"0", b"1", b"2", b"3", b"4", b"5"]


async def test_each_poll_is_a_transaction_with_its_offsets(loop: Loop) -> None:
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6)
    assert loop.leader.committed == [[b"0", b"1", b"2"], [b"3", b"4", b"5"]]
    sent = [request for request in loop.leader.requests if isinstance(request, TxnOffsetCommitRequest)]
    assert [request.topics[0].partitions[0].committed_offset for request in sent] == [3, 6]
    assert {(request.generation_id, request.member_id) for request in sent} == {(1, "teller-1")}


@pytest.mark.parametrize("request_", [ProduceRequest, TxnOffsetCommitRequest, EndTxnRequest])
async def test_the_records_of_an_aborted_transaction_are_processed_again(loop: Loop, request_: type) -> None:
    loop.leader.codes[request_] = [ErrorCode.TRANSACTION_ABORTABLE]
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6)
    assert results(loop.leader) == ALL
    assert loop.calls == [ALL[:3], ALL[:3], ALL[3:]]


async def test_a_commit_whose_outcome_is_unknown_is_repeated(loop: Loop) -> None:
    lost = iter((True, True))

    def end(request: EndTxnRequest) -> Any:
        return None if next(lost, False) else loop.leader.end(request)

    loop.leader.on(EndTxnRequest, end)
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6)
    assert results(loop.leader) == ALL
    assert loop.calls == [ALL[:3], ALL[3:]]


@pytest.mark.parametrize("fails", ["a batch", "the offsets", "the block"])
async def test_tx8_an_abort_without_answer_is_repeated_before_the_next_poll(loop: Loop, fails: str) -> None:
    """The coordinator is away for longer than `max_block_ms`."""
    lost = iter([True] * 2)

    def end(request: EndTxnRequest) -> Any:
        return None if next(lost, False) else loop.leader.end(request)

    async def send_and_fail(records: Records) -> None:
        await loop.process(records)
        if fails == "the block" and len(loop.calls) == 1:
            raise TimedOut("a look-up of the program")

    loop.leader.on(EndTxnRequest, end)
    if fails == "a batch":
        loop.leader.codes[ProduceRequest] = [ErrorCode.INVALID_RECORD]
    if fails == "the offsets":
        loop.leader.codes[TxnOffsetCommitRequest] = [ErrorCode.TRANSACTION_ABORTABLE]
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6, send_and_fail)
    assert next(lost, None) is None
    assert results(loop.leader) == ALL
    assert loop.calls == [ALL[:3], ALL[:3], ALL[3:]]


async def test_tx8_a_closed_consumer_ends_the_loop_while_an_abort_is_repeated(loop: Loop) -> None:
    loop.leader.on(EndTxnRequest, lambda request: None)
    loop.leader.codes[ProduceRequest] = [ErrorCode.INVALID_RECORD]
    task = asyncio.create_task(read_process_write(loop.consumer, loop.producer, loop.process))
    await eventually(lambda: loop.leader.counted()[EndTxnRequest] >= 2)
    await loop.consumer.close()
    async with asyncio.timeout(10):
        await task
    loop.leader.on(EndTxnRequest, loop.leader.end)


async def test_tx8_a_loop_after_an_exception_aborts_what_it_left(loop: Loop) -> None:
    loop.leader.on(EndTxnRequest, lambda request: None)
    loop.leader.on(ProduceRequest, lambda request: CLOSE)

    async def send_and_fail(records: Records) -> None:
        await loop.process(records)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await loop.until(lambda: False, send_and_fail)
    loop.leader.on(EndTxnRequest, loop.leader.end)
    loop.leader.on(ProduceRequest, loop.leader.produce)
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6)
    assert results(loop.leader) == ALL


async def test_an_exception_of_process_ends_the_loop_and_loses_no_record(loop: Loop) -> None:
    async def fail(records: Records) -> None:
        await loop.process(records)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await loop.until(lambda: False, fail)
    assert not loop.leader.committed
    assert not loop.leader.offsets
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6)
    assert results(loop.leader) == ALL


async def test_a_fenced_producer_ends_the_loop(loop: Loop) -> None:
    loop.leader.codes[EndTxnRequest] = [ErrorCode.PRODUCER_FENCED]
    with pytest.raises(ProducerFenced):
        await loop.until(lambda: False)
    assert not loop.leader.committed


async def test_a_cancelled_loop_goes_on_where_the_offsets_are(loop: Loop) -> None:
    loop.leader.on(ProduceRequest, lambda request: CLOSE)
    await loop.until(lambda: loop.calls)
    loop.leader.on(ProduceRequest, loop.leader.produce)
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6)
    assert results(loop.leader) == ALL


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("before the next loop", ErrorCode.NONE),
        ("before the next loop", ErrorCode.TRANSACTION_ABORTABLE),
        ("in the next loop", ErrorCode.NONE),
        ("in the next loop", ErrorCode.TRANSACTION_ABORTABLE),
        ("in a later loop", ErrorCode.NONE),
    ],
)
async def test_tx9_a_loop_cancelled_in_a_commit_repeats_its_records_only_if_the_commit_fails(
    loop: Loop, when: str, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    opened = asyncio.Event()

    async def end(request: EndTxnRequest) -> Any:
        await opened.wait()
        answer = loop.leader.end(request)
        loop.group.committed |= {partition: offset for (_, partition), offset in loop.leader.offsets.items()}
        return answer

    loop.group.unstable = [ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT]
    loop.leader.on(EndTxnRequest, end)
    await loop.until(lambda: loop.leader.counted()[EndTxnRequest])
    assert loop.producer.is_commit_pending
    loop.leader.codes[EndTxnRequest] = [code]
    if when == "in a later loop":
        await loop.until(lambda: "a transaction has not ended yet" in caplog.text)
    opened.set()
    if when == "before the next loop":
        await eventually(lambda: not loop.producer.is_commit_pending)
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6)
    assert results(loop.leader) == ALL
    assert loop.calls == ([ALL[:3], ALL[:3], ALL[3:]] if code else [ALL[:3], ALL[3:]])


async def test_tx9_a_loop_cancelled_when_its_commit_has_just_succeeded_repeats_no_records(loop: Loop) -> None:
    """The answer of the commit is read, and the task that waits for it has not run yet."""
    task = asyncio.create_task(read_process_write(loop.consumer, loop.producer, loop.process, max_records=3))
    transactions = loop.producer._transactional()
    ended = transactions.machine.ended

    def end_and_cancel(producer: tuple[int, int] | None) -> None:
        ended(producer)
        task.cancel()

    transactions.machine.ended = end_and_cancel  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await task
    transactions.machine.ended = ended  # type: ignore[method-assign]
    assert results(loop.leader) == ALL[:3]
    loop.group.committed |= {partition: offset for (_, partition), offset in loop.leader.offsets.items()}
    await loop.until(lambda: loop.leader.offsets.get(P0) == 6)
    assert results(loop.leader) == ALL
    assert loop.calls == [ALL[:3], ALL[3:]]


async def test_a_closed_consumer_ends_the_loop(loop: Loop) -> None:
    task = asyncio.create_task(read_process_write(loop.consumer, loop.producer, loop.process))
    await eventually(lambda: loop.leader.offsets.get(P0) == 6)
    await loop.consumer.close()
    async with asyncio.timeout(10):
        await task


@pytest.mark.parametrize("how", ["close", "close at once", "unsubscribe"])
async def test_eo2_results_are_aborted_when_the_consumer_leaves_while_they_are_made(loop: Loop, how: str) -> None:
    """Another member reads the records again: they had been committed without their offsets."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def process(records: Records) -> None:
        await loop.process(records)
        begun.set()
        await goes_on.wait()

    task = asyncio.create_task(read_process_write(loop.consumer, loop.producer, process, max_records=3))
    await begun.wait()
    if how == "unsubscribe":
        await loop.consumer.unsubscribe()
    elif how == "close":
        await loop.consumer.close()
    else:
        await loop.consumer.close(timeout_ms=0)  # it has no time to give up what is assigned
        loop.leader.codes[TxnOffsetCommitRequest] = [ErrorCode.UNKNOWN_MEMBER_ID]
    assert loop.consumer.group == GroupMetadata("tellers", 1, "teller-1")
    goes_on.set()
    async with asyncio.timeout(10):
        await asyncio.wait({task})
    assert isinstance(task.exception(), IllegalUse if how == "unsubscribe" else type(None))
    assert loop.leader.counted()[EndTxnRequest] == 1
    sent = [request for request in loop.leader.requests if isinstance(request, TxnOffsetCommitRequest)]
    assert {(request.generation_id, request.member_id) for request in sent} <= {(1, "teller-1")}
    assert loop.leader.committed == []


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"group_id": None}, "group_id"),
        ({"enable_auto_commit": True}, "enable_auto_commit"),
        ({"isolation_level": "read_uncommitted"}, "isolation_level"),
    ],
)
async def test_settings_that_lose_or_repeat_records_are_refused(wrong: dict[str, Any], name: str) -> None:
    async with (
        TransactionalLeader() as leader,
        consuming(Group(), **RIGHT | wrong) as consumer,
        Producer(settings(leader, transactional_id="id")) as producer,
    ):
        with pytest.raises(ConfigError, match=name):
            await read_process_write(consumer, producer, lambda records: asyncio.sleep(0))
