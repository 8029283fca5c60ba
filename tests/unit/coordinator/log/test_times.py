"""Searching by time: the right record inside the right batch, with the epoch it was written in."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log.contract import LogConfig, TimedOffset
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.log.times import first_since, record_of_max_timestamp
from rota.protocol.records.batch import Codec
from rota.protocol.records.fast import Record
from rota.protocol.records.record import write_batch

from .log_kit import values

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=150)


def log_of(batches: list[list[int]]) -> MemoryLog:
    log = MemoryLog(CONFIG)
    for number, times in enumerate(batches):
        data = write_batch([Record(0, timestamp, None, b"v" * 20) for timestamp in times], codec=Codec(number % 2))
        log.append(data, leader_epoch=3, now_ms=0)
    return log


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=15), st.integers(0, 35), st.integers(0, 9)
)
def test_as_a_list_would_find_it(batches: list[list[int]], target: int, start: int) -> None:
    log, times = log_of(batches), [timestamp for batch in batches for timestamp in batch]
    after = [(offset, time) for offset, time in enumerate(times) if offset >= start and time >= target]
    expected = TimedOffset(*after[0], leader_epoch=3) if after else None
    assert first_since(log._segments, target, start) == expected
    assert record_of_max_timestamp(log._segments) == (
        TimedOffset(times.index(max(times)), max(times), 3) if times else None
    )


def test_append_time_is_the_time_of_every_record() -> None:
    log = MemoryLog(replace(CONFIG, log_append_time=True))
    for now_ms in (500, 600):
        log.append(values(3, timestamp=9), leader_epoch=0, now_ms=now_ms)
    assert log.offset_at(501) == TimedOffset(3, 600, 0)
    assert log.max_timestamp() == TimedOffset(3, 600, 0)


def test_records_without_a_time_are_not_found() -> None:
    log = MemoryLog(CONFIG)
    log.append(values(2, timestamp=-1), leader_epoch=0, now_ms=0)
    assert log.offset_at(0) is None
    assert log.max_timestamp() is None
