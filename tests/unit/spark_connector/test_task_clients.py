"""The clients that the tasks of a Python worker share, on a real broker."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.interop.kit import until
from tests.unit.spark_connector.conftest import Write, create
from tests.unit.spark_connector.counting import counting

from rota.client import Admin, AdminConfig
from rota.spark_connector.broker import DriverClient
from rota.spark_connector.errors import DataLost
from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.options import ReadOptions, batch_options
from rota.spark_connector.plan import KafkaInputPartition
from rota.spark_connector.read import read
from rota.spark_connector.task_clients import IDLE_CLIENTS_MAX, POOL, ClientPool

IDLE = {"bootstrap.servers": "127.0.0.1:1"}


def offsets(options: ReadOptions, partition: KafkaInputPartition) -> list[int]:
    return [row["offset"] for batch in read(partition, options) for row in batch.to_pylist()]


def whole(topic: str, end: int, topic_id: bytes | None = None) -> KafkaInputPartition:
    return KafkaInputPartition(OffsetRange(topic, 0, 0, end), topic_id)


def topic_id(base: dict[str, str], topic: str) -> bytes:
    options = batch_options({**base, "subscribe": topic})
    client = DriverClient(options.client)
    try:
        client.partitions(options.topics)
        return client.topic_ids([topic])[topic]
    finally:
        client.close()


def recreate(bootstrap: str, topic: str) -> None:
    async def delete() -> None:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
            await admin.delete_topics([topic])

    asyncio.run(delete())
    create(bootstrap, topic)


def test_the_next_task_connects_to_no_broker(bootstrap: str, topic: str, write: Write) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    with counting(bootstrap) as (address, counts):
        options = batch_options({"kafka.bootstrap.servers": address, "subscribe": topic})
        assert offsets(options, whole(topic, 3)) == [0, 1, 2]
        first = counts.copy()
        assert offsets(options, whole(topic, 3)) == [0, 1, 2]
        assert counts - first == {"Metadata": 1, "Fetch": 1}
        POOL.close()


def test_a_failed_or_cancelled_task_leaves_no_client(topic: str, write: Write, base: dict[str, str]) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    options = batch_options({**base, "subscribe": topic})
    POOL.close()
    with pytest.raises(DataLost):
        offsets(options, whole(topic, 9))
    batches = read(whole(topic, 3), options)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert POOL.idle_count == 0


def test_a_client_of_an_earlier_task_sees_that_a_topic_was_created_again(
    bootstrap: str, topic: str, write: Write, base: dict[str, str]
) -> None:
    write(topic, 0, [(None, b"old")])
    options = batch_options({**base, "subscribe": topic})
    before = topic_id(base, topic)
    assert offsets(options, whole(topic, 1, before)) == [0]
    recreate(bootstrap, topic)
    write(topic, 0, [(None, b"new")])
    with pytest.raises(DataLost, match="created again"):
        offsets(options, whole(topic, 1, before))
    after = topic_id(base, topic)
    assert after != before
    assert offsets(options, whole(topic, 1, after)) == [0]
    recreate(bootstrap, topic)
    write(topic, 0, [(None, b"newest")])
    newest = topic_id(base, topic)
    assert offsets(options, whole(topic, 1, newest)) == [0], "the idle client knew the id before"


def test_idle_clients_are_bounded_and_closed() -> None:
    pool = ClientPool()
    with contextlib.ExitStack() as tasks:
        for _ in range(IDLE_CLIENTS_MAX + 3):
            tasks.enter_context(pool.client(IDLE))
    assert pool.idle_count == IDLE_CLIENTS_MAX
    pool.close()
    assert pool.idle_count == 0
    until(lambda: pool._closer is None, "the end of its thread", seconds=30)

    brief = ClientPool(idle_close_s=0.01)
    with brief.client(IDLE) as used:
        pass
    until(lambda: brief.idle_count == 0 and brief._closer is None, "the end of the idle time", seconds=30)
    with brief.client(IDLE) as other:
        assert other is not used


def test_a_task_gets_no_client_with_other_settings() -> None:
    pool = ClientPool()
    with pool.client(IDLE) as one:
        pass
    with pool.client({**IDLE, "client.id": "other"}) as two:
        assert two is not one
    with pool.client(IDLE) as three:
        assert three is one
    pool.close()
