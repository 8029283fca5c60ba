"""A stream's progress: in the query's own progress, and in a consumer group, where tools see its lag."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.interop.kit import create_topic, unique, until
from tests.soak import soak_only
from tests.spark.conftest import Options, written
from tests.spark.table import ENDS_S, Table, reached, stream

from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, TopicPartition

KAFKA_IN_SOAK_ONLY = True

pytestmark = pytest.mark.timeout(600)
Send = Callable[..., None]
NewTopic = Callable[..., str]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path)


async def stands(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    """Where the group stands."""
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        found = await admin.list_group_offsets([group])
    return {item: at.offset for item, at in found[group].items() if at is not None}


def test_a_run_commits_its_end_to_the_group_and_the_next_query_starts_there(
    spark: SparkSession, bootstrap: str, base: Options, new_topic: NewTopic, send: Send, table: Table, tmp_path: Path
) -> None:
    topic, group = new_topic(2), unique("group")
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    send(topic, [b"v"] * 5)
    options = {"subscribe": topic, "group_id": group}
    progress = table.run(stream(spark, base, **options, maxOffsetsPerTrigger=3))
    assert len(progress) == 2
    assert asyncio.run(stands(bootstrap, group)) == dict(zip(places, (5, 0), strict=True))
    send(topic, [b"later"] * 4)
    other = Table(spark, tmp_path / "other")
    other.run(stream(spark, base, **options, startingOffsets="group"))
    assert [row[2] for row in other.rows()] == [5, 6, 7, 8]
    assert asyncio.run(stands(bootstrap, group))[places[0]] == 9


@soak_only
def test_lag_is_in_the_progress_and_the_group_follows_each_batch(spark: SparkSession, rota: str, table: Table) -> None:
    topic, group = create_topic(rota, 1), unique("group")
    written(rota, topic, [b"v"] * 10)
    frame = stream(spark, {"kafka.bootstrap.servers": rota}, subscribe=topic, group_id=group, maxOffsetsPerTrigger=4)
    query = table.start(frame, processingTime="20 milliseconds")
    reached(query, {topic: {"0": 10}})
    until(
        lambda: asyncio.run(stands(rota, group)) == {TopicPartition(topic, 0): 10},
        "the group to follow",
        seconds=ENDS_S,
    )
    query.stop()
    sources = [item.sources[0] for item in query.recentProgress if item.numInputRows]
    ends = [json.loads(item.endOffset)[topic]["0"] for item in sources]
    assert ends == [4, 8, 10]
    assert [json.loads(item.latestOffset)[topic]["0"] for item in sources] == [10, 10, 10]
    assert sources[0].metrics == {}, "Spark asks no Python source for avgOffsetsBehindLatest and the like"


@soak_only
async def test_offsets_of_a_group_with_members_are_not_changed_and_the_query_continues(
    spark: SparkSession, bootstrap: str, base: Options, new_topic: NewTopic, send: Send, table: Table
) -> None:
    topic, group = await asyncio.to_thread(new_topic), unique("group")
    await asyncio.to_thread(send, topic, [b"v"] * 5)
    frame = stream(spark, base, subscribe=topic, group_id=group)
    config = ConsumerConfig(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    async with Consumer(config) as member:
        member.subscribe([topic])
        while not member.assignment:
            await member.getmany(timeout_ms=100)
        await asyncio.to_thread(table.run, frame)
        assert await stands(bootstrap, group) == {}
    assert [row[2] for row in table.rows()] == [0, 1, 2, 3, 4]
