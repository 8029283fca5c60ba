"""Wait for a high watermark that is behind an offset which a query has to reach.

A new leader has every committed record, but it shows consumers its old high watermark until its followers have fetched.
For read_committed the last stable offset takes the place of the high watermark.

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
    """One bounded wait. `pause` after each answer that shows a high watermark which is too low."""

    def __init__(self, config: ClientConfig) -> None:
        self._timeout_ms = config.default_api_timeout_ms
        self._deadline_s: float | None = None

    def reset(self) -> None:
        """The query has made progress: the next pause starts a new wait."""
        self._deadline_s = None

    async def pause(self, partition: TopicPartition, mark: int, end: int) -> None:
        """Sleep POLL_MS. Raises HighWatermarkBehind when the time is over."""
        now_s = asyncio.get_running_loop().time()
        if self._deadline_s is None:
            self._deadline_s = now_s + self._timeout_ms / 1000
        if now_s >= self._deadline_s:
            raise HighWatermarkBehind(partition, mark, end, self._timeout_ms)
        await asyncio.sleep(POLL_MS / 1000)


async def log_goes_beyond(reader: PartitionReader, partition: TopicPartition, mark: int) -> bool:
    """Whether the leader's log has records at or after `mark`, visible or not. Raises KafkaError.

    A leader answers a fetch at any offset up to its log end offset and refuses one beyond with OFFSET_OUT_OF_RANGE.
    """
    try:
        await reader.fetch_raw(partition, mark + 1, max_bytes=1, max_wait_ms=0)
    except OffsetOutOfRange:
        return False
    return True


async def lagging(
    config: ClientConfig, marks: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The partitions whose high watermark in `marks` is below `ends` though their log goes on, with their marks."""
    behind = {partition: mark for partition, mark in marks.items() if mark < ends.get(partition, mark)}
    if not behind:
        return {}
    async with PartitionReader(config) as reader:
        return {partition: mark for partition, mark in behind.items() if await log_goes_beyond(reader, partition, mark)}
