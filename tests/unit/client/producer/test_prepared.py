"""Transactions that another process ends, on a real broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from rota.client.config import ClientConfig, ProducerConfig
from rota.client.errors import IllegalUse, TimedOut, TransactionAborted
from rota.client.network.cluster import Cluster
from rota.client.producer.prepared import (
    PreparedTransaction,
    abort_prepared,
    commit_prepared,
    is_open,
    open_ids,
    open_transaction,
)
from rota.client.producer.producer import Producer
from rota.testing import running_broker

TOPIC = "t"


@pytest.fixture
def broker() -> Iterator[Any]:
    with running_broker() as running:
        yield running


@pytest.fixture
async def cluster(broker: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(ClientConfig(bootstrap_servers=broker.bootstrap_servers))
    await cluster.start()
    yield cluster
    await cluster.close()


async def prepare(broker: Any, name: str, *values: bytes) -> PreparedTransaction | None:
    config = ProducerConfig(bootstrap_servers=broker.bootstrap_servers, transactional_id=name)
    async with Producer(config) as producer:
        await producer.begin_transaction()
        for value in values:
            await producer.send(TOPIC, value)
        prepared = await producer.prepare_transaction()
        with pytest.raises(IllegalUse, match="prepared for another process"):
            await producer.commit_transaction()
        return prepared


async def test_it_survives_its_producer_and_is_committed_once(broker: Any, cluster: Cluster) -> None:
    prepared = await prepare(broker, "id", b"1")
    assert prepared is not None
    assert await is_open(cluster, prepared)
    assert await open_ids(cluster, "i") == ["id"]
    assert await open_ids(cluster, "other") == []
    for _ in range(3):
        await commit_prepared(cluster, prepared)
    assert not await is_open(cluster, prepared)
    assert await open_ids(cluster, "i") == []
    await abort_prepared(cluster, prepared)  # too late, and no error: it has ended
    await commit_prepared(cluster, prepared)


async def test_what_was_aborted_is_never_committed(broker: Any, cluster: Cluster) -> None:
    by_request, by_timeout, by_next = [await prepare(broker, name, b"1") for name in ("a", "b", "c")]
    assert by_request
    assert by_timeout
    assert by_next
    await abort_prepared(cluster, by_request)
    await abort_prepared(cluster, by_request)
    next_one = await prepare(broker, "c", b"2")
    assert next_one
    assert not await is_open(cluster, by_next)
    await commit_prepared(cluster, next_one)
    broker.advance(minutes=2)
    for prepared in (by_request, by_timeout, by_next):
        with pytest.raises(TransactionAborted, match=prepared.transactional_id):
            await commit_prepared(cluster, prepared)
    with pytest.raises(TransactionAborted, match="INVALID_PRODUCER_ID_MAPPING"):
        await commit_prepared(cluster, replace(by_request, transactional_id="unknown"))


async def test_without_records_there_is_nothing_to_end(broker: Any, cluster: Cluster) -> None:
    assert await prepare(broker, "id") is None
    assert await open_transaction(cluster, "id", 2) is None
    assert await open_transaction(cluster, "unknown", 2) is None


async def test_a_record_that_is_not_delivered_is_not_prepared(broker: Any) -> None:
    config = ProducerConfig(bootstrap_servers=broker.bootstrap_servers, transactional_id="id")
    async with Producer(config) as producer:
        await producer.begin_transaction()
        await producer.send(TOPIC, b"1")
        with pytest.raises(TimedOut):
            await producer.prepare_transaction(timeout_ms=0)
        await producer.abort_transaction()
