"""The options of a reset."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest

from rota.cli.group_reset import duration_ms, reset_document, reset_partitions, reset_target
from rota.cli.settings import UsageError
from rota.client.types import TopicPartition

NONE = {
    "to_earliest": False,
    "to_latest": False,
    "to_offset": None,
    "shift_by": None,
    "to_datetime": None,
    "by_duration": None,
}
NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ({"to_earliest": True}, {"to": "earliest"}),
        ({"to_latest": True}, {"to": "latest"}),
        ({"to_offset": 0}, {"offset": 0}),
        ({"shift_by": 0}, {"shift_by": 0}),
        ({"to_datetime": 0}, {"time_ms": 0}),
        ({"by_duration": "PT1S"}, {"time_ms": NOW_MS - 1000}),
        ({"by_duration": "P36500D"}, {"time_ms": 0}),
    ],
)
def test_an_option_is_one_target(given: dict[str, Any], target: dict[str, Any]) -> None:
    assert reset_target(Namespace(**NONE | given), NOW_MS) == target


@pytest.mark.parametrize("text", ["", "1h", "P", "earliest"])
def test_a_duration_is_of_iso_8601(text: str) -> None:
    assert duration_ms("P1DT1H1M1.5S") == 90_061_500
    with pytest.raises(UsageError, match="PnDTnHnMnS"):
        duration_ms(text)


def test_topics_and_partitions_are_one_list() -> None:
    assert reset_partitions(None) is None
    assert reset_partitions(["a", [TopicPartition("b", 1)]]) == ["a", TopicPartition("b", 1)]


def test_the_difference_is_unknown_without_a_committed_offset() -> None:
    partition = TopicPartition("t", 0)
    assert reset_document(partition, 5, 2)["difference"] == -3
    assert reset_document(partition, None, 2)["difference"] is None
