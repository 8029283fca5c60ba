"""The log end offsets at the end of a window, listed from the brokers by time.

Laws
    The end of a log at a time is the offset of its first record of that time or later; without such a record, or for a
    time in the future, it is the current log end offset.
    A partition that does not exist or has no leader is left out of the result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from rota.client import (
    LATEST,
    Admin,
    AdminFailed,
    BrokerError,
    CorruptRecords,
    ErrorCode,
    OffsetOutOfRange,
    PartitionReader,
    TimedOut,
    TopicPartition,
)
from rota.client.log import logger
from rota.client.types import OffsetAndTimestamp
from rota.spark_connector.pipelines.lag import LogAtTime, UnreadOffset

TIMES_AT_ONCE_MAX: Final = 8
RECORD_TIMES_MAX: Final = 2_000  # of one micro-batch
RECORD_TIMES_S: Final = 30.0
_log = logger("rota.spark")


def end_offsets(client: Mapping[str, str], logs: Iterable[LogAtTime]) -> dict[LogAtTime, int]:
    """`client` has settings by Kafka's names. Logs without an end offset are left out. Raises Unreachable."""
    by_time: dict[int, list[TopicPartition]] = {}
    for at_ms, partition in logs:
        by_time.setdefault(at_ms, []).append(partition)
    return asyncio.run(_end_offsets(client, by_time)) if by_time else {}


async def _end_offsets(client: Mapping[str, str], by_time: Mapping[int, list[TopicPartition]]) -> dict[LogAtTime, int]:
    now_ms = time.time() * 1000
    room = asyncio.Semaphore(TIMES_AT_ONCE_MAX)
    async with Admin.from_properties(client) as admin:
        ends = await _list_offsets(
            admin, {partition: LATEST for partitions in by_time.values() for partition in partitions}
        )

        async def at(at_ms: int, partitions: list[TopicPartition]) -> dict[LogAtTime, int]:
            existing = [partition for partition in partitions if partition in ends]
            async with room:
                found = (
                    await _list_offsets(admin, dict.fromkeys(existing, at_ms)) if at_ms <= now_ms and existing else {}
                )
            return {(at_ms, partition): found.get(partition, ends[partition]) for partition in existing}

        results = await asyncio.gather(*(at(*item) for item in by_time.items()))
    return {at: offset for result in results for at, offset in result.items()}


def record_times(client: Mapping[str, str], offsets: Iterable[UnreadOffset]) -> dict[UnreadOffset, int]:
    """The timestamps in ms of the records at these offsets, at most RECORD_TIMES_MAX of them. Records that were lost,
    or that were not fetched within RECORD_TIMES_S, are left out. Raises Unreachable."""
    wanted = list(islice(offsets, RECORD_TIMES_MAX))
    return asyncio.run(_record_times(client, wanted)) if wanted else {}


async def _record_times(client: Mapping[str, str], wanted: list[UnreadOffset]) -> dict[UnreadOffset, int]:
    room, found = asyncio.Semaphore(TIMES_AT_ONCE_MAX), dict[UnreadOffset, int]()
    async with PartitionReader.from_properties(client) as reader:

        async def fetch(unread: UnreadOffset) -> None:
            async with room:
                try:
                    fetched = await reader.fetch(*unread, max_bytes=1, max_wait_ms=0)
                except (OffsetOutOfRange, BrokerError, CorruptRecords, TimedOut):
                    return  # unknown
            if fetched.records:
                found[unread] = fetched.records[0].timestamp

        fetches = [asyncio.create_task(fetch(unread)) for unread in wanted]
        _, late = await asyncio.wait(fetches, timeout=RECORD_TIMES_S)
        for each in late:
            each.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
    return found


async def _list_offsets(admin: Admin, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    try:
        found: Mapping[TopicPartition, OffsetAndTimestamp | None] = await admin.list_offsets(times)
    except AdminFailed as failed:
        found = failed.done
        if failed.codes != {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            _log.warning("The end offsets of some logs are unknown, and so is the lag", error=str(failed))
    return {partition: at.offset for partition, at in found.items() if at is not None}
