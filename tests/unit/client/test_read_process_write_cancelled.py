"""`read_process_write` is cancelled at every suspension point, once or at several in succession, and begun again with
the same consumer and producer.

Law TX10: each record counts once in the committed results, its offset is committed with it, and no task is left.
"""

from __future__ import annotations

import asyncio
from itertools import chain, count, product
from typing import Any

import pytest
from tests.unit.client.consumer.bookkeeper import Group, consuming
from tests.unit.client.consumer.kit import TOPIC, batch
from tests.unit.client.network.scripted import eventually
from tests.unit.client.producer.leader import settings
from tests.unit.client.producer.transactional import TransactionalLeader
from tests.unit.client.test_read_process_write import ALL, P0, RIGHT, results
from tests.unit.suspensions import BEFORE_THE_FIRST_STEP, TEN_S, cancel, tasks_of_ours

from rota.client.consumer.consumer import Consumer
from rota.client.producer.producer import Producer
from rota.client.read_process_write import Records, read_process_write
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from rota.protocol.messages.produce import ProduceRequest
from rota.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

IMPATIENT = 4  # cancellations, one at each suspension


def commits_reach_the_group(leader: TransactionalLeader, group: Group, refused: type | None) -> None:
    """The group of the consumer has the offsets that the producer's transactions commit. The first request of the type
    `refused` that is no abort fails the transaction."""
    if refused is not EndTxnRequest and refused is not None:
        leader.codes[refused] = [ErrorCode.TRANSACTION_ABORTABLE]
    fails = iter([refused is EndTxnRequest])

    def end(request: EndTxnRequest) -> EndTxnResponse:
        if request.committed and next(fails, False):
            return EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE)
        response: EndTxnResponse = leader.end(request)
        group.committed |= {partition: offset for (_, partition), offset in leader.offsets.items()}
        return response

    leader.on(EndTxnRequest, end)


class Done(Exception):
    """The last record, which is in no result, was read."""


async def run(consumer: Consumer, producer: Producer) -> str:
    """Write the keys of all records but the last one."""

    async def process(records: Records) -> None:
        for record in chain.from_iterable(records.values()):
            if record.offset == len(ALL):
                raise Done
            await producer.send("results", record.key, partition=0)

    try:
        await read_process_write(consumer, producer, process, max_records=3)
    except Done:
        return "done"
    return "closed"


@pytest.mark.parametrize(
    ("version", "times", "refused"),
    [
        *product((1, 2), (1, IMPATIENT), (None,)),
        (2, 1, EndTxnRequest),
        (2, IMPATIENT, TxnOffsetCommitRequest),
        (1, IMPATIENT, ProduceRequest),
    ],
)
async def test_tx10_a_loop_that_is_cancelled_anywhere_and_begun_again_counts_each_record_once(
    version: int, times: int, refused: type | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`refused`: the coordinator or leader fails the first transaction with such a request."""
    monkeypatch.setattr("rota.client.read_process_write._FIRST_RETRY_S", 0.001)
    for suspension in count(BEFORE_THE_FIRST_STEP):
        group = Group()
        group.write(0, batch(0, 3), batch(3, 3), batch(6, 1))
        before = tasks_of_ours()
        async with TransactionalLeader(partitions=1, version=version) as leader:
            commits_reach_the_group(leader, group, refused)
            config = settings(leader, transactional_id="id")
            async with consuming(group, **RIGHT, fetch_max_wait_ms=5) as consumer, Producer(config) as producer:
                consumer.subscribe([TOPIC])
                reached, outcome = await cancel(run(consumer, producer), suspension, times)
                assert outcome == (None if reached else "done")
                assert await asyncio.wait_for(run(consumer, producer), TEN_S) == "done"
        assert results(leader) == ALL, suspension
        assert leader.offsets == {P0: len(ALL)}
        await ended(before)
        if not reached:
            break
    assert suspension > 10


async def ended(before: set[asyncio.Task[Any]]) -> None:
    """No task but those is left."""
    await eventually(lambda: tasks_of_ours() == before)
