"""A streaming query's offsets: as Spark asks for them, micro-batch by micro-batch, without Spark."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Iterable

import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows
from tests.interop.kit import unique
from tests.unit.spark_connector.conftest import Opened, Write, create
from tests.unit.spark_connector.counting import counting

from rota.client import Admin, AdminConfig, TopicPartition, UnknownTopic
from rota.spark_connector import broker
from rota.spark_connector.broker import DriverClient
from rota.spark_connector.errors import DataLost
from rota.spark_connector.offsets import Offsets
from rota.spark_connector.stream import RotaStreamReader

ALL = ReadAllAvailable()


def admin(bootstrap: str, call: Callable[[Admin], object]) -> None:
    async def run() -> None:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as requests:
            await call(requests)  # type: ignore[misc]

    asyncio.run(run())


def rows(reader: RotaStreamReader, start: dict, end: dict) -> list[tuple[int, int]]:
    found = [row for one in reader.partitions(start, end) for batch in reader.read(one) for row in batch.to_pylist()]
    return sorted((row["partition"], row["offset"]) for row in found)


def test_a_stream_moves_from_offset_to_offset(topic: str, write: Write, opened: Opened) -> None:
    reader = opened(subscribe=topic)
    write(topic, 0, [(None, b"v")] * 3)
    start = reader.initialOffset()
    assert start == {topic: {"0": 0, "1": 0}}
    assert reader.reportLatestOffset() is None
    end = reader.latestOffset(start, ALL)
    assert end == {topic: {"0": 3, "1": 0}} == reader.reportLatestOffset()
    assert rows(reader, start, end) == [(0, 0), (0, 1), (0, 2)]
    assert reader.latestOffset(end, ALL) == end
    assert reader.partitions(end, end) == []
    write(topic, 1, [(None, b"v")])
    assert rows(reader, end, reader.latestOffset(end, ALL)) == [(1, 0)]


def test_a_micro_batch_is_a_line_of_the_log_with_each_partition(
    topic: str, write: Write, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    reader = opened(subscribe=topic)
    write(topic, 0, [(None, b"v")] * 9)
    start = reader.initialOffset()
    with caplog.at_level(logging.INFO, "rota.spark"):
        reader.partitions(start, reader.latestOffset(start, ReadMaxRows(4)))
    (line,) = [record.getMessage() for record in caplog.records if "micro-batch" in record.getMessage()]
    assert "offsets=4" in line
    assert "behind=5" in line
    assert f"{topic}-0 0 to 4 (5 behind)" in line


def test_a_strongly_skewed_topic_is_read_in_tasks_of_equal_size(topic: str, write: Write, opened: Opened) -> None:
    """Nearly all records are in one partition: it is split, and the other one is not held up behind it."""
    reader = opened(subscribe=topic, minPartitions="4")
    write(topic, 0, [(None, b"v")] * 2_000)
    write(topic, 1, [(None, b"v")] * 4)
    start, sizes, batches = reader.initialOffset(), list[int](), 0
    while (end := reader.latestOffset(start, ReadMaxRows(500))) != start:
        planned = reader.partitions(start, end)
        sizes += [part.offsets.length for part in planned if part.offsets.partition == 0]  # type: ignore[attr-defined]
        assert len(planned) in (4, 5)
        assert sum(part.offsets.length for part in planned) <= 501  # type: ignore[attr-defined] # rounded up for the small one
        start, batches = end, batches + 1
    assert start == {topic: {"0": 2_000, "1": 4}}
    assert batches <= 5
    assert max(sizes) <= 167


def test_a_reader_that_was_restarted_reads_the_same_batch(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 9)
    first, again = opened(subscribe=topic), opened(subscribe=topic)
    start = {topic: {"0": 2, "1": 0}}
    end = first.latestOffset(start, ReadMaxRows(4))
    write(topic, 0, [(None, b"v")] * 9)
    assert end == {topic: {"0": 6, "1": 0}}
    assert rows(again, start, end) == rows(first, start, end) == [(0, at) for at in range(2, 6)]


def test_an_idle_micro_batch_costs_two_requests(bootstrap: str, topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    with counting(bootstrap) as (address, counts):
        reader = opened(subscribe=topic, group_id=unique("group"), **{"kafka.bootstrap.servers": address})
        end = reader.latestOffset(reader.initialOffset(), ALL)
        assert rows(reader, reader.initialOffset(), end) == [(0, 0), (0, 1), (0, 2)]
        assert reader.latestOffset(end, ALL) == end  # commits the end of the first micro-batch
        before = counts.copy()
        assert reader.latestOffset(end, ALL) == end
        assert counts - before == {"Metadata": 1, "ListOffsets": 1}


def test_limits_are_those_of_the_options(topic: str, opened: Opened) -> None:
    assert opened(subscribe=topic).getDefaultReadLimit() == ALL
    assert opened(
        subscribe=topic, maxOffsetsPerTrigger="5", minOffsetsPerTrigger="2"
    ).getDefaultReadLimit() == ReadMaxRows(5)
    assert opened(subscribe=topic, minOffsetsPerTrigger="2").getDefaultReadLimit() == ReadMinRows(2)


def test_a_batch_waits_until_it_is_worth_it(topic: str, write: Write, opened: Opened) -> None:
    reader, limit = opened(subscribe=topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h"), ReadMinRows(5)
    write(topic, 0, [(None, b"v")])
    start = reader.latestOffset(reader.initialOffset(), limit)
    assert start == {topic: {"0": 1, "1": 0}}, "the first one comes at once, as with Spark's own source"
    write(topic, 0, [(None, b"v")] * 4)
    assert reader.latestOffset(start, limit) == start
    assert reader.latestOffset(start, ALL) == {topic: {"0": 5, "1": 0}}, "the trigger's own wish goes first"
    write(topic, 1, [(None, b"v")])
    assert reader.latestOffset(start, limit) == {topic: {"0": 5, "1": 1}}


def test_but_not_for_ever(topic: str, write: Write, opened: Opened) -> None:
    reader, limit = opened(subscribe=topic, minOffsetsPerTrigger="5", maxTriggerDelay="0ms"), ReadMinRows(5)
    write(topic, 0, [(None, b"v")])
    start = reader.latestOffset(reader.initialOffset(), limit)
    write(topic, 0, [(None, b"v")])
    assert reader.latestOffset(start, limit) == {topic: {"0": 2, "1": 0}}


def test_available_now_ends(topic: str, write: Write, opened: Opened) -> None:
    reader = opened(subscribe=topic)
    write(topic, 0, [(None, b"v")] * 5)
    at = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    write(topic, 0, [(None, b"late")] * 5)
    seen = [at := reader.latestOffset(at, ReadMaxRows(3)) for _ in range(3)]
    assert [one[topic]["0"] for one in seen] == [3, 5, 5]


def test_partitions_and_topics_that_appear_are_read_from_their_beginning(
    bootstrap: str, write: Write, opened: Opened
) -> None:
    prefix = unique("grows")
    one = create(bootstrap, f"{prefix}-1", 1)
    reader = opened(subscribePattern=f"{prefix}-.*", startingOffsets="latest")
    write(one, 0, [(None, b"before")])
    start = reader.latestOffset(reader.initialOffset(), ALL)
    admin(bootstrap, lambda requests: requests.create_partitions({one: 2}))
    two = create(bootstrap, f"{prefix}-2", 1)
    write(one, 1, [(None, b"v")] * 2)
    write(two, 0, [(None, b"v")])
    end = reader.latestOffset(start, ALL)
    assert end == {one: {"0": 1, "1": 2}, two: {"0": 1}}
    assert rows(reader, start, end) == [(0, 0), (1, 0), (1, 1)]


def test_a_deleted_topic_is_lost_data(bootstrap: str, write: Write, opened: Opened) -> None:
    prefix = unique("goes")
    one, two = create(bootstrap, f"{prefix}-1", 1), create(bootstrap, f"{prefix}-2", 1)
    write(one, 0, [(None, b"v")])
    strict, lossy = (opened(subscribePattern=f"{prefix}-.*", failOnDataLoss=word) for word in ("true", "false"))
    at = strict.latestOffset(strict.initialOffset(), ALL)
    admin(bootstrap, lambda requests: requests.delete_topics([one]))
    with pytest.raises(DataLost, match=f"{one}-0 does not exist any more; .*up to offset 1.*failOnDataLoss=false"):
        strict.latestOffset(at, ALL)
    assert lossy.latestOffset(at, ALL) == {two: {"0": 0}}
    with pytest.raises(DataLost, match=f"{one}-0 does not exist any more; its offsets 0 to 0 are lost"):
        strict.partitions({one: {"0": 0}}, {one: {"0": 1}})
    assert rows(lossy, {one: {"0": 0}}, {one: {"0": 1}}) == []


class DeletingClient(DriverClient):
    """Deletes a topic before its first offset is listed."""

    doomed: str | None = None

    def earliest_of_existing(self, partitions: Iterable[TopicPartition]) -> Offsets:
        if self.doomed is not None:
            doomed, self.doomed = self.doomed, None
            admin(self._settings["bootstrap.servers"], lambda requests: requests.delete_topics([doomed]))
        return super().earliest_of_existing(partitions)


def test_sp19_a_topic_that_appears_and_goes_stops_no_query(
    bootstrap: str, write: Write, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "EXISTENCE_CHECK_MS", 300)
    prefix = unique("short")
    kept, doomed = create(bootstrap, f"{prefix}-1", 1), f"{prefix}-2"
    reader = opened(subscribePattern=f"{prefix}-.*")
    reader._client = client = DeletingClient(reader._options.client)
    at = reader.latestOffset(reader.initialOffset(), ALL)
    write(create(bootstrap, doomed, 1), 0, [(None, b"v")])
    write(kept, 0, [(None, b"v")])
    client.doomed = doomed
    end = reader.latestOffset(at, ALL)
    assert end == {kept: {"0": 1}}
    assert rows(reader, at, end) == [(0, 0)]


def test_a_subscribed_topic_may_be_deleted_and_created_again(
    bootstrap: str, topic: str, write: Write, opened: Opened
) -> None:
    write(topic, 0, [(None, b"v")])
    strict, lossy = (opened(subscribe=topic, failOnDataLoss=word) for word in ("true", "false"))
    at = [one.latestOffset(one.initialOffset(), ALL) for one in (strict, lossy)][-1]
    admin(bootstrap, lambda requests: requests.delete_topics([topic]))
    with pytest.raises(DataLost, match="does not exist any more"):
        strict.latestOffset(at, ALL)
    at = lossy.latestOffset(at, ALL)
    assert at == lossy.latestOffset(at, ALL) == {}
    create(bootstrap, topic, 1)
    write(topic, 0, [(None, b"new")] * 2)
    end = lossy.latestOffset(at, ALL)
    assert rows(lossy, at, end) == [(0, 0), (0, 1)]


def test_an_unknown_topic_name_is_an_error(topic: str, opened: Opened) -> None:
    reader = opened(subscribe=f"{topic},nowhere")
    with pytest.raises(UnknownTopic, match=r"nowhere.*Create it first"):
        reader.initialOffset()
    with pytest.raises(UnknownTopic, match=r"nowhere.*Create it first"):
        reader.latestOffset({topic: {"0": 0, "1": 0}}, ALL)


def test_a_log_that_was_cut_short_is_lost_data(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    strict, lossy = (opened(subscribe=topic, failOnDataLoss=word) for word in ("true", "false"))
    ahead = {topic: {"0": 50, "1": 0}}
    with pytest.raises(DataLost, match=f"{topic}-0 was read up to offset 50, and its log now ends at 3"):
        strict.latestOffset(ahead, ALL)
    back = lossy.latestOffset(ahead, ALL)
    assert back == {topic: {"0": 3, "1": 0}}
    assert rows(lossy, ahead, back) == [(0, 0), (0, 1), (0, 2)], "what is in the new log is read, from its beginning"
    assert lossy.latestOffset(back, ALL) == back


@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(2)])
def test_a_recreated_topic_is_detected_whatever_its_length(
    bootstrap: str, topic: str, write: Write, opened: Opened, limit: ReadLimit
) -> None:
    write(topic, 0, [(None, b"old")] * 3)
    strict, lossy = (opened(subscribe=topic, failOnDataLoss=word) for word in ("true", "false"))
    at = [one.latestOffset(one.initialOffset(), ALL) for one in (strict, lossy)][-1]
    assert at == lossy.latestOffset(at, ALL) == strict.latestOffset(at, ALL)
    admin(bootstrap, lambda requests: requests.delete_topics([topic]))
    create(bootstrap, topic)
    write(topic, 0, [(None, b"new")] * 8)
    with pytest.raises(DataLost, match=f"{topic}-0 was read up to offset 3, and .*deleted and created again"):
        strict.latestOffset(at, ALL)
    seen: list[tuple[int, int]] = []
    while (end := lossy.latestOffset(at, limit)) != at:
        seen += rows(lossy, at, end)
        at = end
    assert seen == [(0, offset) for offset in range(8)]


def test_a_topic_recreated_between_two_requests_is_detected(
    bootstrap: str, topic: str, write: Write, opened: Opened
) -> None:
    class Late(DriverClient):
        """Between the question for partitions and that for offsets the topic is made anew, with more in it."""

        def latest_at_least(self, ends: Offsets, partitions: Iterable[TopicPartition]) -> Offsets:
            self.latest_at_least = super().latest_at_least  # type: ignore[method-assign]
            admin(bootstrap, lambda requests: requests.delete_topics([topic]))
            create(bootstrap, topic)
            write(topic, 0, [(None, b"new")] * 5)
            return self.latest_at_least(ends, partitions)

    write(topic, 0, [(None, b"old")] * 3)
    reader = opened(subscribe=topic, failOnDataLoss="false")
    at = reader.latestOffset(reader.initialOffset(), ALL)
    reader.latestOffset(at, ALL)
    reader.stop()
    reader._client = Late({"bootstrap.servers": bootstrap})
    seen: list[tuple[int, int]] = []
    while (end := reader.latestOffset(at, ALL)) != at:
        seen += rows(reader, at, end)
        at = end
    assert seen == [(0, offset) for offset in range(5)]


def test_offsets_missing_before_an_available_now_run_are_data_loss(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    strict, lossy = (opened(subscribe=topic, failOnDataLoss=word) for word in ("true", "false"))
    ahead = {topic: {"0": 50, "1": 0}, "gone": {"0": 7}}
    for one in (strict, lossy):
        one.prepareForTriggerAvailableNow()
    with pytest.raises(DataLost, match=rf"gone-0 does not exist any more.*{topic}-0 was read up to offset 50"):
        strict.latestOffset(ahead, ALL)
    assert lossy.latestOffset(ahead, ALL) == {topic: {"0": 3, "1": 0}}


def test_records_written_after_prepare_for_available_now_are_no_loss(topic: str, write: Write, opened: Opened) -> None:
    reader = opened(subscribe=topic, startingOffsets="latest")
    reader.prepareForTriggerAvailableNow()
    write(topic, 0, [(None, b"v")] * 3)
    at = reader.initialOffset()
    assert at == reader.latestOffset(at, ALL) == reader.latestOffset(at, ALL) == {topic: {"0": 3, "1": 0}}


def test_initial_offset_of_a_new_query_does_not_change(topic: str, write: Write, opened: Opened) -> None:
    reader = opened(subscribe=topic, startingOffsets="latest")
    start = reader.initialOffset()
    write(topic, 0, [(None, b"between")] * 3)
    first = reader.latestOffset(start, ALL)
    write(topic, 0, [(None, b"later")] * 2)
    again = reader.initialOffset()
    end = reader.latestOffset(first, ALL)
    assert rows(reader, again, first) + rows(reader, first, end) == [(0, at) for at in range(5)]


def test_a_first_batch_that_failed_loses_nothing(topic: str, write: Write, opened: Opened) -> None:
    """The end of a log is another one when the query is started again: its first batch has written down the start."""
    failed = opened(subscribe=topic, startingOffsets="latest")
    first = failed.latestOffset(failed.initialOffset(), ALL)
    write(topic, 0, [(None, b"v")] * 3)
    reader = opened(subscribe=topic, startingOffsets="latest")
    assert rows(reader, reader.initialOffset(), first) == []
    assert rows(reader, first, reader.latestOffset(first, ALL)) == [(0, 0), (0, 1), (0, 2)]


def test_explicit_starting_offsets_are_read_in_the_first_batch(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 3)
    reader = opened(subscribe=topic, startingOffsets=f'{{"{topic}": {{"0": 1, "1": -2}}}}')
    start = reader.initialOffset()
    assert rows(reader, start, reader.latestOffset(start, ALL)) == [(0, 1), (0, 2)]


def test_offsets_below_the_log_are_lost_data(bootstrap: str, topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")] * 9)
    admin(bootstrap, lambda requests: requests.delete_records({TopicPartition(topic, 0): 6}))
    strict, lossy = (opened(subscribe=topic, failOnDataLoss=word) for word in ("true", "false"))
    start, end = {topic: {"0": 2, "1": 0}}, {topic: {"0": 9, "1": 0}}
    with pytest.raises(DataLost, match=f"{topic}-0 lacks offsets 2 to 5: its log begins at 6 and ends at 9"):
        strict.partitions(start, end)
    assert rows(lossy, start, end) == [(0, 6), (0, 7), (0, 8)]


def test_commits_go_to_the_group_and_a_query_can_start_from_it(topic: str, write: Write, opened: Opened) -> None:
    group = unique("group")
    reader = opened(subscribe=topic, group_id=group)
    write(topic, 0, [(None, b"v")] * 4)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    assert opened(subscribe=topic, group_id=group, startingOffsets="group").initialOffset() == end, "latest"
    reader.latestOffset(end, ALL)  # Spark asks from where it is: that is done, also when nothing comes any more
    follower = opened(subscribe=topic, group_id=group, startingOffsets="group")
    write(topic, 0, [(None, b"v")] * 4)
    assert follower.initialOffset() == {topic: {"0": 4, "1": 0}}


def test_a_failed_group_commit_does_not_stop_the_query(
    opened: Opened, topic: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "COMMIT_TIMEOUT_MS", 300)
    with caplog.at_level(logging.WARNING):
        opened(subscribe=topic, group_id=unique("group")).commit({"nowhere": {"0": 4}})
    assert "The group's progress was not committed" in caplog.text
    opened(subscribe=topic).commit({"nowhere": {"0": 4}})  # without a group there is nobody to tell


def test_a_pickled_reader_still_reads(topic: str, write: Write, opened: Opened) -> None:
    write(topic, 0, [(None, b"v")])
    reader = opened(subscribe=topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    (piece,) = reader.partitions(start, end)
    (batch,) = pickle.loads(cloudpickle.dumps(reader)).read(pickle.loads(pickle.dumps(piece)))
    assert batch.column("offset").to_pylist() == [0]
