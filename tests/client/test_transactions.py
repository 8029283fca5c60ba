"""Transactions against a live broker: what readers see after commits, aborts, fencing, timeouts, kills, lost answers.

Each test reads with another client too: librdkafka, or Java's console consumer.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer as Confluent
from confluent_kafka import TopicPartition as ConfluentPartition
from tests.client.fault_proxy import FaultProxy
from tests.interop.java_kit import needs_java, run_java
from tests.interop.kit import PATIENCE_S, create_topic, unique

from rota.client.config import ConsumerConfig, ProducerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import CommitOutcomeUnknown, ProducerFenced, TransactionAbortable
from rota.client.producer.producer import Producer
from rota.client.read_process_write import Records, read_process_write
from rota.client.types import TopicPartition

PRODUCE, FIND_COORDINATOR, END_TXN, TXN_OFFSET_COMMIT, INIT_PRODUCER_ID = 0, 10, 26, 28, 22
INVALID_RECORD = 87
QUICK: dict[str, Any] = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 50, "reconnect_backoff_ms": 10}
VICTIM = """
import asyncio, sys
from rota.client import Producer, ProducerConfig

async def main(bootstrap, transactional_id, topic):
    async with Producer(ProducerConfig(bootstrap_servers=bootstrap, transactional_id=transactional_id)) as producer:
        async with producer.transaction():
            await producer.send(topic, b"committed")
        async with producer.transaction():
            await producer.send_and_wait(topic, b"killed")
            print("open", flush=True)
            await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def producing(bootstrap: str, transactional_id: str = "", **settings: Any) -> AsyncIterator[Producer]:
    config = ProducerConfig(
        bootstrap_servers=bootstrap, transactional_id=transactional_id or unique("id"), **QUICK | settings
    )
    async with Producer(config) as producer:
        yield producer


@asynccontextmanager
async def committed_reader(bootstrap: str, **settings: Any) -> AsyncIterator[Consumer]:
    given = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}
    async with Consumer(ConsumerConfig(bootstrap_servers=bootstrap, **given | QUICK | settings)) as consumer:
        yield consumer


async def read(bootstrap: str, topic: str, *, is_open: bool = False) -> list[bytes | None]:
    """What a read_committed consumer of ours reads of partition 0, sorted. Unless a transaction `is_open`, wait until
    the markers of all are written: a coordinator answers EndTxn before."""
    partition = TopicPartition(topic, 0)
    async with committed_reader(bootstrap) as consumer:
        if not is_open:
            await markers_written(bootstrap, consumer, partition)
        return await rest(consumer, [partition])


async def markers_written(bootstrap: str, reader: Consumer, partition: TopicPartition) -> None:
    async with committed_reader(bootstrap, isolation_level="read_uncommitted") as other, asyncio.timeout(PATIENCE_S):
        while await reader.end_offsets([partition]) != await other.end_offsets([partition]):
            await asyncio.sleep(0.01)


async def rest(consumer: Consumer, partitions: list[TopicPartition]) -> list[bytes | None]:
    consumer.assign(partitions)
    ends = await consumer.end_offsets(partitions)
    found: list[bytes | None] = []
    async with asyncio.timeout(PATIENCE_S):
        while any([await consumer.position(partition) < ends[partition] for partition in partitions]):
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found += [record.value for record in records]
    return sorted(found, key=lambda value: value or b"")


async def librdkafka_reads(bootstrap: str, topic: str) -> list[bytes]:
    return await asyncio.to_thread(_librdkafka_reads, bootstrap, topic)


def _librdkafka_reads(bootstrap: str, topic: str) -> list[bytes]:
    """What librdkafka's read_committed consumer reads of partition 0 up to its end."""
    consumer = Confluent(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique("group"),
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([ConfluentPartition(topic, 0, 0)])
        found: list[bytes] = []
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            if message.error():
                return sorted(found)
            found.append(message.value())
    finally:
        consumer.close()


async def test_readers_see_committed_records_only(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    async with producing(bootstrap) as producer:
        for number in range(6):
            await producer.begin_transaction()
            for at in range(3):
                await producer.send(topic, b"%d.%d" % (number, at))
            await producer.flush()
            await (producer.commit_transaction() if number % 2 == 0 else producer.abort_transaction())
    expected = sorted(b"%d.%d" % (number, at) for number in (0, 2, 4) for at in range(3))
    assert await read(bootstrap, topic) == await librdkafka_reads(bootstrap, topic) == expected


@pytest.mark.java
@pytest.mark.skipif(bool(needs_java[1].args[0]), reason="no Java")
async def test_javas_reader_sees_what_was_committed(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    async with producing(bootstrap, compression_type="zstd") as producer:
        for value in (b"first", b"second"):
            async with producer.transaction():
                await producer.send(topic, value)
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort_transaction()
    arguments = ("--topic", topic, "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000")
    tool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    committed = ("--isolation-level", "read_committed")
    printed = await asyncio.to_thread(run_java, tool, "--bootstrap-server", bootstrap, *arguments, *committed)
    assert printed.split() == ["first", "second"]


async def test_lag_and_position_pass_markers_and_aborted_records(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    partition = TopicPartition(topic, 0)
    async with producing(bootstrap) as producer, committed_reader(bootstrap) as reader:
        async with producer.transaction():
            await producer.send(topic, b"a")
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"b")
        await producer.abort_transaction()
        await markers_written(bootstrap, reader, partition)
        assert await rest(reader, [partition]) == [b"a"]
        assert (await reader.position(partition), reader.lag(partition)) == (4, 0), "two records, two markers"
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"c")
        assert await reader.end_offsets([partition]) == {partition: 4}, "the last stable offset"
        assert await reader.getmany(timeout_ms=200) == {}
        assert reader.lag(partition) == 0
        reader.seek(partition, 1)
        assert await rest(reader, [partition]) == [], "a seek into a marker, then an aborted record"
        await producer.commit_transaction()
        await markers_written(bootstrap, reader, partition)
        assert await rest(reader, [partition]) == [b"c"]
        reader.seek(partition, 0)
        assert await rest(reader, [partition]) == [b"a", b"c"]


async def test_a_second_producer_of_the_id_fences_the_first(bootstrap: str) -> None:
    topic, transactional_id = create_topic(bootstrap, 1), unique("id")
    async with producing(bootstrap, transactional_id) as first:
        await first.begin_transaction()
        await first.send_and_wait(topic, b"zombie")
        async with producing(bootstrap, transactional_id) as second:
            await first.send(topic, b"late")
            with pytest.raises(TransactionAbortable):
                await first.commit_transaction()
            with pytest.raises(ProducerFenced):
                await first.abort_transaction()
            async with second.transaction():
                await second.send(topic, b"second")
        with pytest.raises(ProducerFenced):
            await first.begin_transaction()
    assert await read(bootstrap, topic) == await librdkafka_reads(bootstrap, topic) == [b"second"]


async def test_a_commit_of_a_fenced_producer_commits_nothing(bootstrap: str) -> None:
    topic, transactional_id = create_topic(bootstrap, 1), unique("id")
    async with producing(bootstrap, transactional_id) as first:
        await first.begin_transaction()
        await first.send_and_wait(topic, b"zombie")
        async with producing(bootstrap, transactional_id):
            with pytest.raises(ProducerFenced):
                await first.commit_transaction()
    assert await read(bootstrap, topic) == []


async def test_a_killed_producer_leaves_nothing_once_its_id_starts_again(bootstrap: str) -> None:
    topic, transactional_id = create_topic(bootstrap, 1), unique("id")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VICTIM, bootstrap, transactional_id, topic, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"open\n"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert await read(bootstrap, topic, is_open=True) == [b"committed"], (
        "the open transaction bounds the last stable offset"
    )
    async with producing(bootstrap, transactional_id) as producer, producer.transaction():
        await producer.send(topic, b"restarted")
    assert await read(bootstrap, topic) == await librdkafka_reads(bootstrap, topic) == [b"committed", b"restarted"]


async def test_a_transaction_that_times_out_is_aborted_by_the_coordinator(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    partition = TopicPartition(topic, 0)
    async with producing(bootstrap, transaction_timeout_ms=1) as producer, committed_reader(bootstrap) as reader:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"late")
        async with asyncio.timeout(PATIENCE_S):  # Kafka looks for them every 10 s
            while (await reader.end_offsets([partition]))[partition] < 2:
                await asyncio.sleep(0.1)
        with pytest.raises(TransactionAbortable):
            await producer.commit_transaction()
        await producer.abort_transaction()
    assert await read(bootstrap, topic) == []


async def test_offsets_are_committed_with_the_transaction(bootstrap: str) -> None:
    topic, group = create_topic(bootstrap, 1), unique("group")
    partition = TopicPartition(topic, 0)
    async with producing(bootstrap) as producer, committed_reader(bootstrap, group_id=group) as reader:
        await producer.begin_transaction()
        await producer.send_offsets({partition: 5}, group)
        await producer.abort_transaction()
        assert await reader.committed([partition]) == {partition: None}
        async with producer.transaction():
            await producer.send_offsets({partition: 7}, group)
        [at] = (await reader.committed([partition])).values()
        assert at is not None
        assert at.offset == 7


async def test_offsets_of_a_removed_member_are_refused(bootstrap: str) -> None:
    topic, group = create_topic(bootstrap, 1), unique("group")
    async with (
        producing(bootstrap) as producer,
        committed_reader(bootstrap, group_id=group, enable_auto_commit=False) as reader,
    ):
        reader.subscribe([topic])
        async with producer.transaction():
            await producer.send(topic, b"a")
        assert (await reader.getone()).value == b"a"
        offsets, member = reader.delivered_offsets(), reader.group
        await reader.unsubscribe()
        await producer.begin_transaction()
        with pytest.raises(TransactionAbortable, match="UNKNOWN_MEMBER_ID"):
            await producer.send_offsets(offsets, member)
        await producer.abort_transaction()
        assert await reader.committed([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): None}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_eo2_a_member_that_was_thrown_out_commits_no_offsets(bootstrap: str, protocol: str) -> None:
    """It does not know it yet: it has not polled since. Its partitions are another member's by now."""
    topic, group = create_topic(bootstrap, 1), unique("group")
    async with (
        producing(bootstrap) as producer,
        committed_reader(
            bootstrap, group_id=group, enable_auto_commit=False, group_protocol=protocol, max_poll_interval_ms=500
        ) as reader,
    ):
        reader.subscribe([topic])
        async with producer.transaction():
            await producer.send(topic, b"a")
        assert (await reader.getone()).value == b"a"
        async with asyncio.timeout(PATIENCE_S):
            while reader.state != "DOWN":
                await asyncio.sleep(0.01)
        await producer.begin_transaction()
        with pytest.raises(TransactionAbortable, match="UNKNOWN_MEMBER_ID"):
            await producer.send_offsets(reader.delivered_offsets(), reader.group)
        await producer.abort_transaction()
        assert await reader.committed([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): None}


@pytest.mark.parametrize("after", [False, True], ids=["request lost", "answer lost"])
@pytest.mark.parametrize("api", [PRODUCE, END_TXN, INIT_PRODUCER_ID, TXN_OFFSET_COMMIT])
async def test_lost_requests_and_answers(bootstrap: str, api: int, after: bool) -> None:
    """Three lost ones, and every transaction is committed once."""
    topic, group = create_topic(bootstrap, 1), unique("group")
    async with FaultProxy(bootstrap) as proxy:
        fault = proxy.close(api, after=after, times=3)
        async with producing(proxy.bootstrap) as producer:
            for number in range(3):
                async with producer.transaction():
                    await producer.send(topic, b"%d" % number)
                    await producer.send_offsets({TopicPartition(topic, 0): number + 1}, group)
        await fault.happened(3)
    assert await read(bootstrap, topic) == await librdkafka_reads(bootstrap, topic) == [b"0", b"1", b"2"]
    async with committed_reader(bootstrap, group_id=group) as reader:
        [at] = (await reader.committed([TopicPartition(topic, 0)])).values()
        assert at is not None
        assert at.offset == 3


async def test_a_commit_whose_answer_is_lost_for_long(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    async with FaultProxy(bootstrap) as proxy, producing(proxy.bootstrap) as producer:
        lost = proxy.close(END_TXN, after=True, times=None)
        await producer.begin_transaction()
        await producer.send(topic, b"a")
        with pytest.raises(CommitOutcomeUnknown):
            await producer.commit_transaction(timeout_ms=300)
        lost.end()
        await producer.commit_transaction()
        async with producer.transaction():
            await producer.send(topic, b"b")
    assert await read(bootstrap, topic) == [b"a", b"b"]


async def test_tx8_read_process_write_goes_on_after_an_abort_without_answers(bootstrap: str) -> None:
    source, results = create_topic(bootstrap, 1), create_topic(bootstrap, 1)
    settings = {"group_id": unique("group"), "enable_auto_commit": False}
    async with producing(bootstrap) as first, first.transaction():
        await first.send(source, b"a")
    async with (
        FaultProxy(bootstrap) as proxy,
        producing(proxy.bootstrap, max_block_ms=500, request_timeout_ms=200) as producer,
        committed_reader(bootstrap, **settings) as consumer,
    ):
        consumer.subscribe([source])
        refused, held = proxy.refuse(PRODUCE, INVALID_RECORD), proxy.hold(END_TXN, times=None)

        async def copy(records: Records) -> None:
            for several in records.values():
                for record in several:
                    await producer.send(results, record.value)

        task = asyncio.create_task(read_process_write(consumer, producer, copy))
        await refused.happened()
        await held.happened(4)  # longer than max_block_ms
        held.end()
        async with asyncio.timeout(PATIENCE_S):
            while await read(bootstrap, results) != [b"a"]:
                await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
    assert await read(bootstrap, results) == await librdkafka_reads(bootstrap, results) == [b"a"]


async def test_read_process_write_counts_each_record_once_through_restarts(bootstrap: str) -> None:
    source, results, group = create_topic(bootstrap, 2), create_topic(bootstrap, 1), unique("group")
    transactional_id, values = unique("id"), sorted(b"%03d" % number for number in range(200))
    async with producing(bootstrap) as producer, producer.transaction():
        for number, value in enumerate(values):
            await producer.send(source, value, partition=number % 2)
    settings = {"group_id": group, "enable_auto_commit": False, "session_timeout_ms": 6_000}
    for crashes_after in (3, 5, None):
        async with (
            producing(bootstrap, transactional_id) as producer,
            committed_reader(bootstrap, **settings) as consumer,
        ):
            consumer.subscribe([source])
            calls = 0

            async def copy(records: Records) -> None:
                nonlocal calls
                calls += 1
                for several in records.values():
                    for record in several:
                        await producer.send(results, record.value)
                if calls == crashes_after:  # noqa: B023
                    await producer.flush()
                    raise asyncio.CancelledError

            task = asyncio.create_task(read_process_write(consumer, producer, copy, max_records=10))
            if crashes_after is None:
                async with asyncio.timeout(PATIENCE_S):
                    while await read(bootstrap, results) != values:
                        await asyncio.sleep(0.05)
                task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
    assert await read(bootstrap, results) == await librdkafka_reads(bootstrap, results) == values
