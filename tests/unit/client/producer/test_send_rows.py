"""Many records in one call: the same records in the same places as from `send` for each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.network.scripted import eventually
from tests.unit.client.producer.leader import Leader, settings

from rota.client.errors import BufferFull, DeliveryFailed, IllegalArgument, IllegalUse, RecordTooLarge
from rota.client.producer.producer import Producer
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import PartitionProduceResponse
from rota.protocol.records.record import Record

Fields = list[tuple[bytes | None, bytes | None]]

KEYS = st.one_of(st.none(), st.binary(max_size=3))
VALUES = st.one_of(st.none(), st.binary(max_size=40))


def fields(logs: dict[int, list[Record]]) -> dict[int, Fields]:
    return {partition: [(record.key, record.value) for record in log] for partition, log in logs.items()}


async def written(rows: Fields, *, at_once: bool, **more: Any) -> dict[int, Fields]:
    """What the partitions have after these records were sent, each alone or all in one call."""
    async with Leader(partitions=3) as leader:
        async with Producer(settings(leader, batch_size=200, **more)) as producer:
            if at_once:
                await producer.send_rows("t", [value for _, value in rows], [key for key, _ in rows])
            else:
                for key, value in rows:
                    await producer.send("t", value, key)
        return fields(leader.logs)


@given(st.lists(st.tuples(st.binary(max_size=3), VALUES), max_size=60))
def test_records_with_keys_are_where_send_puts_them(rows: Fields) -> None:
    assert asyncio.run(written(rows, at_once=True)) == asyncio.run(written(rows, at_once=False))


@given(st.lists(st.tuples(KEYS, VALUES), max_size=60))
def test_no_record_is_lost_or_repeated_or_overtaken(rows: Fields) -> None:
    """Records without a key have no partition of their own, but those of one partition keep their order."""
    logs = asyncio.run(written(rows, at_once=True))
    assert sorted(map(repr, rows)) == sorted(repr(row) for log in logs.values() for row in log)
    for log in logs.values():
        keyed = [row for row in log if row[0] is not None]
        assert keyed == [row for row in rows if row in keyed]


async def test_one_value_for_each_record_without_keys() -> None:
    async with Leader(partitions=1) as leader, Producer(settings(leader, batch_size=300)) as producer:
        values = [b"%d" % number for number in range(100)]
        last = await producer.send_rows("t", values)
        assert last is not None
        assert (await last).offset == 99
        assert [record.value for record in leader.logs[0]] == values
        assert await producer.send_rows("t", []) is None


async def test_a_custom_partitioner_chooses_for_each_record() -> None:
    async with Leader(partitions=2) as leader:
        chosen = settings(leader, partitioner=lambda topic, key, value, partitions: int(value == b"1"))
        async with Producer(chosen) as producer:
            await producer.send_rows("t", [b"0", b"1", b"0", b"1"])
        assert fields(leader.logs) == {0: [(None, b"0")] * 2, 1: [(None, b"1")] * 2}


@pytest.mark.parametrize("values", [[b"0", "text"], ["text", b"0"], [b"0", b"1", "text", b"2"]])
async def test_text_is_refused_at_its_record(values: list[Any]) -> None:
    async with Leader(partitions=1) as leader:
        async with Producer(settings(leader)) as producer:
            await producer.send_and_wait("t", b"first")
            with pytest.raises(IllegalUse, match=r"value\.encode\(\)"):
                await producer.send_rows("t", values)
        assert [record.value for record in leader.logs[0]] == [b"first", *values[: values.index("text")]]


async def test_each_value_needs_a_key_if_one_has_one() -> None:
    async with Leader() as leader, Producer(settings(leader)) as producer:
        with pytest.raises(IllegalArgument, match="2 values with 1 keys"):
            await producer.send_rows("t", [b"1", b"2"], [b"k"])


async def test_a_record_that_is_too_large_raises_after_those_before_it() -> None:
    async with Leader(partitions=1) as leader:
        async with Producer(settings(leader, max_request_size=1_000)) as producer:
            with pytest.raises(RecordTooLarge):
                await producer.send_rows("t", [b"1", bytes(1_000), b"2"])
        assert [record.value for record in leader.logs[0]] == [b"1"]


async def test_a_full_buffer_is_waited_for() -> None:
    async with Leader(partitions=1) as leader:
        async with Producer(settings(leader, buffer_memory=1_000, batch_size=300)) as producer:
            await producer.send_rows("t", [bytes(100)] * 50)
        assert len(leader.logs[0]) == 50


async def test_a_buffer_that_stays_full_raises() -> None:
    async with Leader(partitions=1) as leader:
        producer = await Producer(settings(leader, buffer_memory=1_000, max_block_ms=300)).start()
        await producer.send_and_wait("t", b"first")
        leader.before = lambda partition, records: PartitionProduceResponse(
            index=0, error_code=ErrorCode.NOT_ENOUGH_REPLICAS
        )
        with pytest.raises(BufferFull):
            await producer.send_rows("t", [bytes(100)] * 50)
        with pytest.raises(DeliveryFailed):
            await producer.close(timeout_ms=0)


async def test_the_failure_of_an_earlier_record_is_raised_by_flush() -> None:
    async with Leader(partitions=1) as leader, Producer(settings(leader)) as producer:
        leader.before = lambda partition, records: PartitionProduceResponse(
            index=0, error_code=ErrorCode.INVALID_RECORD
        )
        await producer.send_rows("t", [b"1", b"2", b"3"])
        with pytest.raises(DeliveryFailed):
            await producer.flush()


async def test_other_tasks_run_meanwhile_and_a_cancelled_call_keeps_whole_records() -> None:
    async with Leader(partitions=1) as leader:
        async with Producer(settings(leader, batch_size=300)) as producer:
            await producer.send_and_wait("t", b"first")
            sending = asyncio.create_task(producer.send_rows("t", [bytes(100)] * 10_000))
            await eventually(lambda: len(leader.logs[0]) > 1)
            assert not sending.done()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        assert {record.value for record in leader.logs[0]} == {b"first", bytes(100)}
