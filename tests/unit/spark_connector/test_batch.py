"""A batch query's plan: as Spark asks for it, without Spark."""

from __future__ import annotations

import asyncio
import logging
import pickle
from datetime import UTC, datetime, timedelta

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, InputPartition, LessThan
from tests.unit.spark_connector.conftest import Write, create

from rota.client import Admin, AdminConfig, UnknownTopic
from rota.spark_connector.batch import RotaReader
from rota.spark_connector.errors import DataLost
from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.options import batch_options


def plan(reader: RotaReader) -> list[tuple[int, int, int]]:
    pieces = [item.offsets for item in reader.partitions()]
    return [(item.partition, item.start, item.end) for item in pieces]


@pytest.fixture
def full(topic: str, write: Write) -> str:
    """100 records in partition 0 (timestamps 1000, 2000, …), 10 in partition 1."""
    write(topic, 0, [(b"k", b"v")] * 100)
    write(topic, 1, [(b"k", b"v")] * 10)
    return topic


def test_a_plan_excludes_records_written_after_it(full: str, base: dict[str, str], write: Write) -> None:
    reader = RotaReader(batch_options({**base, "subscribe": full}))
    pieces = reader.partitions()
    write(full, 0, [(b"late", b"v")])
    assert [item.offsets for item in pieces] == [OffsetRange(full, 0, 0, 100), OffsetRange(full, 1, 0, 10)]
    assert sum(batch.num_rows for item in pieces for batch in reader.read(item)) == 110


def test_a_plan_in_more_pieces(full: str, base: dict[str, str]) -> None:
    reader = RotaReader(batch_options({**base, "subscribe": full, "minPartitions": "4"}))
    assert plan(reader) == [(0, 0, 33), (0, 33, 66), (0, 66, 100), (1, 0, 10)]


def test_filters_narrow_the_plan(full: str, base: dict[str, str]) -> None:
    reader = RotaReader(batch_options({**base, "subscribe": full}))
    on_time = GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(50, UTC))
    rest = reader.pushFilters([EqualTo(("partition",), 0), LessThan(("offset",), 60), on_time])
    assert list(rest) == [on_time]
    assert plan(pickle.loads(cloudpickle.dumps(reader))) == [(0, 49, 60)]


@pytest.mark.parametrize("second", [-2_208_988_800, -0.002, -0.001, 0, 0.001])
def test_a_filter_on_a_time_before_the_epoch_keeps_every_row(full: str, base: dict[str, str], second: float) -> None:
    """-1, -2, … are not times in ListOffsets but the latest offset, the earliest, …"""
    reader = RotaReader(batch_options({**base, "subscribe": full}))
    on_time = GreaterThanOrEqual(("timestamp",), datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second))
    assert list(reader.pushFilters([on_time])) == [on_time]
    assert plan(reader) == [(0, 0, 100), (1, 0, 10)]


def test_filters_that_nothing_passes_leave_no_plan(full: str, base: dict[str, str]) -> None:
    reader = RotaReader(batch_options({**base, "subscribe": full}))
    assert list(reader.pushFilters([EqualTo(("topic",), "another")])) == []
    assert plan(reader) == []
    reader.pushFilters([GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(5000, UTC))])
    assert plan(reader) == []


def test_an_empty_topic_is_an_empty_plan(topic: str, base: dict[str, str]) -> None:
    assert plan(RotaReader(batch_options({**base, "subscribe": topic}))) == []
    assert plan(RotaReader(batch_options({**base, "subscribePattern": "no.such.topic"}))) == []


def test_an_unknown_topic_is_named(base: dict[str, str]) -> None:
    with pytest.raises(UnknownTopic, match="nowhere"):
        RotaReader(batch_options({**base, "subscribe": "nowhere"})).partitions()


def test_a_hundred_partitions(bootstrap: str, base: dict[str, str], write: Write) -> None:
    topic = create(bootstrap, "hundred", 100)
    write(topic, 99, [(b"k", b"v")])
    write(topic, 7, [(b"k", b"v")] * 2)
    assert plan(RotaReader(batch_options({**base, "subscribe": topic}))) == [(7, 0, 2), (99, 0, 1)]


def test_a_task_finds_that_its_topic_was_created_again(
    bootstrap: str, full: str, base: dict[str, str], write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """The planned offsets exist in the new topic too, with other records."""
    strict, lossy = (
        RotaReader(batch_options({**base, "subscribe": full, "failOnDataLoss": word})) for word in ("true", "false")
    )
    planned = strict.partitions()
    recreate(bootstrap, full)
    write(full, 0, [(None, b"new")] * 200)
    with pytest.raises(DataLost, match=f"offsets 0-99 of {full}-0; its topic was deleted and created again"):
        list(strict.read(planned[0]))
    with caplog.at_level(logging.WARNING):
        assert list(lossy.read(planned[0])) == []
    assert "deleted and created again" in caplog.text


def recreate(bootstrap: str, topic: str) -> None:
    async def delete() -> None:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
            await admin.delete_topics([topic])

    asyncio.run(delete())
    create(bootstrap, topic)


def test_spark_makes_a_task_of_no_pieces(topic: str, base: dict[str, str]) -> None:
    """It puts InputPartition(None) in place of an empty plan."""
    reader = RotaReader(batch_options({**base, "subscribe": topic}))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []
