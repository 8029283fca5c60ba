"""A streaming query as PySpark 4.0 and 4.1 call it: latestOffset without arguments, often before initialOffset."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.interop.kit import unique
from tests.unit.spark_connector.conftest import Write
from tests.unit.spark_connector.test_stream import rows

from rota.client.types import TopicPartition
from rota.spark_connector.broker import DriverClient
from rota.spark_connector.errors import DataLost, OptionError
from rota.spark_connector.options import stream_options
from rota.spark_connector.stream_without_limits import RotaUnlimitedStreamReader

Opened = Callable[..., RotaUnlimitedStreamReader]


@pytest.fixture
def opened(base: dict[str, str]) -> Iterator[Opened]:
    """`opened(topic, startingOffsets=…)`: a reader that is stopped in the end."""
    readers: list[RotaUnlimitedStreamReader] = []

    def make(topic: str, **options: str) -> RotaUnlimitedStreamReader:
        given = {"fetchOffset.retryIntervalMs": "1", "subscribe": topic, **options}
        readers.append(RotaUnlimitedStreamReader(stream_options({**base, **given})))
        return readers[-1]

    yield make
    for one in readers:
        one.stop()


def test_a_stream_reads_each_record_once_also_after_a_restart(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    reader = opened(topic, startingOffsets="earliest")
    end, start = reader.latestOffset(), reader.initialOffset()
    assert rows(reader, start, end) == [(0, 0), (0, 1), (0, 2)]
    assert reader.latestOffset() == end
    write(topic, 1, [(None, b"v")])
    later = reader.latestOffset()
    assert rows(reader, end, later) == [(1, 0)]
    write(topic, 0, [(None, b"v")])
    again = opened(topic, startingOffsets="earliest")
    assert rows(again, later, again.latestOffset()) == [(0, 3)]


def test_a_first_batch_that_failed_loses_nothing(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"before")] * 2)
    reader = opened(topic)
    end = reader.latestOffset()
    write(topic, 0, [(None, b"v")])
    assert reader.initialOffset() == end == {topic: {"0": 2, "1": 0}}
    assert rows(reader, reader.initialOffset(), end) == []
    again = opened(topic)  # Spark has `end` in its checkpoint and asks for the start again
    assert rows(again, again.initialOffset(), end) == []
    assert rows(again, end, again.latestOffset()) == [(0, 2)]


def test_a_start_that_is_asked_for_first_is_the_first_end(topic: str, write: Write, opened: Opened) -> None:
    reader = opened(topic)
    start = reader.initialOffset()
    write(topic, 0, [(None, b"v")])
    assert rows(reader, start, reader.latestOffset()) == [(0, 0)]


def test_a_log_that_is_shorter_than_the_checkpoint_is_lost_data(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 2)
    start = {topic: {"0": 5, "1": 0}}
    reader = opened(topic, startingOffsets="earliest")
    with pytest.raises(DataLost, match=f"{topic}-0 was read up to offset 5, and its log now ends at 2"):
        reader.partitions(start, reader.latestOffset())
    lossy = opened(topic, startingOffsets="earliest", failOnDataLoss="false")
    assert rows(lossy, start, lossy.latestOffset()) == [(0, 0), (0, 1)]


def test_the_group_follows_the_commits(topic: str, write: Write, opened: Opened, base: dict[str, str]) -> None:
    write(topic, 0, [(None, b"v")] * 2)
    group = unique("group")
    reader = opened(topic, startingOffsets="earliest", **{"group.id": group})
    end = reader.latestOffset()
    reader.partitions(reader.initialOffset(), end)
    reader.commit(end)
    client = DriverClient({"bootstrap.servers": base["kafka.bootstrap.servers"]})
    assert client.committed(group, [TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 2}
    client.close()


@pytest.mark.parametrize(
    "options",
    [
        {"maxOffsetsPerTrigger": "5"},
        {"minOffsetsPerTrigger": "5"},
        {"maxTriggerDelay": "1s"},
        {"startingOffsets": "group", "group.id": "g"},
        {"startingOffsets": '{"t": {"0": -1}}'},
        {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "latest"},
    ],
)
def test_what_the_api_cannot_do_is_refused_by_name(opened: Opened, options: dict[str, str]) -> None:
    name = next(reversed(options)) if "group.id" not in options else "startingOffsets"
    with pytest.raises(OptionError, match=rf"option {name} is .*PySpark 4.2 or newer; this is PySpark "):
        opened("t", **options)
