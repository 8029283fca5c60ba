"""Where a query starts and ends: what the options say, and what the log has."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import pytest

from rota.client.types import TopicPartition
from rota.spark_connector.errors import DataLost, OptionError
from rota.spark_connector.offset_bounds import ending_offsets, is_reproducible, starting_offsets
from rota.spark_connector.offsets import Offsets
from rota.spark_connector.options import ReadOptions, batch_options, stream_options

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = (T0, T1)
BASE = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "t"}


class Logs:
    """Two logs: t-0 has offsets 10-99, one each second; t-1 has 0-4, all at second 7. The group stands at t-0, 50."""

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {item: {T0: 10, T1: 0}[item] for item in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {item: {T0: 100, T1: 5}[item] for item in partitions}

    def latest_at_least(self, ends: Offsets, partitions: Iterable[TopicPartition]) -> Offsets:
        return self.latest(partitions)

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        found: dict[TopicPartition, int | None] = {}
        for item, at in times.items():
            assert at >= 0, "ListOffsets gives times below 0 another meaning"
            second = -(-at // 1000)
            found[item] = (0 if second <= 7 else None) if item == T1 else max(10, second) if second < 100 else None
        return found

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {item: 50 if (group, item) == ("g", T0) else None for item in partitions}


def batch(**more: str) -> ReadOptions:
    return batch_options({**BASE, **more})


def stream(**more: str) -> ReadOptions:
    return stream_options({**BASE, **{name.replace("group_id", "group.id"): value for name, value in more.items()}})


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (batch(), {T0: 10, T1: 0}),
        (stream(), {T0: 100, T1: 5}),
        (stream(startingOffsets="earliest"), {T0: 10, T1: 0}),
        (batch(startingOffsets='{"t": {"0": 42, "1": -2}}'), {T0: 42, T1: 0}),
        (stream(startingOffsets='{"t": {"0": -1, "1": 3}}'), {T0: 100, T1: 3}),
        (batch(startingTimestamp="7000"), {T0: 10, T1: 0}),
        (batch(startingOffsetsByTimestamp='{"t": {"0": 60500, "1": 0}}'), {T0: 61, T1: 0}),
        (batch(startingTimestamp="8000", startingOffsetsByTimestampStrategy="latest"), {T0: 10, T1: 5}),
        (stream(group_id="g", startingOffsets="group"), {T0: 50, T1: 5}),
        (batch(startingTimestamp="-1"), {T0: 10, T1: 0}),
        (batch(startingTimestamp="-2208988800000"), {T0: 10, T1: 0}),
        (stream(startingOffsetsByTimestamp='{"t": {"0": -2, "1": -1}}'), {T0: 10, T1: 0}),
        (batch(startingTimestamp="-3", startingOffsetsByTimestampStrategy="latest"), {T0: 10, T1: 0}),
    ],
)
def test_starts(options: ReadOptions, found: Offsets) -> None:
    assert starting_offsets(options, BOTH, Logs()) == found


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (batch(), {T0: 100, T1: 5}),
        (batch(endingOffsets='{"t": {"0": 42, "1": -1}}'), {T0: 42, T1: 5}),
        (batch(endingTimestamp="20000"), {T0: 20, T1: 5}),
        (batch(endingTimestamp="-1"), {T0: 10, T1: 0}),
        (batch(endingOffsetsByTimestamp='{"t": {"0": -2208988800000, "1": 900000}}'), {T0: 10, T1: 5}),
        (batch(endingOffsetsByTimestamp='{"t": {"0": 20000, "1": 900000}}'), {T0: 20, T1: 5}),
    ],
)
def test_ends(options: ReadOptions, found: Offsets) -> None:
    assert ending_offsets(options, BOTH, Logs(), {}) == found


def test_without_partitions_no_request_is_sent() -> None:
    assert starting_offsets(batch(), (), Logs()) == {}


def test_a_time_without_records_is_refused_with_the_way_out() -> None:
    with pytest.raises(OptionError, match=r"t-1 has records, or .*startingOffsetsByTimestampStrategy=latest"):
        starting_offsets(batch(startingTimestamp="8000"), BOTH, Logs())


@pytest.mark.parametrize("option", ["startingOffsets", "startingOffsetsByTimestamp"])
def test_each_partition_needs_its_offset(option: str) -> None:
    with pytest.raises(OptionError, match=rf"{option} .*t-0, t-1"):
        starting_offsets(batch(**{option: '{"t": {"0": 12}}'}), BOTH, Logs())


@pytest.mark.parametrize("offset", [9, 101])
def test_a_starting_offset_outside_the_log_is_data_loss(offset: int) -> None:
    with pytest.raises(DataLost, match=rf"t-0: {offset} is not in 10-100.*failOnDataLoss=false"):
        starting_offsets(batch(startingOffsets=f'{{"t": {{"0": {offset}, "1": 0}}}}'), BOTH, Logs())


def test_lost_data_can_be_lived_with(caplog: pytest.LogCaptureFixture) -> None:
    options = batch(startingOffsets='{"t": {"0": 9, "1": 7}}', failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        assert starting_offsets(options, BOTH, Logs()) == {T0: 10, T1: 5}
    assert "t-0: 9 is not in 10-100" in caplog.text


def test_a_group_offset_outside_the_log_is_data_loss() -> None:
    class Shorter(Logs):
        def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
            return {item: {T0: 60, T1: 0}[item] for item in partitions}

    with pytest.raises(DataLost, match="t-0: 50"):
        starting_offsets(stream(group_id="g", startingOffsets="group"), BOTH, Shorter())


@pytest.mark.parametrize(
    ("options", "is_so"),
    [
        (stream(), False),
        (stream(startingOffsets="earliest"), True),
        (stream(startingOffsets='{"t": {"0": 4, "1": -2}}'), True),
        (stream(startingOffsets='{"t": {"0": 4, "1": -1}}'), False),
        (stream(startingTimestamp="7000"), True),
        (stream(startingTimestamp="7000", startingOffsetsByTimestampStrategy="latest"), False),
        (stream(startingOffsets="group", group_id="g"), False),
    ],
)
def test_some_starts_can_be_found_again(options: ReadOptions, is_so: bool) -> None:
    assert is_reproducible(options) is is_so
