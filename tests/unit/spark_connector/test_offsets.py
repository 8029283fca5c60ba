"""Offsets in JSON, offset_ranges, and limits that are shared between partitions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.types import TopicPartition
from rota.spark_connector.errors import OptionError
from rota.spark_connector.offsets import (
    OffsetRange,
    format_partitions,
    from_json_tree,
    limit_offsets,
    offset_ranges,
    parse_assignment,
    parse_offsets,
    to_json_tree,
)

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
PARTITIONS = st.builds(TopicPartition, st.sampled_from(["t", "u", "v"]), st.integers(0, 5))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 10_000), max_size=12)


def test_offsets_as_spark_writes_them() -> None:
    assert parse_offsets('{"t": {"0": 12, "1": -2}, "u": {"0": -1}}', "startingOffsets") == {T0: 12, T1: -2, U0: -1}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ('{"t": [1]}', "partitions for each topic"),
        ('{"t": {"x": 1}}', "'x'"),
        ('{"t": {"0": "1"}}', "t-0"),
        ('{"t": {"0": true}}', "t-0"),
        ('{"t": {"0": -3}}', "t-0"),
        ('{"t": {"0": 1}, "t": {"1": 2}}', "'t' is there twice"),
        ('{"t": {"0": 1, "0": 2}}', "'0' is there twice"),
        ('{"t": {"0": 1, "00": 2}}', "'00'"),
        ('{"t": {"' + "9" * 5000 + '": 1}}', "partition numbers"),
        ('{"t":' * 100_000, "JSON"),
    ],
)
def test_invalid_offsets_are_refused_with_the_name_of_the_option(text: str, answer: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets") as refused:
        parse_offsets(text, "startingOffsets")
    assert answer in str(refused.value)


def test_an_assignment_names_partitions() -> None:
    assert parse_assignment('{"u": [0], "t": [1, 0, 1]}', "assign") == (T0, T1, U0)


@pytest.mark.parametrize("text", ["{}", '{"t": []}', '{"t": 0}', '{"t": [-1]}', '{"t": ["0"]}', '{"t": [true]}'])
def test_invalid_assignments_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="assign"):
        parse_assignment(text, "assign")


@given(OFFSETS)
def test_offsets_survive_a_checkpoint(offsets: dict[TopicPartition, int]) -> None:
    assert from_json_tree(json.loads(json.dumps(to_json_tree(offsets)))) == offsets


def test_a_range_lies_between_start_and_end() -> None:
    assert offset_ranges({T0: 3, T1: 5, U0: 1}, {T0: 7, T1: 5}) == (OffsetRange("t", 0, 3, 7),)


def test_a_limit_is_shared_in_proportion() -> None:
    assert limit_offsets({T0: 0, T1: 0}, {T0: 300, T1: 100}, 100) == {T0: 75, T1: 25}


def test_a_small_partition_is_not_left_out() -> None:
    assert limit_offsets({T0: 0, T1: 10}, {T0: 1_000_000, T1: 11}, 100) == {T0: 99, T1: 11}


@given(OFFSETS, OFFSETS, st.integers(1, 20_000))
def test_the_limit_is_kept_and_used(
    start: dict[TopicPartition, int], more: dict[TopicPartition, int], most: int
) -> None:
    start = {item: start.get(item, 0) for item in more}
    latest = {item: start[item] + count for item, count in more.items()}
    ends = limit_offsets(start, latest, most)
    assert all(start[item] <= ends[item] <= latest[item] for item in latest)
    moved = sum(ends[item] - start[item] for item in latest)
    assert moved == min(most, sum(more.values()))
    waiting = [item for item in more if more[item]]
    if most >= len(waiting):
        assert all(ends[item] > start[item] for item in waiting)


def test_many_partitions_are_named_in_short() -> None:
    assert format_partitions([U0, T0]) == "t-0, u-0"
    assert format_partitions([TopicPartition("t", at) for at in range(12)], 2) == "t-0, t-1 and 10 more"
