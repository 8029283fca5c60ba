"""What a task writes, on a real broker; what is refused before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.types import StructType
from tests.interop.kit import until
from tests.unit.spark_connector.conftest import create

from rota.client import ConsumerRecord, DeliveryFailed, PartitionReader, TopicPartition
from rota.spark_connector.errors import OptionError
from rota.spark_connector.options import WriteOptions, write_options
from rota.spark_connector.schema import HEADERS
from rota.spark_connector.sink import (
    SLICE_ROWS,
    RotaStreamWriter,
    RotaWriter,
    TaskResult,
    check_columns,
    to_batches,
    write,
)

PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])


def written(bootstrap: str, topic: str, partition: int) -> list[ConsumerRecord]:
    async def read() -> list[ConsumerRecord]:
        async with PartitionReader.from_properties({"bootstrap.servers": bootstrap}) as reader:
            return [one async for one in reader.read(TopicPartition(topic, partition), -2, -1)]

    return asyncio.run(read())


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_rows_of_an_older_pyspark_become_batches() -> None:
    schema = (
        StructType().add("key", "string").add("value", "binary").add("partition", "integer").add("headers", HEADERS)
    )
    rows = [("a", b"1", 0, [("h", b"x")]), (None, None, None, None)] * SLICE_ROWS
    made = list(to_batches(iter([Row(**dict(zip(schema.names, row, strict=True))) for row in rows]), schema))
    assert [one.num_rows for one in made] == [SLICE_ROWS] * 2
    assert made[0].slice(0, 2).to_pylist() == [
        {"key": "a", "value": b"1", "partition": 0, "headers": [{"key": "h", "value": b"x"}]},
        {"key": None, "value": None, "partition": None, "headers": None},
    ]
    assert list(to_batches(iter(()), schema)) == []


def test_rows_become_records(bootstrap: str, topic: str, base: dict[str, str]) -> None:
    rows = batch(
        key=pa.array(["a", None]),
        value=pa.array([b"\xff", None], pa.binary()),
        partition=pa.array([1, 1], pa.int32()),
        headers=pa.array([[{"key": "h", "value": b"1"}, {"key": "n", "value": None}], None], pa.list_(PAIR)),
    )
    assert write(iter([rows]), write_options({**base, "topic": topic})) == TaskResult(2)
    found = written(bootstrap, topic, 1)
    assert [(one.key, one.value, one.headers) for one in found] == [
        (b"a", b"\xff", (("h", b"1"), ("n", None))),
        (None, None, ()),
    ]


def test_rows_may_name_their_topics(bootstrap: str, base: dict[str, str]) -> None:
    one, two = create(bootstrap, "rows-one", 1), create(bootstrap, "rows-two", 1)
    rows = batch(topic=pa.array([one, two]), value=pa.array(["1", "2"]))
    assert RotaWriter(write_options(base), StructType().add("topic", "string").add("value", "string")).write(
        iter([rows])
    ) == TaskResult(2)
    assert [one.value for one in written(bootstrap, two, 0)] == [b"2"]


def test_the_option_wins_over_the_column(bootstrap: str, topic: str, base: dict[str, str]) -> None:
    rows = batch(topic=pa.array(["nowhere"]), value=pa.array(["1"]), partition=pa.array([0], pa.int32()))
    schema = StructType().add("topic", "string").add("value", "string").add("partition", "integer")
    RotaStreamWriter(write_options({**base, "topic": topic}), schema).write(iter([rows]))
    assert len(written(bootstrap, topic, 0)) == 1


def test_no_rows_are_no_records(topic: str, base: dict[str, str]) -> None:
    assert write(iter([]), write_options({**base, "topic": topic})) == TaskResult(0)


def test_a_row_without_a_topic_is_refused(base: dict[str, str]) -> None:
    rows = batch(topic=pa.array([None], pa.string()), value=pa.array(["1"]))
    with pytest.raises(OptionError, match="a topic in every row"):
        write(iter([rows]), write_options(base))


def test_a_record_that_is_refused_fails_the_task_with_the_reason(bootstrap: str, base: dict[str, str]) -> None:
    topic = create(bootstrap, "compacted-sink", 1, cleanup_policy="compact")
    with pytest.raises(DeliveryFailed, match="INVALID_RECORD"):
        write(iter([batch(value=pa.array(["no key"]))]), write_options({**base, "topic": topic}))


def test_the_first_failure_ends_the_task(bootstrap: str, base: dict[str, str]) -> None:
    topic = create(bootstrap, "compacted-early", 1, cleanup_policy="compact")

    def without_end() -> Iterator[pa.RecordBatch]:
        while True:
            yield batch(value=pa.array(["no key"]))

    with pytest.raises(DeliveryFailed, match="INVALID_RECORD"):
        write(without_end(), write_options({**base, "topic": topic}))


def test_rows_are_on_their_way_while_the_next_are_computed(bootstrap: str, topic: str, base: dict[str, str]) -> None:
    def slow() -> Iterator[pa.RecordBatch]:
        yield batch(value=pa.array(["1"]), partition=pa.array([0], pa.int32()))
        until(lambda: written(bootstrap, topic, 0), "the row before")

    assert write(slow(), write_options({**base, "topic": topic})) == TaskResult(1)


def test_many_rows_keep_their_order_and_their_headers(bootstrap: str, topic: str, base: dict[str, str]) -> None:
    count = 2 * SLICE_ROWS + 1
    rows = batch(
        value=pa.array([str(at) for at in range(count)]),
        partition=pa.array([0] * count, pa.int32()),
        headers=pa.array([[{"key": str(at), "value": b""}] * (at % 3) or None for at in range(count)], pa.list_(PAIR)),
    )
    write(iter([rows]), write_options({**base, "topic": topic}))
    found = written(bootstrap, topic, 0)
    assert [one.value for one in found] == [str(at).encode() for at in range(count)]
    assert [one.headers for one in found] == [((str(at), b""),) * (at % 3) for at in range(count)]


@pytest.mark.parametrize("pair", [None, {"key": None, "value": b""}])
def test_a_header_without_a_name_is_refused(topic: str, base: dict[str, str], pair: object) -> None:
    rows = batch(value=pa.array(["1"]), headers=pa.array([[pair]], pa.list_(PAIR)))
    with pytest.raises(OptionError, match="a name"):
        write(iter([rows]), write_options({**base, "topic": topic}))


@pytest.mark.parametrize(
    ("columns", "topic", "answer"),
    [
        ("key string", "t", "value"),
        ("value integer", "t", "column value"),
        ("value string, price double", "t", "price"),
        ("value string, partition long", "t", "column partition"),
        ("value string, headers string", "t", "column headers"),
        ("value string", None, "topic"),
    ],
)
def test_columns_that_make_no_record_are_refused(columns: str, topic: str | None, answer: str) -> None:
    schema = StructType()
    for column in columns.split(", "):
        schema = schema.add(*column.split(" "))
    with pytest.raises(OptionError, match=answer):
        check_columns(WriteOptions({}, topic, include_headers=True), schema)


def test_options_that_spark_adds_are_ignored(base: dict[str, str]) -> None:
    assert write_options({**base, "checkpointlocation": "/c", "path": "x"}).topic is None


def test_the_columns_of_a_read_can_be_written_again() -> None:
    schema = StructType().add("key", "binary").add("value", "binary").add("topic", "string").add("partition", "integer")
    check_columns(WriteOptions({}, None, include_headers=True), schema)
