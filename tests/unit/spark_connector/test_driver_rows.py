"""Small micro-batches are read on the driver; Spark's own code takes the rows with the plan."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.serializers import read_int, write_with_length
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming import python_streaming_source_runner as runner
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.client.fault_proxy import ProxyConnection, proxy_in_thread
from tests.unit.spark_connector.conftest import Opened, Write
from tests.unit.spark_connector.counting import counting

from rota.spark_connector import driver_rows
from rota.spark_connector.errors import DataLost
from rota.spark_connector.plan import KafkaInputPartition
from rota.spark_connector.schema import spark_schema
from rota.spark_connector.source import RotaDataSource
from rota.spark_connector.stream import JsonTree, RotaStreamReader

ALL = ReadAllAvailable()
Rows = list[tuple[int, int, bytes]]


def planned(reader: RotaStreamReader, start: JsonTree, end: JsonTree) -> tuple[list[InputPartition], Rows | None]:
    """What Spark's Python process for the query sends to the JVM: the input partitions, and the rows or None."""
    request, answer = io.BytesIO(), io.BytesIO()
    for offset in (start, end):
        write_with_length(json.dumps(offset).encode(), request)
    request.seek(0)
    schema = spark_schema(include_headers=False)
    runner.partitions_func(reader, RotaDataSource({}), schema, 10_000, request, answer)
    answer.seek(0)
    parts = [runner.pickleSer._read_with_length(answer) for _ in range(read_int(answer))]
    found = read_int(answer)
    if found == runner.PREFETCHED_RECORDS_NOT_FOUND:
        return parts, None
    if found == runner.EMPTY_PYARROW_RECORD_BATCHES:
        return parts, []
    read_int(answer)
    return parts, rows(pa.ipc.open_stream(answer))


def rows(batches: Any) -> Rows:
    return [(row["partition"], row["offset"], row["value"]) for batch in batches for row in batch.to_pylist()]


def test_spark_gets_the_rows_with_a_plan_whose_task_would_read_the_same(
    topic: str, write: Write, opened: Opened
) -> None:
    write(topic, 0, [(None, b"a%d" % at) for at in range(30)], batch_size=100)
    write(topic, 1, [(None, b"b%d" % at) for at in range(20)])
    reader = opened(subscribe=topic)
    start = {topic: {"0": 3, "1": 0}}
    (part,), found = planned(reader, start, {topic: {"0": 30, "1": 15}})
    assert found == [(0, at, b"a%d" % at) for at in range(3, 30)] + [(1, at, b"b%d" % at) for at in range(15)]
    assert rows(reader.read(part)) == found
    report = io.BytesIO()
    reader.latestOffset(start, ALL)
    runner.report_latest_offset_func(reader, report)
    assert topic.encode() in report.getvalue(), "between two plans Spark has the reader that it knows"


def test_the_rows_of_a_plan_cost_one_fetch_for_each_partition(
    bootstrap: str, topic: str, write: Write, opened: Opened
) -> None:
    for partition in (0, 1):
        write(topic, partition, [(None, b"v")] * 3)
    with counting(bootstrap) as (address, counts):
        reader = opened(subscribe=topic, **{"kafka.bootstrap.servers": address})
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        planned(reader, start, end)  # connects
        before = counts.copy()
        assert len(planned(reader, start, end)[1] or ()) == 6
        assert counts - before == {"Metadata": 1, "ListOffsets": 2, "Fetch": 2}
        reader.stop()


@pytest.mark.parametrize(
    ("option", "value", "ends", "tasks"),
    [
        ("minRecordsPerPartition", "0", (3, 3), 2),
        ("minPartitions", "2", (3, 3), 2),
        ("maxRecordsPerPartition", "4", (3, 3), 2),
        ("minRecordsPerPartition", "2", (3, 0), 1),
    ],
)
def test_a_query_that_asks_for_tasks_gets_tasks(
    topic: str, write: Write, opened: Opened, option: str, value: str, ends: tuple[int, int], tasks: int
) -> None:
    for partition in (0, 1):
        write(topic, partition, [(None, b"v")] * 3)
    reader = opened(subscribe=topic, **{option: value})
    parts, found = planned(reader, reader.initialOffset(), {topic: {"0": ends[0], "1": ends[1]}})
    assert (len(parts), found) == (tasks, None)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_large_records_are_left_to_a_task_and_the_next_plan_does_not_fetch_them(
    bootstrap: str, topic: str, write: Write, opened: Opened, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    monkeypatch.setattr(driver_rows, "BYTES_MAX", 20_000)
    write(topic, 0, [(None, b"x" * 900)] * 100, batch_size=1_000, compression_type=codec)
    with counting(bootstrap) as (address, counts):
        reader = opened(subscribe=topic, **{"kafka.bootstrap.servers": address})
        for first in (0, 30):
            (part,), found = planned(reader, {topic: {"0": first, "1": 0}}, {topic: {"0": first + 30, "1": 0}})
            assert found is None
        assert counts["Fetch"] == 1
        assert [row[1] for row in rows(reader.read(part))] == [*range(30, 60)]
        reader.stop()


def test_after_a_large_record_the_driver_reads_small_ones_again(
    topic: str, write: Write, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_rows, "BYTES_MAX", 20_000)
    write(topic, 0, [(None, b"x" * 30_000)])
    reader = opened(subscribe=topic)

    def is_read(at: int) -> bool:
        return planned(reader, {topic: {"0": at, "1": 0}}, {topic: {"0": at + 1, "1": 0}})[1] is not None

    assert not is_read(0)
    write(topic, 0, [(None, b"v")] * 20)
    assert [is_read(at) for at in range(1, 21)] == [False] * 7 + [True] * 13


def test_a_loss_is_an_error_of_the_task(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    reader = opened(subscribe=topic)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    reader._topic_ids[topic] = bytes(15) + b"\1"  # that of the topic that was planned, which was created again since
    (part,), found = planned(reader, reader.initialOffset(), end)
    assert found is None
    with pytest.raises(DataLost):
        rows(reader.read(part))


def test_a_driver_that_reads_for_too_long_leaves_it_to_a_task(
    topic: str, write: Write, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_rows, "TIMEOUT_S", 0.0)
    write(topic, 0, [(None, b"v")] * 3)
    reader = opened(subscribe=topic)
    (part,), found = planned(reader, reader.initialOffset(), {topic: {"0": 3, "1": 0}})
    assert (isinstance(part, KafkaInputPartition), found) == (True, None)
    assert len(rows(reader.read(part))) == 3


def test_a_corrupt_answer_is_left_to_a_task(bootstrap: str, topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    with corrupting(bootstrap) as address:
        reader = opened(subscribe=topic, **{"kafka.bootstrap.servers": address})
        (part,), found = planned(reader, reader.initialOffset(), {topic: {"0": 3, "1": 0}})
        assert found is None
        assert len(rows(reader.read(part))) == 3
        reader.stop()


@contextlib.contextmanager
def corrupting(bootstrap: str) -> Iterator[str]:
    """The address of a proxy that changes the last byte of the first records that are fetched."""
    changed: list[bool] = []

    class Corrupting(ProxyConnection):
        async def _send(self, slot: Any, answer: Any) -> None:
            if type(answer).__name__ == "FetchResponse" and not changed:
                part = answer.responses[0].partitions[0]
                part.records = bytes(part.records[:-1]) + b"\xff"
                changed.append(True)
            await super()._send(slot, answer)

    with proxy_in_thread(bootstrap, Corrupting) as address:
        yield address
