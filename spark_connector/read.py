"""The work of a task: fetch the offsets of one input partition and decode them into Arrow batches.

Laws
    The rows are the records with offsets start to end - 1 that a consumer of this isolation level may see, in order.
    The next fetch is in flight while Spark processes the last batch.
    A task holds at most two fetch responses and one Arrow batch, whatever the length of the range.
    Offsets that are missing from the log, or whose topic was deleted and created again, are data loss: DataLost, or
    with failOnDataLoss=false a warning and the records that exist. A high watermark that is behind is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import Final

import pyarrow as pa

from rota.client.config import ConsumerConfig
from rota.client.consumer.aborted import Aborted
from rota.client.consumer.reader import FetchedRaw, PartitionReader
from rota.client.errors import CorruptRecords, OffsetOutOfRange
from rota.client.log import logger
from rota.client.types import TopicPartition
from rota.protocol.records.batch import BATCH_HEADER_BYTES, CODEC_BITS, CONTROL_BIT, BatchHeader, check_batch, headers
from rota.protocol.records.codecs import decompress
from rota.protocol.records.columns import Columns
from rota.protocol.records.errors import CorruptBatch
from rota.spark_connector.arrow import record_batch
from rota.spark_connector.errors import REMEDY, DataLost
from rota.spark_connector.high_watermark import HighWatermarkWait, is_log_continuous
from rota.spark_connector.options import ReadOptions
from rota.spark_connector.plan import KafkaInputPartition, Planned, parts_of
from rota.spark_connector.schema import arrow_schema
from rota.spark_connector.task_clients import POOL, TaskClient, TaskReader

BATCH_BYTES: Final = 4 << 20  # of an Arrow batch, about
BATCH_ROWS: Final = 65_536
FETCH_BYTES: Final = 8 << 20
RECORD_BYTES: Final = 1024  # the assumed size of a record before the first fetch
SLACK_BYTES: Final = 64 << 10
CARRIED_BYTES: Final = 256 << 10  # rows over more fetched bytes than this are not joined with those of the next fetch
SOURCE_BYTES: Final = 512 << 20  # of fetched and decompressed bytes in one Arrow batch
Response = tuple[int, FetchedRaw]  # with its fetch offset
_log = logger("rota.spark")


def read(planned: Planned, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of an input partition. Raises DataLost, HighWatermarkBehind, KafkaError."""
    with POOL.client(options.client) as client:
        for topic, parts in groupby(parts_of(planned), key=lambda part: part.offsets.topic):
            reader = client.reader(topic)
            for part in parts:
                yield from _read_range(part, options, client, reader)


def _read_range(
    partition: KafkaInputPartition, options: ReadOptions, client: TaskClient, reader: TaskReader
) -> Iterator[pa.RecordBatch]:
    fetcher = RangeFetcher(partition, options, reader)
    try:
        yield from decode(partition, options, iter(lambda: client.run(fetcher.next()), None))
    finally:
        client.run(fetcher.close())


def decode(
    partition: KafkaInputPartition, options: ReadOptions, responses: Iterable[Response]
) -> Iterator[pa.RecordBatch]:
    """The rows of fetch responses that cover an input partition. Raises CorruptRecords."""
    offsets, schema = partition.offsets, arrow_schema(include_headers=options.include_headers)
    config = consumer_config(options)
    columns = Columns(options.include_headers)
    for offset, fetched in responses:
        decoder = FetchDecoder(offset, fetched, offsets.end, config)
        while _fill(decoder, columns, offsets.topic_partition) or columns.source_bytes > CARRIED_BYTES:
            yield record_batch(offsets.topic, offsets.partition, columns, schema)
            columns = Columns(options.include_headers)
    if columns.count:
        yield record_batch(offsets.topic, offsets.partition, columns, schema)


def _fill(decoder: FetchDecoder, columns: Columns, partition: TopicPartition) -> bool:
    """As `FetchDecoder.fill`. Raises CorruptRecords, which names the partition and the offset."""
    try:
        return decoder.fill(columns)
    except CorruptBatch as error:
        at = decoder.offset
        message = f"{partition} at offset {at}: {error}; to go on without this batch, read from an offset behind it"
        raise CorruptRecords(message, partition, at) from error


class RangeFetcher:
    """The fetch responses that cover a range, fetched one ahead."""

    def __init__(
        self,
        partition: KafkaInputPartition,
        options: ReadOptions,
        reader: PartitionReader,
        record_bytes: int = RECORD_BYTES,
    ) -> None:
        self.config = consumer_config(options)
        self._fetch_bytes = fetch_bytes(options.client, self.config)
        self._reader = reader
        self._range, self._topic_id = partition.offsets, partition.topic_id
        self._partition = partition.offsets.topic_partition
        self._fail_on_data_loss = options.fail_on_data_loss
        self._offset = self._range.start
        self._record_bytes = record_bytes
        self._ahead: asyncio.Task[Response | None] | None = None

    async def close(self) -> None:
        """Cancel the fetch that is in flight."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)

    async def next(self) -> Response | None:
        """The next response with batches, and its fetch offset; None after the end of the range.

        Raises DataLost, HighWatermarkBehind, KafkaError.
        """
        fetched = await (self._ahead or self._fetch())
        self._ahead = asyncio.create_task(self._fetch())
        await asyncio.sleep(0)  # send its request before Spark's code runs
        return fetched

    async def _fetch(self) -> Response | None:
        wait = HighWatermarkWait(self.config)
        while self._offset < self._range.end:
            try:
                fetched = await self._reader.fetch_raw(self._partition, self._offset, max_bytes=self._max_bytes)
            except OffsetOutOfRange as error:
                await self._skip_lost(error)
                continue
            if self._is_recreated():
                self._skip_recreated()
                return None
            if fetched.next_offset > self._offset:
                offset, self._offset = self._offset, fetched.next_offset
                self._record_bytes = len(fetched.batches) // (self._offset - offset) + 1
                return offset, fetched
            mark = self._readable_end(fetched)
            if not 0 <= mark <= self._offset or await is_log_continuous(self._reader, self._partition, mark):
                await wait.pause(self._partition, mark, self._range.end)
            else:
                await self._skip_lost(None)
        return None

    @property
    def _max_bytes(self) -> int:
        """About the size of the rest of the range, so that a short range does not fetch many records."""
        return min(self._fetch_bytes, SLACK_BYTES + self._record_bytes * (self._range.end - self._offset))

    def _readable_end(self, fetched: FetchedRaw) -> int:
        """The last stable offset for read_committed, else the high watermark."""
        is_committed = self.config.isolation_level == "read_committed"
        return fetched.last_stable_offset if is_committed else fetched.high_watermark

    async def _skip_lost(self, cause: OffsetOutOfRange | None) -> None:
        """Move past offsets that are not in the log. Raises DataLost when the query must not."""
        if self._is_recreated():
            self._skip_recreated()
            return
        first = await self._reader.offset_at(self._partition, -2)
        last = await self._reader.offset_at(self._partition, -1)
        missing = f"offsets {self._offset}-{self._range.end - 1} of {self._partition}; its log has {first}-{last - 1}"
        if self._fail_on_data_loss:
            raise DataLost(f"records that the query has to read are lost: {missing}. {REMEDY}") from cause
        _log.warning("Records that the query has to read are lost", missing=missing)
        self._offset = first if first > self._offset else self._range.end

    def _is_recreated(self) -> bool:
        topic_id = self._reader.topic_id(self._range.topic)
        return None not in (topic_id, self._topic_id) and topic_id != self._topic_id

    def _skip_recreated(self) -> None:
        """Leave out the range: its offsets belong to the deleted topic. Raises DataLost when the query must not."""
        missing = f"offsets {self._offset}-{self._range.end - 1} of {self._partition}"
        if self._fail_on_data_loss:
            raise DataLost(
                f"records that the query has to read are lost: {missing}; its topic was deleted and created again. "
                f"{REMEDY}"
            )
        _log.warning("The topic was deleted and created again while it was read", missing=missing)
        self._offset = self._range.end


class FetchDecoder:
    """Decodes the batches of one fetch response into columns. Records below `first` are left out: a broker answers with
    whole batches."""

    def __init__(self, first: int, fetched: FetchedRaw, end: int, config: ConsumerConfig) -> None:
        self._view = fetched.batches
        self._data, self._begin = underlying_bytes(fetched.batches)
        self._batches = headers(self._view)
        self._first, self._end = first, end
        self.offset = first  # of the batch that is decoded
        self._aborted = Aborted(fetched.aborted) if config.isolation_level == "read_committed" else None
        self._check_crcs = config.check_crcs

    def fill(self, columns: Columns) -> bool:
        """Add records. True when the columns are full, False when the response is used up. Raises CorruptBatch."""
        for position, header in self._batches:
            if header.base_offset >= self._end:
                return False
            self.offset = header.base_offset
            if self._check_crcs:
                check_batch(self._view, position, header, compacted=True)
            if (self._aborted is None and not header.attributes & CONTROL_BIT) or self._is_visible(position, header):
                self._add(columns, position, header)
                if is_full(columns):
                    return True
        return False

    def _is_visible(self, position: int, header: BatchHeader) -> bool:
        if header.is_control:
            if self._aborted is not None:
                self._aborted.marked(header, bytes(self._view[position : position + header.size_bytes]))
            return False
        return self._aborted is None or not self._aborted.is_aborted(header)

    def _add(self, columns: Columns, position: int, header: BatchHeader) -> None:
        start, end = position + BATCH_HEADER_BYTES, position + header.size_bytes
        if not header.attributes & CODEC_BITS and columns.is_from(self._data):
            data, start, end = self._data, start + self._begin, end + self._begin
        else:
            data = decompress(header.codec, self._view[start:end])
            start, end = 0, len(data)
        columns.add_batch(
            data,
            start,
            end,
            header.count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if header.is_log_append_time else None,
            self._first,
            self._end,
        )


def consumer_config(options: ReadOptions) -> ConsumerConfig:
    """Of the settings of a query, which are checked once."""
    return _config(tuple(options.client.items()))


@lru_cache(maxsize=4)
def _config(settings: tuple[tuple[str, str], ...]) -> ConsumerConfig:
    return ConsumerConfig.from_properties(dict(settings))


def underlying_bytes(view: memoryview) -> tuple[bytes, int]:
    """The bytes object under a view and the view's position in it, without a copy when there is one."""
    if not isinstance(view.obj, bytes):
        return bytes(view), 0
    return view.obj, pa.py_buffer(view).address - pa.py_buffer(view.obj).address


def is_full(columns: Columns) -> bool:
    """Whether the columns become an Arrow batch before more is added."""
    is_large = columns.size_bytes >= BATCH_BYTES or columns.source_bytes >= SOURCE_BYTES
    return is_large or columns.count >= BATCH_ROWS


def fetch_bytes(client: Mapping[str, str], config: ConsumerConfig) -> int:
    """The size of one fetch: the user's setting, or more than a consumer's default, as a task reads one partition."""
    return config.max_partition_fetch_bytes if "max.partition.fetch.bytes" in client else FETCH_BYTES
