from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from rota.coordinator.log.contract import Appended, AppendRefused, LogConfig, OffsetOutOfRange, Pair, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica.partition import Partition
from rota.coordinator.scheduling.timers import TimerHeap
from rota.protocol.errors import ErrorCode
from rota.protocol.records.record import Record, write_batch

NOW_MS = 1_700_000_000_000


def alone(leader_epoch: int) -> PartitionState:
    """The state of a partition whose only replica is here."""
    return PartitionState(index=3, leader=0, replicas=(0,), isr=(0,), leader_epoch=leader_epoch)


def partition() -> Partition:
    return Partition("t", bytes(16), 3, 5, MemoryLog())


def batch(value: bytes = b"v") -> bytes:
    return write_batch([Record(0, NOW_MS, b"k", value, ())])


class FullDisk(MemoryLog):
    """A log whose medium is full, for reading as well: what a dead disk looks like."""

    __slots__ = ()

    def append(self, batches: bytes | memoryview, **settings: Any) -> Appended:
        raise StorageFailed("no space left on device")

    def append_pairs(self, pairs: list[Pair], *, leader_epoch: int, now_ms: int) -> Appended:
        raise StorageFailed("no space left on device")

    def append_encoded(self, records: bytes, count: int, *, leader_epoch: int, now_ms: int) -> int:
        raise StorageFailed("no space left on device")

    def read(
        self, offset: int, bytes_max: int, *, until: int | None = None, first_whole: bool = True, wait: bool = True
    ) -> bytes:
        raise StorageFailed("no such device")


def test_appended_records_are_readable_up_to_the_high_watermark() -> None:
    replica = partition()
    assert replica.append(batch(b"first"), NOW_MS).base_offset == 0
    assert replica.append_pairs([(b"k", b"second")], NOW_MS).base_offset == 1
    assert (replica.log_start_offset, replica.high_watermark) == (0, 2)
    assert b"first" in replica.read(0, 1 << 20)
    assert b"first" not in replica.read(1, 1 << 20)
    assert replica.read(2, 1 << 20) == b""
    with pytest.raises(OffsetOutOfRange):
        replica.read(3, 1)


def flushing() -> Partition:
    return Partition("t", bytes(16), 3, 5, MemoryLog(LogConfig(flush_messages=1)))


def flush(replica: Partition) -> None:
    replica.log.flush()
    replica.flushed()


def test_with_flush_on_append_records_are_readable_only_after_the_flush() -> None:
    replica = flushing()
    calls: list[int] = []
    replica.watch(lambda: calls.append(replica.high_watermark))
    replica.append(batch(), NOW_MS)
    assert (replica.high_watermark, replica.log.log_end_offset) == (0, 1)
    assert replica.read(0, 1 << 20) == b""
    replica.log.flush()
    replica.flushed()
    assert replica.read(0, 1 << 20) != b""
    assert calls == [1]


def test_appended_batches_have_the_leader_epoch() -> None:
    replica = partition()
    replica.append(batch(), NOW_MS)
    assert replica.log.epoch_end(5) == (5, 1)


def test_watchers_are_called_after_each_append_until_they_leave() -> None:
    replica, calls = partition(), list[str]()
    first = replica.watch(lambda: calls.append("first"))
    second = replica.watch(lambda: calls.append("second"))
    assert first != second
    replica.append(batch(), NOW_MS)
    replica.unwatch(first)
    replica.unwatch(first)
    replica.append_pairs([(None, b"v")], NOW_MS)
    assert calls == ["first", "second", "second"]


def test_watchers_may_be_added_and_removed_while_they_are_called() -> None:
    replica, calls = partition(), list[str]()

    def leave() -> None:
        calls.append("left")
        replica.unwatch(waiter)
        replica.watch(lambda: calls.append("came"))

    waiter = replica.watch(leave)
    replica.append(batch(), NOW_MS)
    replica.append(batch(), NOW_MS)
    assert calls == ["left", "came"]


def test_a_refused_batch_wakes_no_fetch_and_changes_nothing() -> None:
    replica, calls = partition(), list[int]()
    replica.watch(lambda: calls.append(1))
    with pytest.raises(AppendRefused):
        replica.append(b"garbage" * 20, NOW_MS)
    assert calls == []
    assert replica.error is ErrorCode.NONE


@pytest.mark.parametrize(
    "use",
    [
        lambda replica: replica.append(batch(), NOW_MS),
        lambda replica: replica.append_pairs([], 0),
        lambda replica: replica.append_encoded(b"", 0, 0, 0),
        lambda replica: replica.read(0, 1),
    ],
)
def test_a_failed_disk_takes_the_partition_offline_and_answers_waiting_requests(
    use: Callable[[Partition], object],
) -> None:
    replica, calls = Partition("t", bytes(16), 0, 0, FullDisk()), list[int]()
    replica.watch(lambda: calls.append(1))
    with capture_logs() as logs, pytest.raises(StorageFailed):
        use(replica)
    assert replica.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert calls == [1]
    assert [line["event"] for line in logs] == ["Partition offline"]
    with pytest.raises(StorageFailed, match="t-0 is offline: no s"):
        replica.append(batch(), NOW_MS)
    with pytest.raises(StorageFailed):
        _ = replica.high_watermark


def test_the_first_reason_stays() -> None:
    replica = partition()
    with capture_logs() as logs:
        replica.fail("disk")
        replica.fail("another")
        replica.close()
    assert replica.offline == "disk"
    assert len(logs) == 1
    assert repr(replica) == "<Partition t-3 offline>"


def test_closing_is_no_failure() -> None:
    replica, calls = partition(), list[int]()
    replica.watch(lambda: calls.append(1))
    with capture_logs() as logs:
        replica.close()
    assert logs == []
    assert calls == [1]


def test_a_reopened_partition_is_online_in_a_new_epoch_and_wakes_waiting_requests() -> None:
    log, woken = MemoryLog(), list[int]()
    replica = Partition("t", b"", 0, 3, log)
    replica.watch(lambda: woken.append(1))
    replica.fail("the disk is full")
    replica.reopen(log, alone(4), 0)
    assert (replica.offline, replica.error, replica.leader_epoch, replica.log, woken) == (
        None,
        ErrorCode.NONE,
        4,
        log,
        [1, 1],
    )


# ---- waiting


class Answers:
    """What the waits of a partition were answered, in order."""

    def __init__(self) -> None:
        self.got: list[tuple[str, ErrorCode]] = []

    def wait(self, replica: Partition, offset: int, deadline_ms: int = NOW_MS + 1_000, name: str = "") -> None:
        replica.when_committed(offset, deadline_ms, lambda error: self.got.append((name or str(offset), error)))


def test_committed_writes_are_answered_at_once() -> None:
    replica, answers = partition(), Answers()
    replica.append(batch(), NOW_MS)
    answers.wait(replica, 1)
    assert answers.got == [("1", ErrorCode.NONE)]


@pytest.mark.parametrize("make", [partition, flushing], ids=["to the system", "to the medium"])
@pytest.mark.parametrize("end", [Partition.close, lambda replica: replica.fail("broken"), lambda replica: None])
def test_a_committed_offset_is_answered_at_once(
    make: Callable[[], Partition], end: Callable[[Partition], None]
) -> None:
    replica, answers = make(), list[ErrorCode]()
    replica.append_pairs([(b"k", b"v")], NOW_MS)
    end(replica)
    replica.when_committed(1, NOW_MS, answers.append)
    assert replica.is_committed(1) is (answers == [ErrorCode.NONE])


def test_waits_are_answered_in_the_order_of_their_offsets() -> None:
    replica, answers = flushing(), Answers()
    for offset in (1, 2, 3):
        replica.append(batch(), NOW_MS)
        answers.wait(replica, offset)
    answers.wait(replica, 2, name="2 again")
    assert answers.got == []
    flush(replica)
    answers.wait(replica, 3, name="later")
    assert [name for name, _ in answers.got] == ["1", "2", "2 again", "3", "later"]


def test_setting_flush_messages_moves_no_high_watermark_back() -> None:
    replica, answers = partition(), Answers()
    replica.append(batch(), NOW_MS)
    replica.configure(LogConfig(flush_messages=1))
    assert replica.high_watermark == 1
    replica.append(batch(), NOW_MS)
    assert replica.high_watermark == 1
    answers.wait(replica, 1)
    answers.wait(replica, 2)
    assert answers.got == [("1", ErrorCode.NONE)]
    flush(replica)
    assert (replica.high_watermark, len(answers.got)) == (2, 2)


def test_removing_flush_messages_answers_the_waiting_appends() -> None:
    replica, answers = flushing(), Answers()
    replica.append(batch(), NOW_MS)
    answers.wait(replica, 1)
    replica.configure(LogConfig())
    assert answers.got == [("1", ErrorCode.NONE)]


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        (lambda replica: replica.fail("the disk is gone"), ErrorCode.KAFKA_STORAGE_ERROR),
        (lambda replica: replica.close(), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_partition_that_stops_answers_its_waiting_requests(
    stop: Callable[[Partition], None], error: ErrorCode
) -> None:
    replica, answers = flushing(), Answers()
    replica.append(batch(), NOW_MS)
    answers.wait(replica, 1)
    replica.when_flushed(1, NOW_MS + 1_000, lambda code: answers.got.append(("flushed", code)))
    stop(replica)
    stop(replica)
    assert answers.got == [("1", error), ("flushed", error)]
    answers.wait(replica, 1)
    assert answers.got[2:] == [("1", ErrorCode.KAFKA_STORAGE_ERROR)]


def test_each_wait_ends_at_its_deadline() -> None:
    timers, answers = TimerHeap(), Answers()
    replica = Partition("t", bytes(16), 3, 5, MemoryLog(LogConfig(flush_messages=1)), timers=timers)
    replica.append(batch(), NOW_MS)
    for after_ms in (300, 100, 200):
        answers.wait(replica, 1, NOW_MS + after_ms, name=str(after_ms))
    for now_ms in range(NOW_MS, NOW_MS + 260, 20):
        for call in timers.due(now_ms):
            call()
    timed_out = ErrorCode.REQUEST_TIMED_OUT
    assert answers.got == [("100", timed_out), ("200", timed_out)]
    flush(replica)
    assert answers.got[2:] == [("300", ErrorCode.NONE)]


def test_a_closed_partition_leaves_no_timer() -> None:
    timers = TimerHeap()
    replica = Partition("t", bytes(16), 3, 5, MemoryLog(LogConfig(flush_messages=1)), timers=timers)
    replica.append(batch(), NOW_MS)
    Answers().wait(replica, 1)
    assert len(timers) == 1
    replica.close()
    assert len(timers) == 0


def test_an_answer_that_appends_keeps_the_order() -> None:
    replica, got = flushing(), list[int]()

    def first(error: ErrorCode) -> None:
        replica.append(batch(), NOW_MS)
        replica.configure(LogConfig())  # everything is committed now, and the third wait could overtake the second
        replica.when_committed(3, NOW_MS, lambda error: got.append(3))
        got.append(1)

    replica.append(batch(), NOW_MS)
    replica.append(batch(), NOW_MS)
    replica.when_committed(1, NOW_MS + 1_000, first)
    replica.when_committed(2, NOW_MS + 1_000, lambda error: got.append(2))
    replica.when_committed(3, NOW_MS + 1_000, lambda error: got.append(33))
    flush(replica)
    assert got == [1, 2, 33, 3]


def test_an_exception_in_one_answer_affects_no_other() -> None:
    replica, answers = flushing(), Answers()
    replica.append(batch(), NOW_MS)

    def mistaken(error: ErrorCode) -> None:
        raise ZeroDivisionError

    replica.when_committed(1, NOW_MS + 1_000, mistaken)
    answers.wait(replica, 1)
    with capture_logs() as logs:
        flush(replica)
    assert answers.got == [("1", ErrorCode.NONE)]
    assert [line["event"] for line in logs] == ["Answer of a wait failed"]


def test_acks_1_waits_for_the_flush_of_the_leader() -> None:
    replica, got = flushing(), list[ErrorCode]()
    replica.append(batch(), NOW_MS)
    replica.when_flushed(1, NOW_MS + 1_000, got.append)
    assert got == []
    flush(replica)
    replica.when_flushed(1, NOW_MS + 1_000, got.append)
    assert got == [ErrorCode.NONE] * 2


def test_a_reopened_log_continues_where_recovery_ended() -> None:
    replica, answers = flushing(), Answers()
    replica.append(batch(), NOW_MS)
    flush(replica)
    replica.append(batch(), NOW_MS)
    log = replica.log
    replica.fail("the disk is away")
    assert isinstance(log, MemoryLog)
    log.crash()
    replica.reopen(log, alone(6), 0)
    assert (replica.error, replica.leader_epoch, replica.high_watermark) == (ErrorCode.NONE, 6, 1)
    replica.append(batch(), NOW_MS)
    answers.wait(replica, 2)
    flush(replica)
    assert answers.got == [("2", ErrorCode.NONE)]


def test_a_partition_reopened_after_a_failed_start_waits_for_its_flush() -> None:
    replica = Partition("t", bytes(16), 0, 0, None)
    replica.fail("the disk is away")
    log = MemoryLog(LogConfig(flush_messages=1))
    log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
    replica.reopen(log, alone(1), 0)
    assert replica.high_watermark == 0, "its record is not on the medium yet"
    flush(replica)
    assert replica.high_watermark == 1


def test_acks_all_has_its_minimum_capped_by_the_number_of_replicas() -> None:
    replica = Partition("t", bytes(16), 0, 0, MemoryLog(LogConfig(min_insync_replicas=2)))
    replica.append(batch(), NOW_MS)
    assert (replica.state.has_min_isr, replica.high_watermark) == (True, 1)


def test_the_high_watermark_is_never_below_the_log_start() -> None:
    """Retention deletes whole segments, flushed or not."""
    replica = flushing()
    replica.append(batch(), NOW_MS)
    replica.append(batch(), NOW_MS)
    assert replica.begin_delete_before(1) is None
    assert (replica.state.log_start_offset, replica.high_watermark) == (1, 1)
    replica.log.config = LogConfig(flush_messages=1, retention_ms=1_000)
    replica.log.retain(NOW_MS + 1_000_000)
    replica.log_start_moved()
    assert (replica.log_start_offset, replica.high_watermark) == (2, 2)


def test_a_disk_that_fails_to_delete_takes_it_offline() -> None:
    class Stuck(MemoryLog):
        def begin_delete_before(self, offset: int) -> Callable[[], None] | None:
            raise StorageFailed("read-only file system")

    replica = Partition("t", bytes(16), 0, 0, Stuck())
    with capture_logs(), pytest.raises(StorageFailed):
        replica.begin_delete_before(1)
    assert replica.offline == "read-only file system"


class TestRoles:
    """A partition with three replicas, here as broker 1."""

    @staticmethod
    def placed(leader: int, leader_epoch: int, version: int = 0, isr: tuple[int, ...] = (1, 2, 3)) -> PartitionState:
        return PartitionState(
            index=0, leader=leader, replicas=(1, 2, 3), isr=isr, leader_epoch=leader_epoch, version=version
        )

    def leading(self) -> Partition:
        return Partition("t", bytes(16), 0, 0, MemoryLog(), broker_id=1, placed=self.placed(1, 5, 7), now_ms=NOW_MS)

    def test_a_state_older_than_the_last_one_changes_nothing(self) -> None:
        replica = self.leading()
        replica.apply(self.placed(2, 4, 9), NOW_MS)
        replica.apply(self.placed(1, 5, 6, isr=(1,)), NOW_MS)
        assert (replica.is_leader, replica.leader_epoch, replica.state.isr) == (True, 5, {1, 2, 3})

    def test_a_new_isr_of_the_same_epoch_counts_at_once(self) -> None:
        replica = self.leading()
        replica.append(batch(), NOW_MS)
        replica.apply(self.placed(1, 5, 8, isr=(1,)), NOW_MS)
        assert replica.state.isr == {1}
        assert replica.high_watermark == 1

    def test_an_unanswered_isr_change_bounds_the_high_watermark_despite_the_image(self) -> None:
        """RE2. The image may be older than the change that is being written."""
        replica = self.leading()
        replica.apply(self.placed(1, 5, 8, isr=(1,)), NOW_MS)
        replica.tick(NOW_MS + 30_001)
        replica.follower_fetched(2, 0, NOW_MS + 30_001)  # asks for {1, 2}
        replica.append(batch(), NOW_MS)
        replica.apply(self.placed(1, 5, 9, isr=(1,)), NOW_MS)
        replica.tick(NOW_MS + 90_000)
        assert replica.high_watermark == 0
        replica.isr_refused(5)
        replica.tick(NOW_MS + 90_000)
        assert replica.high_watermark == 1

    def test_watchers_are_notified_of_a_new_leader(self) -> None:
        replica, calls = self.leading(), list[str]()
        replica.watch(lambda: calls.append("commits"))
        appends = replica.watch_appends(lambda: calls.append("appends"))
        replica.append(batch(), NOW_MS)
        assert calls == ["appends"]
        replica.apply(self.placed(2, 6), NOW_MS)
        assert calls == ["appends", "commits", "appends"]
        replica.unwatch(appends)
        replica.apply(self.placed(1, 7), NOW_MS)
        assert calls == ["appends", "commits", "appends", "commits"]
        assert replica.is_leader
