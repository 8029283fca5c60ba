"""Which segments go: a table."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.retention import expired_count


@dataclass
class Old:
    size_bytes: int
    next_offset: int
    largest_timestamp: int


SEGMENTS = [Old(100, 10, 1000), Old(100, 20, 3000), Old(100, 30, 2000), Old(50, 40, 4000)]
KEEP = LogConfig(retention_ms=None, retention_bytes=None)


@pytest.mark.parametrize(
    ("config", "start", "now_ms", "count"),
    [
        (KEEP, 0, 10**12, 0),
        (LogConfig(retention_ms=1000), 0, 2000, 0),  # exactly that old stays
        (LogConfig(retention_ms=1000), 0, 2001, 1),
        (LogConfig(retention_ms=1000), 0, 3500, 1),  # the third is old, but the second is not
        (LogConfig(retention_ms=1000), 0, 9999, 4),
        (LogConfig(retention_ms=None, retention_bytes=350), 0, 0, 0),
        (LogConfig(retention_ms=None, retention_bytes=251), 0, 0, 0),  # never below what was asked for
        (LogConfig(retention_ms=None, retention_bytes=250), 0, 0, 1),
        (LogConfig(retention_ms=None, retention_bytes=0), 0, 0, 4),
        (LogConfig(retention_ms=1000, retention_bytes=150), 0, 2001, 2),
        (LogConfig(retention_ms=0, retention_bytes=0, delete=False), 0, 9999, 0),
        (LogConfig(retention_ms=0, retention_bytes=0, delete=False), 20, 9999, 2),  # DeleteRecords counts always
        (KEEP, 9, 0, 0),
        (KEEP, 10, 0, 1),
        (KEEP, 40, 0, 4),
    ],
)
def test_expired_segments_by_time_size_and_start(config: LogConfig, start: int, now_ms: int, count: int) -> None:
    assert expired_count(SEGMENTS, config, start, now_ms) == count


@pytest.mark.parametrize(("high_watermark", "count"), [(9, 0), (10, 1), (29, 2), (30, 3), (39, 3), (40, 4)])
@pytest.mark.parametrize("config", [LogConfig(retention_ms=0), LogConfig(retention_ms=None, retention_bytes=0)])
def test_rt3_a_segment_with_records_that_are_not_committed_stays(
    config: LogConfig, high_watermark: int, count: int
) -> None:
    assert expired_count(SEGMENTS, config, 0, 9999, high_watermark) == count


def test_an_empty_segment_stays() -> None:
    assert expired_count([Old(0, 10, -1)], LogConfig(retention_ms=0, retention_bytes=0), 10, 9999) == 0


@pytest.mark.parametrize(
    "config", [LogConfig(retention_ms=1000), LogConfig(retention_ms=None, retention_bytes=100)], ids=["time", "size"]
)
def test_segments_that_compaction_has_emptied_stop_no_retention(config: LogConfig) -> None:
    emptied = [Old(0, 10, -1), Old(0, 20, -1)]
    assert expired_count([*emptied, Old(100, 30, 1000), Old(100, 40, 8000)], config, 0, 8500) == 3
    assert expired_count([Old(100, 10, 1000), Old(0, 20, -1)], config, 0, 500) == 0


def test_segments_that_compaction_has_emptied_go_below_the_log_start() -> None:
    assert expired_count([Old(0, 10, -1), Old(100, 20, 1), Old(100, 30, 1)], KEEP, 20, 0) == 2


def test_records_without_a_timestamp_do_not_expire() -> None:
    assert expired_count([Old(100, 10, -1), Old(100, 20, 5)], LogConfig(retention_ms=0), 0, 9999) == 0
