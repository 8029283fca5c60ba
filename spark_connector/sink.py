"""Writing rows to topics: a batch or each micro-batch of a stream, Arrow in, producers out.

Laws
    A task is done when every one of its records is acknowledged: at least once, and without duplicates as long as the
    task itself is not run again (the producer is idempotent).
    A record that is not delivered fails its task with the broker's reason, soon and not only when all else is sent.
    What a task was given is on its way while Spark computes the rest.
    A record with a key goes where Kafka's own partitioner puts it; one with a partition goes there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from rota.client.config import ProducerConfig
from rota.client.producer.delivery import Delivery
from rota.client.producer.producer import Producer
from rota.client.types import Headers
from rota.spark_connector.errors import OptionError
from rota.spark_connector.options import WriteOptions

LINGER_MS: Final = 20  # a task writes as fast as it can: batches fill up by themselves
BATCH_BYTES: Final = 128 << 10
SLICE_ROWS: Final = 1024  # as Python objects at a time
TEXT: Final = (StringType(), BinaryType())
COLUMNS: Final = {
    "key": "string or binary",
    "value": "string or binary",
    "topic": "string",
    "partition": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote."""

    records: int


class RotaWriter(DataSourceArrowWriter):
    """A batch: `df.write.format("rota")`. Raises OptionError for columns that are not those of a record."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task. Raises DeliveryFailed, KafkaError, OptionError."""
        return write(iterator, self._options)


class RotaStreamWriter(DataSourceStreamArrowWriter):
    """A stream: `df.writeStream.format("rota")`. As RotaWriter, for each micro-batch."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task of one micro-batch. Raises DeliveryFailed, KafkaError, OptionError."""
        return write(iterator, self._options)


def check_columns(options: WriteOptions, schema: StructType) -> None:
    """Raises OptionError, which names the column and what it must be."""
    kinds = {field.name: field.dataType for field in schema}
    if "value" not in kinds:
        raise OptionError("columns", ", ".join(kinds), "at least value, a string or binary")
    for name, kind in kinds.items():
        if name not in COLUMNS:
            raise OptionError("columns", name, f"among {', '.join(COLUMNS)}; drop it, or put it into value")
        if not _fits(name, kind):
            raise OptionError(f"column {name}", kind.simpleString(), COLUMNS[name])
    if options.topic is None and "topic" not in kinds:
        raise OptionError("topic", None, "given, as an option or as a column")


def _fits(name: str, kind: DataType) -> bool:
    match name:
        case "key" | "value":
            return kind in TEXT
        case "topic":
            return kind == StringType()
        case "partition":
            return kind == IntegerType()
    return (
        isinstance(kind, ArrayType)
        and isinstance(kind.elementType, StructType)
        and [(one.name, one.dataType) for one in kind.elementType] == [("key", StringType()), ("value", BinaryType())]
    )


def write(batches: Iterator[pa.RecordBatch], options: WriteOptions) -> Written:
    """All rows of a task, delivered."""
    return asyncio.run(_write(batches, options))


async def _write(batches: Iterator[pa.RecordBatch], options: WriteOptions) -> Written:
    count = 0
    under_way: deque[Delivery] = deque()  # the last record of each slice: enough to hear of a failure early
    given = {"linger.ms": str(LINGER_MS), "batch.size": str(BATCH_BYTES), **options.client}
    async with Producer(ProducerConfig.from_properties(given)) as producer:
        # in a thread: what was sent goes out while Spark computes the next batch
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            for start in range(0, batch.num_rows, SLICE_ROWS):
                part = batch.slice(start, SLICE_ROWS)
                for topic, key, value, partition, headers in _rows(part, options):
                    last = await producer.send(topic, value, key, partition=partition, headers=headers)
                under_way.append(last)
                while under_way and under_way[0].done():
                    under_way.popleft().result()
            count += batch.num_rows
        await producer.flush()
    return Written(count)


def _rows(batch: pa.RecordBatch, options: WriteOptions) -> Iterator[tuple[Any, ...]]:
    """Topic, key, value, partition, headers of each row. Raises OptionError for a row without a topic."""
    nothing = [None] * batch.num_rows
    columns = {name: batch.column(name) for name in batch.schema.names}
    topics = [options.topic] * batch.num_rows if options.topic is not None else columns["topic"].to_pylist()
    if options.topic is None and None in topics:
        raise OptionError("column topic", None, "a topic in every row, or the option topic for all")
    keys, values = (_bytes(columns[name]) if name in columns else nothing for name in ("key", "value"))
    partitions = columns["partition"].to_pylist() if "partition" in columns else nothing
    headers: list[Headers] = [()] * batch.num_rows
    if options.include_headers and "headers" in columns:
        headers = _headers(columns["headers"])
    return zip(topics, keys, values, partitions, headers, strict=True)


def _bytes(column: pa.Array) -> list[bytes | None]:
    """Text as its UTF-8; the same buffers."""
    found: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return found


def _headers(column: pa.ListArray) -> list[Headers]:
    """Of each row; none where it is null. Raises OptionError for a header without a name."""
    names, values = (one.to_pylist() for one in column.flatten().flatten())
    if None in names:
        raise OptionError("column headers", None, "a name (key) in every header")
    pairs = zip(names, values, strict=True)
    return [tuple(islice(pairs, size or 0)) for size in column.value_lengths().to_pylist()]
