"""The values of options."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

import pytest

from rota.cli.arguments import group_id, iso_time, name_and_value, positive_float, time_ms, topic_and_partitions, whole
from rota.client.types import TopicPartition


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (whole(1), "5", 5),
        (whole(-5), "-5", -5),
        (positive_float, "0.5", 0.5),
        (name_and_value, "a=b=c", ("a", "b=c")),
        (name_and_value, "a=", ("a", "")),
        (topic_and_partitions, "orders", "orders"),
        (topic_and_partitions, "orders:0,2", [TopicPartition("orders", 0), TopicPartition("orders", 2)]),
        (time_ms, "0", 0),
        (time_ms, "1970-01-01T00:00:01", 1000),
        (time_ms, "1970-01-01T02:00:01.5+02:00", 1500),
        (time_ms, "1970-01-02", 86_400_000),
    ],
)
def test_valid_values(parse: Callable[[str], Any], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "error_text"),
    [
        (whole(1, 3), "4", "at most 3"),
        (whole(1), "0", "at least 1"),
        (whole(1), "x", "'x' is not an integer"),
        (positive_float, "0", "above 0"),
        (positive_float, "nan", "above 0"),
        (positive_float, "1e9", "86400"),
        (name_and_value, "a", "NAME=VALUE"),
        (topic_and_partitions, "orders:", "TOPIC"),
        (topic_and_partitions, ":1", "TOPIC"),
        (topic_and_partitions, "orders:a", "TOPIC"),
        (group_id, "", "the empty text"),
        (time_ms, "yesterday", "2026-01-31T12:00:00"),
        (time_ms, "9223372036854775808", "9223372036854775807"),
        (time_ms, "1969-12-31T23:59:59", "from 1970"),
    ],
)
def test_invalid_values_are_refused_with_the_valid_ones(
    parse: Callable[[str], Any], text: str, error_text: str
) -> None:
    with pytest.raises(ArgumentTypeError, match=error_text):
        parse(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(None, None), (-1, None), (0, "1970-01-01T00:00:00.000Z"), (1 << 62, str(1 << 62))],
)
def test_times_are_printed_in_utc(milliseconds: int | None, text: str | None) -> None:
    assert iso_time(milliseconds) == text
