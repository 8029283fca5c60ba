"""What a task does: one piece of a partition, fetched and decoded into Arrow batches.

Laws
    The rows are the records with offsets start … end-1 that a consumer of this isolation level may see, in order.
    The next fetch is under way while Spark works on the last batch.
    A task holds at most two answers and one Arrow batch, whatever the length of the piece.
    Offsets that are gone when the task comes are lost data: an error that says which, or, with failOnDataLoss=false, a
    warning and what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from rota.client.config import ConsumerConfig
from rota.client.consumer.aborted import Aborted
from rota.client.consumer.reader import FetchedRaw, PartitionReader
from rota.client.errors import OffsetOutOfRange
from rota.client.log import logger
from rota.protocol.records.batch import BATCH_HEADER_BYTES, CODEC_BITS, CONTROL_BIT, BatchHeader, check_batch, headers
from rota.protocol.records.codecs import decompress
from rota.protocol.records.columns import Columns
from rota.spark_connector.arrow import record_batch
from rota.spark_connector.errors import DataLost
from rota.spark_connector.high_watermark import HighWatermarkWait, log_goes_beyond
from rota.spark_connector.offset_bounds import REMEDY
from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.options import ReadOptions
from rota.spark_connector.schema import arrow_schema

BATCH_BYTES: Final = 4 << 20  # of an Arrow batch, about
BATCH_ROWS: Final = 65_536
FETCH_BYTES: Final = 8 << 20
RECORD_BYTES: Final = 1024  # as long as nothing is known of a piece's records
SLACK_BYTES: Final = 64 << 10
CARRIED_BYTES: Final = 256 << 10  # what is left of an answer goes on by itself if copying it would cost more than that
SOURCE_BYTES: Final = 512 << 20  # a batch that is decompressed, or a long answer, may come on top
_log = logger("rota.spark")


def read(piece: OffsetRange, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of a piece. Raises DataLost, KafkaError."""
    schema = arrow_schema(include_headers=options.include_headers)
    with asyncio.Runner() as runner:
        fetches = Fetches(piece, options)
        runner.run(fetches.start())
        try:
            columns = Columns(options.include_headers)
            while (answer := runner.run(fetches.next())) is not None:
                decoded = Decoding(*answer, piece, options)
                while decoded.into(columns) or columns.source_bytes > CARRIED_BYTES:
                    yield record_batch(piece.topic, piece.partition, columns, schema)
                    columns = Columns(options.include_headers)
            if columns.count:
                yield record_batch(piece.topic, piece.partition, columns, schema)
        finally:
            runner.run(fetches.close())


class Fetches:
    """The answers that cover a piece, one ahead."""

    def __init__(self, piece: OffsetRange, options: ReadOptions) -> None:
        config = ConsumerConfig.from_properties(options.client)
        self._bytes = fetch_bytes(options.client, config)
        self._reader = PartitionReader(config, isolation_level=config.isolation_level)
        self._config, self._piece, self._options = config, piece, options
        self._offset = piece.start
        self._record_bytes = RECORD_BYTES
        self._ahead: asyncio.Task[tuple[int, FetchedRaw] | None] | None = None

    async def start(self) -> None:
        await self._reader.__aenter__()

    async def close(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)
        await self._reader.__aexit__(None, None, None)

    async def next(self) -> tuple[int, FetchedRaw] | None:
        """The next answer with batches, and from which offset on it counts; None behind the end of the piece.

        Raises DataLost, KafkaError.
        """
        found = await (self._ahead or self._fetch())
        self._ahead = asyncio.create_task(self._fetch())
        await asyncio.sleep(0)  # its request is written before Spark has the thread
        return found

    async def _fetch(self) -> tuple[int, FetchedRaw] | None:
        wait = HighWatermarkWait(self._config)
        while self._offset < self._piece.end:
            try:
                found = await self._reader.fetch_raw(self._piece.of, self._offset, max_bytes=self._wanted_bytes)
            except OffsetOutOfRange as gone:
                await self._lost(gone)
                continue
            if found.next_offset > self._offset:
                asked, self._offset = self._offset, found.next_offset
                self._record_bytes = len(found.batches) // (self._offset - asked) + 1
                return asked, found
            mark = self._readable_end(found)
            if not 0 <= mark <= self._offset or await log_goes_beyond(self._reader, self._piece.of, mark):
                await wait.pause(self._piece.of, mark, self._piece.end)
            else:
                await self._lost(None)
        return None

    def _readable_end(self, found: FetchedRaw) -> int:
        """The last stable offset for read_committed, else the high watermark."""
        is_committed = self._config.isolation_level == "read_committed"
        return found.last_stable_offset if is_committed else found.high_watermark

    @property
    def _wanted_bytes(self) -> int:
        """About what is left of the piece: who reads few records does not fetch many."""
        return min(self._bytes, SLACK_BYTES + self._record_bytes * (self._piece.end - self._offset))

    async def _lost(self, gone: OffsetOutOfRange | None) -> None:
        """Records that the plan counted on are not there: go on behind them, or say so."""
        first, last = await self._reader.offset_at(self._piece.of, -2), await self._reader.offset_at(self._piece.of, -1)
        missing = f"offsets {self._offset}-{self._piece.end - 1} of {self._piece.of}; its log has {first}-{last - 1}"
        if self._options.fail_on_data_loss:
            raise DataLost(f"records are gone that the query had to read: {missing}. {REMEDY}") from gone
        _log.warning("Records are gone that the query had to read", missing=missing)
        self._offset = first if first > self._offset else self._piece.end


class Decoding:
    """The batches of one answer, put into columns until those are large enough. What lies before `first` was not asked
    for: a batch is answered whole."""

    def __init__(self, first: int, answer: FetchedRaw, piece: OffsetRange, options: ReadOptions) -> None:
        self._view = answer.batches
        self._data, self._begin = underlying(answer.batches)
        self._batches = headers(self._view)
        self._first, self._piece = first, piece
        committed = options.client.get("isolation.level") == "read_committed"
        self._aborted = Aborted(answer.aborted) if committed else None
        self._checks = options.client.get("check.crcs", "true").lower() != "false"

    def into(self, columns: Columns) -> bool:
        """True when the columns are full; False when the answer is used up. Raises CorruptBatch."""
        for position, header in self._batches:
            if header.base_offset >= self._piece.end:
                return False
            if self._checks:
                check_batch(self._view, position, header, compacted=True)
            if (self._aborted is None and not header.attributes & CONTROL_BIT) or self._is_seen(position, header):
                self._add(columns, position, header)
                if is_full(columns):
                    return True
        return False

    def _is_seen(self, position: int, header: BatchHeader) -> bool:
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
            self._piece.end,
        )


def underlying(view: memoryview) -> tuple[bytes, int]:
    """The bytes that it is a view of, and where in them it begins: not a copy."""
    if not isinstance(view.obj, bytes):
        return bytes(view), 0
    return view.obj, pa.py_buffer(view).address - pa.py_buffer(view.obj).address


def is_full(columns: Columns) -> bool:
    """Whether they are to be handed on before more is added."""
    wide = columns.size_bytes >= BATCH_BYTES or columns.source_bytes >= SOURCE_BYTES
    return wide or columns.count >= BATCH_ROWS


def fetch_bytes(client: Mapping[str, str], config: ConsumerConfig) -> int:
    """How much one fetch may bring: what the user says, or more than a consumer asks for, as nobody shares the task."""
    return config.max_partition_fetch_bytes if "max.partition.fetch.bytes" in client else FETCH_BYTES
