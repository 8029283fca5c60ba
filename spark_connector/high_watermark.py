"""Wait for a high watermark that is below an offset which a query has to reach.

A new leader has every committed record, but until its followers have fetched from it, consumers see its old high
watermark. For read_committed the last stable offset takes the place of the high watermark.

Laws
    A high watermark below a planned end is data loss only when the leader's log ends at that high watermark.
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


async def log_continues(reader: PartitionReader, partition: TopicPartition, mark: int) -> bool:
    """Whether the leader's log has records at or after `mark`, visible or not. Raises KafkaError.

    A leader answers a fetch at any offset up to its log end offset and refuses a higher one with OFFSET_OUT_OF_RANGE.
    """
    try:
        await reader.fetch_raw(partition, mark + 1, max_bytes=1, max_wait_ms=0)
    except OffsetOutOfRange:
        return False
    return True


async def lagging_partitions(
    config: ClientConfig, marks: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The partitions, with their high watermarks, that are below `ends` in `marks` though their log continues."""
    behind = {partition: mark for partition, mark in marks.items() if mark < ends.get(partition, mark)}
    if not behind:
        return {}
    async with PartitionReader(config) as reader:
        return {partition: mark for partition, mark in behind.items() if await log_continues(reader, partition, mark)}
