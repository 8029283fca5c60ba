"""What a task reads of a piece, on a real broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from tests.unit.spark_connector.conftest import Write, create

from rota.client import Admin, AdminConfig, CorruptRecords, NewTopic, Producer, ProducerConfig
from rota.client.config import ConsumerConfig
from rota.client.consumer.reader import FetchedRaw, PartitionReader
from rota.client.types import TopicPartition
from rota.protocol.messages.fetch import AbortedTransaction
from rota.protocol.records.batch import Codec, with_payload
from rota.protocol.records.columns import Columns
from rota.protocol.records.record import Record, write_batch
from rota.spark_connector import read as reading
from rota.spark_connector.broker import DriverClient
from rota.spark_connector.errors import DataLost
from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.options import ReadOptions, batch_options
from rota.spark_connector.plan import KafkaInputPartition
from rota.spark_connector.read import FetchDecoder, RangeFetcher, fetch_bytes, read
from rota.spark_connector.task_clients import POOL
from rota.testing import running_cluster


@pytest.fixture
def options(base: dict[str, str], topic: str) -> ReadOptions:
    return batch_options({**base, "subscribe": topic})


def rows(offsets: OffsetRange, options: ReadOptions) -> list[tuple[int, bytes | None, bytes | None]]:
    found = [row for batch in read(KafkaInputPartition(offsets), options) for row in batch.to_pylist()]
    return [(row["offset"], row["key"], row["value"]) for row in found]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_piece_is_read_whole_and_no_more(topic: str, write: Write, options: ReadOptions, codec: str) -> None:
    pairs = [(b"k%d" % at, None if at % 7 == 0 else b"v%d" % at * 50) for at in range(300)]
    write(topic, 1, pairs, compression_type=codec, batch_size=2_000)
    assert rows(OffsetRange(topic, 1, 40, 260), options) == [(at, *pairs[at]) for at in range(40, 260)]


def test_headers_times_and_places_are_columns(topic: str, write: Write, base: dict[str, str]) -> None:
    write(topic, 1, [(None, b"v")], headers=(("h", b"1"), ("n", None)))
    (batch,) = read(
        KafkaInputPartition(OffsetRange(topic, 1, 0, 1)),
        batch_options({**base, "subscribe": topic, "includeHeaders": "true"}),
    )
    (row,) = batch.to_pylist()
    assert (row["topic"], row["partition"], row["timestampType"]) == (topic, 1, 0)
    assert row["headers"] == [{"key": "h", "value": b"1"}, {"key": "n", "value": None}]
    assert batch.column("timestamp").cast("int64").to_pylist() == [1_000_000]


def test_many_small_fetches_are_the_same_rows(topic: str, write: Write, base: dict[str, str]) -> None:
    write(topic, 0, [(None, b"x" * 900)] * 100, batch_size=1_000)
    small = batch_options({**base, "subscribe": topic, "kafka.max.partition.fetch.bytes": "3000"})
    assert len(rows(OffsetRange(topic, 0, 0, 100), small)) == 100


def test_batches_are_cut_when_they_are_large(
    topic: str, write: Write, options: ReadOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_BYTES", 10_000)
    write(topic, 0, [(None, b"x" * 900)] * 100, batch_size=3_000)
    batches = list(read(KafkaInputPartition(OffsetRange(topic, 0, 0, 100)), options))
    assert sum(item.num_rows for item in batches) == 100
    assert len(batches) > 3


def test_a_task_reads_on_from_the_new_leader_when_its_broker_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a range, with a fetch in flight."""
    monkeypatch.setattr(reading, "BATCH_BYTES", 10_000)
    value = b"x" * 900

    async def fill(bootstrap: str) -> None:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
            await admin.create_topics([NewTopic("t", 1, 3, configs={"min.insync.replicas": "2"})])
        async with Producer(ProducerConfig(bootstrap_servers=bootstrap, batch_size=3_000)) as producer:
            for number in range(200):
                await producer.send("t", value + b"%d" % number)

    with running_cluster(3) as cluster:
        asyncio.run(fill(cluster.bootstrap_servers))
        cluster.move_leader("t", 0, 2)
        given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t"}
        small = batch_options({**given, "kafka.max.partition.fetch.bytes": "3000"})
        batches = read(KafkaInputPartition(OffsetRange("t", 0, 0, 200)), small)
        found = next(batches).to_pylist()
        assert len(found) < 100
        cluster.kill(2)
        found += [row for batch in batches for row in batch.to_pylist()]
        POOL.close()
    assert [(row["offset"], row["value"]) for row in found] == [(at, value + b"%d" % at) for at in range(200)]


def test_a_small_range_is_read_with_small_fetches(topic: str, write: Write, options: ReadOptions) -> None:
    write(topic, 0, [(None, b"x" * 900)] * 1000, batch_size=10_000)

    async def fetched(start: int, end: int) -> list[int]:
        async with PartitionReader.from_properties(options.client) as reader:
            fetches, sizes = RangeFetcher(KafkaInputPartition(OffsetRange(topic, 0, start, end)), options, reader), []
            while (found := await fetches.next()) is not None:
                sizes.append(len(found[1].batches))
            await fetches.close()
            return sizes

    (all_of_it,) = asyncio.run(fetched(0, 1000))
    assert all_of_it > 900_000
    (few,) = asyncio.run(fetched(500, 510))
    assert few < 100_000


def test_the_rest_of_a_response_is_returned_as_its_own_batch(
    topic: str, write: Write, options: ReadOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FETCH_BYTES", 100_000)
    write(topic, 0, [(None, b"x" * 900)] * 1000, batch_size=10_000)
    monkeypatch.setattr(reading, "CARRIED_BYTES", 10_000_000)
    (whole,) = read(KafkaInputPartition(OffsetRange(topic, 0, 0, 1000)), options)  # all answers are put together
    monkeypatch.setattr(reading, "CARRIED_BYTES", 1)
    cut = list(read(KafkaInputPartition(OffsetRange(topic, 0, 0, 1000)), options))
    assert len(cut) > 5
    assert whole.to_pylist() == [row for batch in cut for row in batch.to_pylist()]


def test_sp20_a_batch_that_cannot_be_decoded_is_named(options: ReadOptions) -> None:
    good, undecodable = write_batch([Record(0, 1, None, b"x")]), write_batch([Record(0, 1, None, b"y")], base_offset=1)
    for bad in (with_payload(undecodable, Codec.NONE, b"\xff" * 9), undecodable[:-1] + b"\xff"):
        fetched = FetchedRaw(memoryview(good + bad), 2, 2, 2, 0, 0, 0, ())
        part = KafkaInputPartition(OffsetRange("t", 3, 0, 2))
        with pytest.raises(CorruptRecords, match=r"t-3 at offset 1: .*behind it") as failed:
            list(reading.decode(part, options, [(0, fetched)]))
        assert (failed.value.partition, failed.value.offset) == (TopicPartition("t", 3), 1)


def deleted(topic: str, before: int, options: ReadOptions) -> None:
    """Records before an offset go, as retention takes them."""
    from rota.client import Admin

    async def delete() -> None:
        async with Admin.from_properties({"bootstrap.servers": options.client["bootstrap.servers"]}) as admin:
            await admin.delete_records({TopicPartition(topic, 0): before})

    asyncio.run(delete())


def test_deleted_records_fail_the_task(topic: str, write: Write, options: ReadOptions) -> None:
    write(topic, 0, [(None, b"x")] * 10)
    deleted(topic, 4, options)
    with pytest.raises(DataLost, match=rf"offsets 2-9 of {topic}-0; its log has 4-9.*failOnDataLoss=false"):
        rows(OffsetRange(topic, 0, 2, 10), options)


def test_or_are_left_out(topic: str, write: Write, base: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    write(topic, 0, [(None, b"x")] * 10)
    lossy = batch_options({**base, "subscribe": topic, "failOnDataLoss": "false"})
    deleted(topic, 4, lossy)
    with caplog.at_level(logging.WARNING):
        assert [row[0] for row in rows(OffsetRange(topic, 0, 2, 12), lossy)] == [4, 5, 6, 7, 8, 9]
    assert "Records that the query has to read are lost" in caplog.text


def test_compacted_away_offsets_are_no_loss(bootstrap: str, write: Write, base: dict[str, str]) -> None:
    topic = create(bootstrap, "compacted", 1, cleanup_policy="compact")
    write(topic, 0, [(b"a", b"1"), (b"a", b"2")])
    options = batch_options({**base, "subscribe": topic})
    assert rows(OffsetRange(topic, 0, 0, 2), options) == [(0, b"a", b"1"), (1, b"a", b"2")]


def test_the_default_fetch_size_is_larger_than_that_of_a_consumer(options: ReadOptions) -> None:
    assert fetch_bytes({}, ConsumerConfig(bootstrap_servers="h:1")) == reading.FETCH_BYTES
    answer = ConsumerConfig(bootstrap_servers="h:1", max_partition_fetch_bytes=5)
    assert fetch_bytes({"max.partition.fetch.bytes": "5"}, answer) == 5


def test_a_reader_that_is_left_early_lets_go(topic: str, write: Write, options: ReadOptions) -> None:
    write(topic, 0, [(None, b"x" * 1000)] * 50, batch_size=2_000)
    batches: Iterator[object] = read(KafkaInputPartition(OffsetRange(topic, 0, 0, 50)), options)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    client = DriverClient(options.client)
    assert client.latest((TopicPartition(topic, 0),)) == {TopicPartition(topic, 0): 50}
    client.close()


def test_settings_with_blanks_are_those_of_the_client(topic: str, base: dict[str, str]) -> None:
    """The decoder takes the parsed settings: `isolation.level` with a blank hides aborted transactions as well."""
    settings = {**base, "subscribe": topic, "kafka.isolation.level": "read_committed ", "kafka.check.crcs": " false"}
    options = batch_options(settings)
    reader = PartitionReader(ConsumerConfig.from_properties(options.client))
    fetcher = RangeFetcher(KafkaInputPartition(OffsetRange(topic, 0, 0, 1)), options, reader)
    aborted = AbortedTransaction(producer_id=7, first_offset=0)
    fetched = FetchedRaw(
        memoryview(write_batch([Record(0, 1, None, b"x")], producer_id=7, is_transactional=True)),
        1,
        1,
        1,
        0,
        0,
        0,
        (aborted,),
    )
    columns = Columns()
    FetchDecoder(0, fetched, 1, fetcher.config).fill(columns)
    assert columns.count == 0
