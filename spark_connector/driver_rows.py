"""A small micro-batch is read on the driver: Spark gets its rows with the plan, and no task has to run Python.

Spark takes rows with a plan from its own wrapper of a SimpleDataSourceStreamReader. It finds out by `isinstance` after
each call of `partitions`, and then calls `getCache`: a reader that has rows says for so long that it is one.

Laws
    The rows are those that a task would read, by the same code. The plan is one input partition: a task reads it when
    Spark has lost the rows.
    What the driver cannot read within TIMEOUT_S, for whatever reason, the tasks read: errors and waits are theirs.
    The driver hands over BYTES_MAX at most. After records that are too large it tries again some micro-batches later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from rota.client.consumer.reader import PartitionReader
from rota.client.log import logger
from rota.spark_connector.broker import DriverClient
from rota.spark_connector.options import ReadOptions
from rota.spark_connector.plan import KafkaInputPartition, Planned, parts_of, records_min
from rota.spark_connector.read import RECORD_BYTES, RangeFetcher, Response, decode
from rota.spark_connector.spark_api import ROWS_WITH_PLAN

RECORDS_MAX: Final = 2_000  # of more a Python task costs less than the rows on their way through Spark's blocks
BYTES_MAX: Final = 2 << 20
RANGES_AT_ONCE: Final = 32
TIMEOUT_S: Final = 5.0
_log = logger("rota.spark")


class DriverRows:
    """The base of a stream's reader. `keep_small` after each plan; Spark takes the rows right after it."""

    _rows: list[pa.RecordBatch] | None = None
    _record_bytes = 0  # of the micro-batch that was fetched last; less with each one that was too large to try

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        return type(self) if self._rows is None or ROWS_WITH_PLAN is None else ROWS_WITH_PLAN

    def getCache(self, start: object, end: object) -> Iterator[pa.RecordBatch]:  # Spark's name
        """The rows of the plan, once."""
        rows, self._rows = self._rows, None
        return iter(rows or ())

    def keep_small(self, planned: Sequence[Planned], options: ReadOptions, client: DriverClient) -> None:
        """Read the rows of a plan that is small."""
        self._rows = None
        if ROWS_WITH_PLAN is None or len(planned) != 1:
            return
        parts = parts_of(planned[0])
        count = sum(part.offsets.length for part in parts)
        if count > min(RECORDS_MAX, records_min(options)):
            return
        if count * self._record_bytes > BYTES_MAX:
            self._record_bytes -= self._record_bytes // 16
            return
        try:
            self._rows = self._read(parts, options, client)
        except* Exception as errors:  # noqa: BLE001 - whatever it is, a task raises it or reads the rows
            _log.info("A small micro-batch is left to a task", reason=repr(errors.exceptions[0]))

    def _read(
        self, parts: Sequence[KafkaInputPartition], options: ReadOptions, client: DriverClient
    ) -> list[pa.RecordBatch] | None:
        fetch = Fetch(options, self._record_bytes or RECORD_BYTES)
        fetched = client.run(lambda reader: fetch.all(parts, reader), {part.offsets.topic for part in parts})
        self._record_bytes = fetch.record_bytes
        if fetch.size_bytes > BYTES_MAX:
            return None
        found: list[pa.RecordBatch] = []
        for part, responses in zip(parts, fetched, strict=True):
            for batch in decode(part, options, responses):
                found.append(batch)
                if (size := sum(one.nbytes for one in found)) > BYTES_MAX:
                    self._record_bytes = size // sum(one.num_rows for one in found)
                    return None
        return found


class Fetch:
    """The fetch responses of several ranges, at once. It ends early when they are too large."""

    def __init__(self, options: ReadOptions, record_bytes: int) -> None:
        self.size_bytes, self.record_bytes = 0, record_bytes
        self._count = 0
        self._options = options
        self._turns = asyncio.Semaphore(RANGES_AT_ONCE)

    async def all(self, parts: Sequence[KafkaInputPartition], reader: PartitionReader) -> list[list[Response]]:
        """The responses of each range. Raises KafkaError, DataLost, TimeoutError."""
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._range(part, reader)) for part in parts]
        return [task.result() for task in tasks]

    async def _range(self, part: KafkaInputPartition, reader: PartitionReader) -> list[Response]:
        found: list[Response] = []
        async with self._turns:
            fetcher = RangeFetcher(part, self._options, reader, self.record_bytes)
            try:
                while self.size_bytes <= BYTES_MAX and (response := await fetcher.next()) is not None:
                    found.append(response)
                    self._add(response)
            finally:
                await fetcher.close()
        return found

    def _add(self, response: Response) -> None:
        offset, fetched = response
        self.size_bytes += len(fetched.batches)
        self._count += fetched.next_offset - offset
        self.record_bytes = self.size_bytes // self._count + 1
