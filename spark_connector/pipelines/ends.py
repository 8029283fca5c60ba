"""Where the logs ended at the end of a window: asked from the brokers, by time.

Laws
    The end of a log at a time is its first offset that is as young, or younger; of a time to come, or where no record
    is so young, the end that it has now.
    A partition that is gone, or has no leader, has none: it is left out, and the others are answered all the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Final

from rota.client import LATEST, Admin, AdminFailed, ErrorCode, TopicPartition
from rota.client.log import logger
from rota.client.types import OffsetAndTimestamp
from rota.spark_connector.pipelines.lag import At

TIMES_AT_ONCE_MAX: Final = 8
_log = logger("rota.spark")


def end_offsets(client: Mapping[str, str], wanted: Iterable[At]) -> dict[At, int]:
    """`client`: settings by Kafka's names. What has no end is left out. Raises Unreachable."""
    by_time: dict[int, list[TopicPartition]] = {}
    for at_ms, partition in wanted:
        by_time.setdefault(at_ms, []).append(partition)
    return asyncio.run(_ask(client, by_time)) if by_time else {}


async def _ask(client: Mapping[str, str], by_time: Mapping[int, list[TopicPartition]]) -> dict[At, int]:
    now_ms = time.time() * 1000
    room = asyncio.Semaphore(TIMES_AT_ONCE_MAX)
    async with Admin.from_properties(client) as admin:
        ends = await _listed(admin, {one: LATEST for partitions in by_time.values() for one in partitions})

        async def at(at_ms: int, partitions: list[TopicPartition]) -> dict[At, int]:
            there = [one for one in partitions if one in ends]
            async with room:
                found = await _listed(admin, dict.fromkeys(there, at_ms)) if at_ms <= now_ms and there else {}
            return {(at_ms, one): found.get(one, ends[one]) for one in there}

        answers = await asyncio.gather(*(at(*one) for one in by_time.items()))
    return {at: offset for answer in answers for at, offset in answer.items()}


async def _listed(admin: Admin, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    try:
        found: Mapping[TopicPartition, OffsetAndTimestamp | None] = await admin.list_offsets(times)
    except AdminFailed as partly:
        found = partly.done
        if partly.codes != {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            _log.warning("Some logs have no end that could be asked: their lag is unknown", error=str(partly))
    return {one: at.offset for one, at in found.items() if at is not None}
