"""Where a log ended at a time, on a real broker."""

from __future__ import annotations

from tests.unit.spark_connector.conftest import Write

from rota.client import TopicPartition
from rota.spark_connector.pipelines.log_ends import end_offsets, record_times

LATER_MS = 1 << 45  # not yet


def test_an_end_is_that_of_its_time(bootstrap: str, topic: str, write: Write) -> None:
    write(topic, 0, [(None, b"1"), (None, b"2"), (None, b"3")])  # at 1000, 2000, 3000 ms
    of = TopicPartition(topic, 0)
    wanted = [
        (500, of),
        (1000, of),
        (1001, of),
        (3000, of),
        (3001, of),
        (LATER_MS, of),
        (1000, TopicPartition(topic, 1)),
    ]
    found = end_offsets({"bootstrap.servers": bootstrap}, wanted)
    assert [found[item] for item in wanted] == [0, 0, 1, 2, 3, 3, 0]


def test_deleted_topics_have_no_end_offset(bootstrap: str, topic: str) -> None:
    deleted, there = TopicPartition("gone", 0), TopicPartition(topic, 1)
    found = end_offsets({"bootstrap.servers": bootstrap}, [(LATER_MS, deleted), (LATER_MS, there), (1, deleted)])
    assert found == {(LATER_MS, there): 0}


def test_the_time_of_a_record_is_that_of_the_first_one_at_the_offset(bootstrap: str, topic: str, write: Write) -> None:
    write(topic, 0, [(None, b"1"), (None, b"2"), (None, b"3")])  # at 1000, 2000, 3000 ms, in one batch
    of, deleted = TopicPartition(topic, 0), TopicPartition(topic, 1)
    requested = [(of, 0), (of, 2), (of, 3), (of, 9), (deleted, 0)]
    assert record_times({"bootstrap.servers": bootstrap}, requested) == {(of, 0): 1000, (of, 2): 3000}


def test_without_partitions_no_request_is_sent() -> None:
    assert end_offsets({"bootstrap.servers": "127.0.0.1:1"}, []) == {}
    assert record_times({"bootstrap.servers": "127.0.0.1:1"}, []) == {}
