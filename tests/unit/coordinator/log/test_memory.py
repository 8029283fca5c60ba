"""The log in memory and its crashes."""

from __future__ import annotations

from dataclasses import replace

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.memory import MemoryLog

from .log_kit import fill, held, offsets, values

CONFIG = LogConfig(segment_bytes=500)


def test_a_crash_loses_unflushed_records() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 3)
    log.flush()
    fill(log, 20)
    log.crash()
    assert offsets(log) == [0, 1, 2]
    assert (log.log_end_offset, log.unflushed_messages) == (3, 0)
    fill(log, 2)
    assert offsets(log) == [0, 1, 2, 3, 4]


def test_a_torn_write_is_cut_at_a_batch() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 12)
    batch_bytes = log.size_bytes // 12
    log.crash(keep_bytes=5 * batch_bytes + batch_bytes // 2)
    assert offsets(log) == [0, 1, 2, 3, 4]


def test_nothing_is_lost_when_all_was_flushed() -> None:
    log = MemoryLog(CONFIG)
    fill(log, 12)
    log.close()
    before = held(log)
    log.crash()
    assert held(log) == before


def test_producers_are_those_of_the_remaining_records() -> None:
    log = MemoryLog(CONFIG)
    for sequence in range(4):
        if sequence == 2:
            log.flush()
        log.append(values(1, producer_id=1, producer_epoch=0, base_sequence=sequence), leader_epoch=7, now_ms=0)
    log.crash()
    again = log.append(values(1, producer_id=1, producer_epoch=0, base_sequence=1), leader_epoch=7, now_ms=0)
    assert (again.duplicate, again.base_offset) == (True, 1)
    log.append(values(1, producer_id=1, producer_epoch=0, base_sequence=2), leader_epoch=8, now_ms=0)
    assert (log.log_end_offset, log.epochs.entries()) == (3, [(7, 0), (8, 2)])


def test_the_start_stays_where_it_was() -> None:
    log = MemoryLog(replace(CONFIG, compact=True))
    fill(log, 10, key=b"k")
    log.delete_before(4)
    log.flush()
    log.crash()
    assert (log.log_start_offset, offsets(log)) == (4, [4, 5, 6, 7, 8, 9])
    log.compact(10, force=True)
    log.crash()
    assert offsets(log)[-1] == 9
