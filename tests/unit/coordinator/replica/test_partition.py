from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from rota.coordinator.log.contract import Appended, AppendRefused, LogConfig, OffsetOutOfRange, Pair, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.replica.partition import Partition
from rota.protocol.errors import ErrorCode
from rota.protocol.records.record import Record, write_batch

NOW_MS = 1_700_000_000_000


def partition() -> Partition:
    return Partition("t", bytes(16), 3, 5, MemoryLog())


def batch(value: bytes = b"v") -> bytes:
    return write_batch([Record(0, NOW_MS, b"k", value, ())])


class FullDisk(MemoryLog):
    """A log whose medium is full, for reading as well: what a dead disk looks like."""

    __slots__ = ()

    def append(self, batches: bytes | memoryview, *, leader_epoch: int, now_ms: int) -> Appended:
        raise StorageFailed("no space left on device")

    def append_pairs(self, pairs: list[Pair], *, leader_epoch: int, now_ms: int) -> Appended:
        raise StorageFailed("no space left on device")

    def read(self, offset: int, bytes_max: int, *, until: int | None = None) -> bytes:
        raise StorageFailed("no such device")


def test_what_is_appended_can_be_read_up_to_the_high_watermark() -> None:
    one = partition()
    assert one.append(batch(b"first"), NOW_MS).base_offset == 0
    assert one.append_pairs([(b"k", b"second")], NOW_MS).base_offset == 1
    assert (one.log_start_offset, one.high_watermark) == (0, 2)
    assert b"first" in one.read(0, 1 << 20)
    assert b"first" not in one.read(1, 1 << 20)
    assert one.read(2, 1 << 20) == b""
    with pytest.raises(OffsetOutOfRange):
        one.read(3, 1)


def test_with_flushing_asked_for_nothing_is_read_before_it_is_on_the_medium() -> None:
    one = Partition("t", bytes(16), 3, 5, MemoryLog(LogConfig(flush_messages=1)))
    heard: list[int] = []
    one.watch(lambda: heard.append(one.high_watermark))
    one.append(batch(), NOW_MS)
    assert (one.high_watermark, one.log.log_end_offset) == (0, 1)
    assert one.read(0, 1 << 20) == b""
    one.log.flush()
    one.flushed()
    assert one.read(0, 1 << 20) != b""
    assert heard == [0, 1]


def test_the_leader_epoch_is_in_what_is_kept() -> None:
    one = partition()
    one.append(batch(), NOW_MS)
    assert one.log.epoch_end(5) == (5, 1)


def test_waiters_are_told_of_every_append_until_they_leave() -> None:
    one, heard = partition(), list[str]()
    first = one.watch(lambda: heard.append("first"))
    second = one.watch(lambda: heard.append("second"))
    assert first != second
    one.append(batch(), NOW_MS)
    one.unwatch(first)
    one.unwatch(first)
    one.append_pairs([(None, b"v")], NOW_MS)
    assert heard == ["first", "second", "second"]


def test_a_waiter_may_leave_and_another_come_while_they_are_told() -> None:
    one, heard = partition(), list[str]()

    def leave() -> None:
        heard.append("left")
        one.unwatch(waiter)
        one.watch(lambda: heard.append("came"))

    waiter = one.watch(leave)
    one.append(batch(), NOW_MS)
    one.append(batch(), NOW_MS)
    assert heard == ["left", "came"]


def test_a_refused_batch_wakes_nobody_and_harms_nothing() -> None:
    one, heard = partition(), list[int]()
    one.watch(lambda: heard.append(1))
    with pytest.raises(AppendRefused):
        one.append(b"garbage" * 20, NOW_MS)
    assert heard == []
    assert one.error is ErrorCode.NONE


@pytest.mark.parametrize(
    "use", [lambda one: one.append(batch(), NOW_MS), lambda one: one.append_pairs([], 0), lambda one: one.read(0, 1)]
)
def test_a_failed_disk_takes_it_offline_and_tells_who_waits(use: Callable[[Partition], object]) -> None:
    one, heard = Partition("t", bytes(16), 0, 0, FullDisk()), list[int]()
    one.watch(lambda: heard.append(1))
    with capture_logs() as said, pytest.raises(StorageFailed):
        use(one)
    assert one.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert heard == [1]
    assert [line["event"] for line in said] == ["Partition offline"]
    with pytest.raises(StorageFailed, match="t-0 is offline: no s"):
        one.append(batch(), NOW_MS)
    with pytest.raises(StorageFailed):
        _ = one.high_watermark


def test_the_first_reason_stays() -> None:
    one = partition()
    with capture_logs() as said:
        one.fail("disk")
        one.fail("another")
        one.gone()
    assert one.offline == "disk"
    assert len(said) == 1
    assert repr(one) == "<Partition t-3 offline>"


def test_going_is_no_failure() -> None:
    one, heard = partition(), list[int]()
    one.watch(lambda: heard.append(1))
    with capture_logs() as said:
        one.gone()
    assert said == []
    assert heard == [1]


def test_a_reopened_partition_is_online_in_a_new_epoch_and_wakes_who_waits() -> None:
    log, woken = MemoryLog(), list[int]()
    one = Partition("t", b"", 0, 3, log)
    one.watch(lambda: woken.append(1))
    one.fail("the disk is full")
    one.reopen(log, 4)
    assert (one.offline, one.error, one.leader_epoch, one.log, woken) == (None, ErrorCode.NONE, 4, log, [1, 1])
