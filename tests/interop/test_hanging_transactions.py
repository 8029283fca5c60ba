"""A transaction that is open in a partition and that no coordinator knows: `kafka-transactions` finds and aborts it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.interop.java_kit import needs_java
from tests.interop.kit import create_topic
from tests.interop.test_kafka_transactions import begin, tool, transactional
from tests.interop.test_transactions import values
from tests.unit.coordinator.api.data_world import batch

from rota.testing.host import Host

pytestmark = needs_java
PRODUCER_ID, EPOCH = 4_242, 3
MINUTE_MS = 60_000


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = Host()
    await host.start()
    yield host
    await host.stop()


def leave_open(host: Host, topic: str, *, age_ms: int) -> None:
    """Append a record in a transaction, as a log has it whose transaction coordinator has lost its records."""
    partition = host.get().broker.partitions.get(topic, 0)
    assert partition is not None
    now_ms = time.time_ns() // 1_000_000
    records = batch(
        b"hanging",
        timestamp=now_ms - age_ms,
        producer_id=PRODUCER_ID,
        producer_epoch=EPOCH,
        base_sequence=0,
        is_transactional=True,
    )
    verification = partition.log.producers.begin_verification(PRODUCER_ID, EPOCH, 0, now_ms, is_v2=False)
    partition.append(records, now_ms, verification)


async def rows(host: Host, *arguments: str) -> list[dict[str, str]]:
    """The rows that the tool prints, by the names of their columns."""
    header, *found = [row for row in await asyncio.to_thread(tool, host.bootstrap, *arguments) if row]
    return [dict(zip(header, row, strict=False)) for row in found]


async def test_a_transaction_that_no_coordinator_knows_is_found_and_aborted(host: Host) -> None:
    topic = await asyncio.to_thread(create_topic, host.bootstrap, 1)
    known = await asyncio.to_thread(transactional, host.bootstrap, "known")
    await asyncio.to_thread(begin, known, topic, b"known")
    leave_open(host, topic, age_ms=20 * MINUTE_MS)
    find: tuple[Any, ...] = ("find-hanging", "--topic", topic)
    [found] = await rows(host, *find)
    assert (found["Topic"], found["Partition"], found["ProducerId"]) == (topic, "0", str(PRODUCER_ID))
    assert (found["ProducerEpoch"], found["StartOffset"]) == (str(EPOCH), "1")
    assert await rows(host, *find, "--max-transaction-timeout", "30") == [], "it may still be running"
    await asyncio.to_thread(known.commit_transaction, 10)
    assert await asyncio.to_thread(values, host.bootstrap, topic, "read_committed") == [b"known"]
    where = ("--topic", topic, "--partition", "0")
    await asyncio.to_thread(tool, host.bootstrap, "abort", *where, "--start-offset", found["StartOffset"])
    assert await rows(host, *find) == []
    described = {row["ProducerId"]: row for row in await rows(host, "describe-producers", *where)}
    assert described[str(PRODUCER_ID)]["CurrentTransactionStartOffset"] == "None"
    partition = host.get().broker.partitions.get(topic, 0)
    assert partition is not None
    assert partition.last_stable_offset == partition.high_watermark == 4, "two records, two markers"
