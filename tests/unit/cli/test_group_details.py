"""Groups and lag as JSON and as cells."""

from __future__ import annotations

import pytest

from rota.cli.group_details import group_document, lag_documents, largest_seconds, summarized, total_lag
from rota.client import BrokerInfo, GroupDescription, MemberDescription, PartitionLag, TopicPartition


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "t:3"), ([0, 1, 2], "t:0-2"), ([5, 0, 1, 7, 8], "t:0-1,5,7-8"), ([1, 3], "t:1,3")],
)
def test_partitions_are_summarized(numbers: list[int], text: str) -> None:
    assert summarized({"topic": "t", "partition": number} for number in numbers) == text


def test_topics_are_in_order() -> None:
    assert summarized([{"topic": "b", "partition": 0}, {"topic": "a", "partition": 1}]) == "a:1 b:0"


def test_a_group_as_json() -> None:
    member = MemberDescription("m-1", None, "c", "/127.0.0.1", ("t",), (TopicPartition("t", 1), TopicPartition("t", 0)))
    group = GroupDescription("g", "Stable", "consumer", "range", (member,), BrokerInfo(1, "h", 9092, "r"))
    document = group_document(group)
    assert document["coordinator"] == {"id": 1, "host": "h", "port": 9092, "rack": "r"}
    assert document["members"][0]["assignment"] == [
        {"topic": "t", "partition": 0},
        {"topic": "t", "partition": 1},
    ]
    assert group_document(GroupDescription("g", "Empty", "", "", (), None))["coordinator"] is None


def test_an_unknown_lag_is_none_and_not_zero() -> None:
    lags = {TopicPartition("t", 1): PartitionLag(None, 0, 5, None), TopicPartition("t", 0): PartitionLag(1, 0, 5, 4)}
    rows = lag_documents(lags)
    assert [row["lag"] for row in rows] == [4, None]
    assert total_lag(rows) == 4
    assert total_lag(rows[1:]) is None


def test_an_unknown_age_is_none_and_not_zero() -> None:
    lags = {
        TopicPartition("t", number): PartitionLag(0, 0, 5, 5, age_ms=age_ms)
        for number, age_ms in enumerate((None, 0, 1_500))
    }
    rows = lag_documents(lags)
    assert [row["lag_seconds"] for row in rows] == [None, 0, 1.5]
    assert largest_seconds(rows) == 1.5
    assert largest_seconds(rows[:1]) is None
