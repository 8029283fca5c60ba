"""Write rows to topics: a batch or each micro-batch of a stream, Arrow in, records out.

Laws
    A task ends when all of its records are acknowledged: at least once, and without duplicates as long as Spark does
    not run the task again (the producer is idempotent). With a transactional id each micro-batch is written once:
    two_phase/ has how.
    A record that is not delivered fails its task with the broker's reason, before all other records are sent.
    Records are sent while Spark computes the next rows of the task.
    A record goes to its partition when it names one, else to the partition that Kafka's partitioner picks for its key.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from rota.client.config import ProducerConfig
from rota.client.producer.delivery import Delivery
from rota.client.producer.producer import Producer
from rota.client.types import Headers
from rota.protocol.dataclass import dataclass
from rota.spark_connector.errors import OptionError
from rota.spark_connector.options import WriteOptions
from rota.spark_connector.shipping import Shipped
from rota.spark_connector.spark_api import HAS_STREAM_ARROW_WRITER, DataSourceStreamArrowWriter, to_arrow_schema
from rota.spark_connector.two_phase.micro_batch import abort, begin, commit
from rota.spark_connector.two_phase.task_attempt import TaskAttempt
from rota.spark_connector.two_phase.task_write import PreparedTask, write_prepared

LINGER_MS: Final = 20  # a task writes without pauses, so batches fill within this time
BATCH_BYTES: Final = 128 << 10
SLICE_ROWS: Final = 1024  # converted to Python objects at a time
STRING_OR_BINARY: Final = (StringType(), BinaryType())
COLUMNS: Final = {
    "key": "string or binary",
    "value": "string or binary",
    "topic": "string",
    "partition": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


@dataclass
class TaskResult(WriterCommitMessage):
    """The number of records that one task wrote."""

    records: int


class RotaWriter(Shipped, DataSourceArrowWriter):
    """A batch: `df.write.format("rota")`. Raises OptionError for columns that a record does not have."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task. Raises DeliveryFailed, KafkaError, OptionError."""
        return write(iterator, self._options)


class RotaStreamWriter(Shipped, DataSourceStreamArrowWriter):
    """A stream: `df.writeStream.format("rota")`. As RotaWriter, for each micro-batch."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options, self._schema = options, schema

    def begin(self) -> None:
        """Prepare a micro-batch on the driver, before its tasks. Raises KafkaError."""
        if self._options.transactions is not None:
            begin(settings_of(self._options), self._options.transactions)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one task of a micro-batch. Raises DeliveryFailed, KafkaError, OptionError."""
        batches = iterator if HAS_STREAM_ARROW_WRITER else to_batches(iterator, self._schema)
        if self._options.transactions is not None:
            return prepare(batches, self._options, TaskAttempt.of_stream())
        return write(batches, self._options)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit the micro-batch, on the driver. Raises as Committer does."""
        if self._options.transactions is not None:
            commit(messages, batchId, settings_of(self._options), self._options.transactions)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Undo a micro-batch whose job or commit has failed, on the driver; what is decided is committed."""
        if self._options.transactions is not None:
            abort(messages, batchId, settings_of(self._options), self._options.transactions)


def to_batches(rows: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Rows, which PySpark 4.0 has here, as Arrow batches."""
    kinds = to_arrow_schema(schema)
    while part := list(islice(rows, SLICE_ROWS)):
        columns = zip(*part, strict=True)
        arrays = [pa.array(column, kind.type) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=kinds)


def check_columns(options: WriteOptions, schema: StructType) -> None:
    """Raises OptionError with the name of the column and the expected type."""
    kinds = {field.name: field.dataType for field in schema}
    if "value" not in kinds:
        raise OptionError("columns", ", ".join(kinds), "at least value, a string or binary")
    for name, kind in kinds.items():
        if name not in COLUMNS:
            raise OptionError("columns", name, f"among {', '.join(COLUMNS)}; drop it, or move it into value")
        if not _fits(name, kind):
            raise OptionError(f"column {name}", kind.simpleString(), COLUMNS[name])
    if options.topic is None and "topic" not in kinds:
        raise OptionError("topic", None, "given, as an option or as a column")


def _fits(name: str, kind: DataType) -> bool:
    match name:
        case "key" | "value":
            return kind in STRING_OR_BINARY
        case "topic":
            return kind == StringType()
        case "partition":
            return kind == IntegerType()
    return (
        isinstance(kind, ArrayType)
        and isinstance(kind.elementType, StructType)
        and [(part.name, part.dataType) for part in kind.elementType]
        == [("key", StringType()), ("value", BinaryType())]
    )


def write(batches: Iterator[pa.RecordBatch], options: WriteOptions) -> TaskResult:
    """Write all rows of a task; returns when they are acknowledged."""
    return asyncio.run(_write(batches, options))


async def _write(batches: Iterator[pa.RecordBatch], options: WriteOptions) -> TaskResult:
    async with Producer(ProducerConfig.from_properties(settings_of(options))) as producer:
        return TaskResult(await send_all(producer, batches, options))


def settings_of(options: WriteOptions) -> dict[str, str]:
    """The settings of a task's producer, by Kafka's names."""
    return {"linger.ms": str(LINGER_MS), "batch.size": str(BATCH_BYTES), **options.client}


async def send_all(producer: Producer, batches: Iterator[pa.RecordBatch], options: WriteOptions) -> int:
    """Send all rows; return their number when they are acknowledged. Raises DeliveryFailed, KafkaError."""
    count = 0
    pending: deque[Delivery] = deque()  # the last record of each slice, to notice a failure early
    # in a thread, so that the producer sends while Spark computes the next batch
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        for start in range(0, batch.num_rows, SLICE_ROWS):
            part = batch.slice(start, SLICE_ROWS)
            pending.append(await _send(producer, part, options))
            while pending and pending[0].done():
                pending.popleft().result()
        count += batch.num_rows
    await producer.flush()
    return count


def prepare(batches: Iterator[pa.RecordBatch], options: WriteOptions, attempt: TaskAttempt) -> PreparedTask:
    """Write all rows of a task in a transaction that the driver ends."""
    assert options.transactions is not None
    call = write_prepared(
        attempt, settings_of(options), options.transactions, lambda producer: send_all(producer, batches, options)
    )
    return asyncio.run(call)


async def _send(producer: Producer, batch: pa.RecordBatch, options: WriteOptions) -> Delivery:
    """Send the rows, at least one; return the Delivery of the last record."""
    last = None
    columns = set(batch.schema.names)
    if not options.include_headers:
        columns.discard("headers")
    if options.topic is not None and columns <= {"key", "value", "topic"}:
        keys = _bytes(batch.column("key")) if "key" in columns else None
        last = await producer.send_rows(options.topic, _bytes(batch.column("value")), keys)
    else:
        for topic, key, value, partition, headers in _rows(batch, options):
            last = await producer.send(topic, value, key, partition=partition, headers=headers)
    assert last is not None
    return last


def _rows(batch: pa.RecordBatch, options: WriteOptions) -> Iterator[tuple[Any, ...]]:
    """(topic, key, value, partition, headers) of each row. Raises OptionError for a row without a topic."""
    nulls = [None] * batch.num_rows
    columns = {name: batch.column(name) for name in batch.schema.names}
    topics = [options.topic] * batch.num_rows if options.topic is not None else columns["topic"].to_pylist()
    if options.topic is None and None in topics:
        raise OptionError("column topic", None, "a topic in every row, or the option topic for all")
    keys, values = (_bytes(columns[name]) if name in columns else nulls for name in ("key", "value"))
    partitions = columns["partition"].to_pylist() if "partition" in columns else nulls
    headers: list[Headers] = [()] * batch.num_rows
    if options.include_headers and "headers" in columns:
        headers = _headers(columns["headers"])
    return zip(topics, keys, values, partitions, headers, strict=True)


def _bytes(column: pa.Array) -> list[bytes | None]:
    """Strings as UTF-8, without a copy of the buffers."""
    values: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return values


def _headers(column: pa.ListArray) -> list[Headers]:
    """The headers of each row, empty for null. Raises OptionError for a header without a name."""
    names, values = (part.to_pylist() for part in column.flatten().flatten())
    if None in names:
        raise OptionError("column headers", None, "a name (key) in every header")
    pairs = zip(names, values, strict=True)
    return [tuple(islice(pairs, size or 0)) for size in column.value_lengths().to_pylist()]
