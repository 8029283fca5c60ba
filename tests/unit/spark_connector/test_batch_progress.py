"""The line of a micro-batch in the log; that a stream writes it is in test_stream.py."""

from __future__ import annotations

from rota.client import TopicPartition
from rota.spark_connector.batch_progress import PARTITIONS_SHOWN_MAX, batch_progress
from rota.spark_connector.offsets import OffsetRange


def test_the_partitions_that_are_furthest_behind_come_first() -> None:
    ranges = [OffsetRange("t", 0, 3, 5), OffsetRange("t", 1, 0, 10), OffsetRange("u", 0, 0, 1)]
    latest = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 40}
    assert batch_progress(ranges, latest) == {
        "offsets": 13,
        "behind": 30,
        "partitions": "t-1 0 to 10 (30 behind); t-0 3 to 5 (0 behind); u-0 0 to 1 (0 behind)",
    }


def test_the_line_is_short_whatever_the_number_of_partitions() -> None:
    found = batch_progress([OffsetRange("t", at, 0, 1) for at in range(PARTITIONS_SHOWN_MAX + 5)], {})
    assert str(found["partitions"]).endswith("; 5 more")
    assert str(found["partitions"]).count(";") == PARTITIONS_SHOWN_MAX
