"""Wait for a high watermark that is below an offset which a query has to reach.

A new leader has every committed record, but until its followers have fetched from it, consumers see its old high
watermark. For read_committed the last stable offset takes the place of the high watermark.

Laws
    A high watermark below a planned end is data loss only when the leader's log ended before that offset, and every
    record that it had then is below the high watermark. A log that grows meanwhile does not prolong the wait.
    Each wait ends after kafka.default.api.timeout.ms with HighWatermarkBehind, also under failOnDataLoss=false: the
    records exist, and skipping them would lose them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from rota.client.config import ClientConfig
from rota.client.consumer.reader import PartitionReader
from rota.client.errors import OffsetOutOfRange
from rota.client.types import TopicPartition
from rota.spark_connector.errors import HighWatermarkBehind

POLL_MS: Final = 100


class HighWatermarkWait:
    """One wait with a deadline, which begins with the first `pause`."""

    def __init__(self, config: ClientConfig) -> None:
        self._timeout_ms = config.default_api_timeout_ms
        self._deadline_s: float | None = None

    async def pause(self, partition: TopicPartition, mark: int, end: int) -> None:
        """Sleep POLL_MS. Raises HighWatermarkBehind after the deadline."""
        now_s = asyncio.get_running_loop().time()
        if self._deadline_s is None:
            self._deadline_s = now_s + self._timeout_ms / 1000
        if now_s >= self._deadline_s:
            raise HighWatermarkBehind(partition, mark, end, self._timeout_ms)
        await asyncio.sleep(POLL_MS / 1000)


async def is_log_continuous(reader: PartitionReader, partition: TopicPartition, mark: int) -> bool:
    """Whether the leader's log has records at or after `mark`, visible or not. Raises KafkaError."""
    return await _log_reaches(reader, partition, mark + 1)


async def existing_ends(
    config: ClientConfig, marks: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """`ends`, lowered to the log end offset of the leader where the high watermark in `marks` is behind and the log
    ends earlier. Raises KafkaError."""
    behind = [partition for partition, mark in marks.items() if mark < ends.get(partition, mark)]
    if not behind:
        return dict(ends)
    async with PartitionReader(config) as reader:
        lowered = {
            partition: await _log_end_up_to(reader, partition, marks[partition], ends[partition])
            for partition in behind
        }
    return {**ends, **lowered}


async def _log_end_up_to(reader: PartitionReader, partition: TopicPartition, low: int, end: int) -> int:
    """The log end offset, `end` where the log goes on behind it. The log reaches `low`."""
    if await _log_reaches(reader, partition, end):
        return end
    middle = low + 1  # most logs that are shorter end at their high watermark
    while low + 1 < end:
        if await _log_reaches(reader, partition, middle):
            low = middle
        else:
            end = middle
        middle = (low + end) // 2
    return low


async def _log_reaches(reader: PartitionReader, partition: TopicPartition, offset: int) -> bool:
    """A leader answers a fetch at any offset up to its log end offset and refuses a higher one with
    OFFSET_OUT_OF_RANGE."""
    try:
        await reader.fetch_raw(partition, offset, max_bytes=1, max_wait_ms=0)
    except OffsetOutOfRange:
        return False
    return True
