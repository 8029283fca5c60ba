from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch

from rota.coordinator.log.contract import AppendRefused, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica import follower_log
from rota.coordinator.replica.partition import Partition
from rota.protocol.errors import ErrorCode
from rota.protocol.records.control import Marker
from rota.protocol.records.fast import encode_pairs

EPOCH = 4


def placed(leader: int, leader_epoch: int = EPOCH, version: int = 0) -> PartitionState:
    replicas = (1, 2)
    return PartitionState(
        index=0, leader=leader, replicas=replicas, isr=replicas, leader_epoch=leader_epoch, version=version
    )


def partition(broker_id: int, leader: int = 1) -> Partition:
    return Partition("t", bytes(16), 0, EPOCH, MemoryLog(), broker_id=broker_id, placed=placed(leader))


def leader_with(*values: bytes) -> Partition:
    leader = partition(1)
    for value in values:
        leader.append(batch(value), NOW_MS)
    return leader


def copy(leader: Partition, follower: Partition) -> bool:
    records = leader.read(follower.log.log_end_offset, 1 << 20, uncommitted=True)
    return follower_log.append(follower, records, EPOCH)


def end(cut: follower_log.StartedTruncation) -> None:
    """All that comes after the beginning, in one thread."""
    for work in (cut.write, cut.read, cut.remove()):
        if work is not None:
            work()
    cut.finish()


def test_a_follower_copies_records_and_the_high_watermark_of_its_leader() -> None:
    leader, follower = leader_with(b"a", b"b"), partition(2)
    moved: list[int] = []
    follower.watch(lambda: moved.append(follower.high_watermark))
    assert copy(leader, follower)
    assert follower.log.log_end_offset == 2
    assert follower.high_watermark == 0
    follower_log.take_bounds(follower, 1, 0, EPOCH)
    assert (follower.high_watermark, moved) == (1, [1])
    follower_log.take_bounds(follower, 9, 0, EPOCH)
    assert follower.high_watermark == 2
    assert not copy(leader, follower)


def test_the_log_start_follows_the_leader_but_not_past_the_high_watermark() -> None:
    leader, follower = leader_with(b"a", b"b", b"c"), partition(2)
    copy(leader, follower)
    follower_log.take_bounds(follower, 1, 2, EPOCH)
    assert follower.log_start_offset == 0
    follower_log.take_bounds(follower, 3, 2, EPOCH)
    assert follower.log_start_offset == 2


def test_truncation_removes_records_and_calls_on_truncated() -> None:
    leader, follower = leader_with(b"a", b"b", b"c"), partition(2)
    copy(leader, follower)
    follower_log.take_bounds(follower, 3, 0, EPOCH)
    high_watermarks: list[int] = []
    follower.on_truncated = lambda: high_watermarks.append(follower.log.log_end_offset)
    end(follower_log.begin_truncate(follower, 1, EPOCH))
    assert (follower.log.log_end_offset, follower.high_watermark, high_watermarks) == (1, 1, [1])
    assert copy(leader, follower)
    assert follower.log.log_end_offset == 3


def test_a_log_that_starts_afresh_begins_where_the_leader_begins() -> None:
    follower = partition(2)
    end(follower_log.begin_truncate_fully_and_start_at(follower, 70, EPOCH))
    assert (follower.log_start_offset, follower.log.log_end_offset, follower.high_watermark) == (70, 70, 70)


@pytest.mark.parametrize(
    "write",
    [
        lambda to, epoch: follower_log.append(to, b"", epoch),
        lambda to, epoch: follower_log.take_bounds(to, 1, 0, epoch),
        lambda to, epoch: follower_log.begin_truncate(to, 0, epoch),
        lambda to, epoch: follower_log.begin_truncate_fully_and_start_at(to, 0, epoch),
    ],
)
def test_nothing_is_taken_from_a_leader_of_another_epoch(write: object) -> None:
    """RE5."""
    assert callable(write)
    for to, epoch in ((partition(2), EPOCH - 1), (partition(2), EPOCH + 1), (partition(1), EPOCH)):
        with pytest.raises(AppendRefused) as refused:
            write(to, epoch)
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_whose_log_fails_is_offline() -> None:
    class FullDisk(MemoryLog):
        __slots__ = ()

        def append_as_follower(self, batches: bytes | memoryview, *, leader_epoch: int) -> None:
            raise StorageFailed("no space left on device")

    follower = Partition("t", bytes(16), 0, EPOCH, FullDisk(), broker_id=2, placed=placed(1))
    with pytest.raises(StorageFailed):
        copy(leader_with(b"a"), follower)
    assert follower.offline == "no space left on device"


def test_a_follower_takes_over_the_state_of_idempotent_producers() -> None:
    """The batch of a producer that retries at the new leader is known there."""
    leader, follower = partition(1), partition(2)
    sent = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
    leader.append(sent, NOW_MS)
    copy(leader, follower)
    follower.apply(placed(2, EPOCH + 1), NOW_MS)
    again = follower.append(sent, NOW_MS)
    assert (again.duplicate, again.base_offset) == (True, 0)


def test_only_a_leader_appends_and_only_in_its_epoch() -> None:
    """RE5."""
    follower = partition(2)
    with pytest.raises(AppendRefused) as refused:
        follower.append(batch(b"a"), NOW_MS)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(StorageFailed):
        follower.append_pairs([(b"k", b"v")], NOW_MS)
    leader = partition(1)
    with pytest.raises(StorageFailed):
        leader.append_pairs([(b"k", b"v")], NOW_MS, EPOCH - 1)
    for replica, epoch in ((follower, EPOCH), (leader, EPOCH - 1)):
        with pytest.raises(StorageFailed):
            replica.append_encoded(encode_pairs([(b"k", b"v")]), 1, NOW_MS, epoch)
    assert leader.offline is follower.offline is None
    assert leader.append_pairs([(b"k", b"v")], NOW_MS, EPOCH).base_offset == 0
    assert leader.append_encoded(encode_pairs([(b"k", b"v")]), 1, NOW_MS, EPOCH) == 2


class TestCuts:
    """A truncation that has begun, and waits for a thread."""

    @pytest.fixture
    def follower(self) -> Partition:
        follower = partition(2)
        copy(leader_with(b"a", b"b", b"c"), follower)
        return follower

    def test_records_remain_until_the_truncation_is_finished(self, follower: Partition) -> None:
        cut = follower_log.begin_truncate(follower, 1, EPOCH)
        assert follower.log.log_end_offset == 3
        end(cut)
        assert follower.log.log_end_offset == follower.state.log_end_offset == 1
        end(cut)
        assert follower.pending_cut is None

    def test_a_new_leader_keeps_the_records_of_a_truncation_that_has_only_begun(self, follower: Partition) -> None:
        """RF5. As if it had been elected before. Nothing that it appends is cut by the end of the truncation."""
        cut = follower_log.begin_truncate(follower, 1, EPOCH)
        follower.apply(placed(2, EPOCH + 1), NOW_MS)
        assert follower.append(batch(b"d"), NOW_MS).base_offset == 3
        end(cut)
        cut.failed(StorageFailed("the checkpoint cannot be written"))
        assert follower.pending_cut is None
        assert (follower.offline, follower.log.log_end_offset) == (None, 4)

    def test_records_are_gone_when_their_removal_begins(self, follower: Partition) -> None:
        """RF5. No read meets a file that a thread removes just then."""
        cut = follower_log.begin_truncate(follower, 1, EPOCH)
        change_files = cut.remove()
        assert change_files is not None
        assert follower.log.log_end_offset == follower.state.log_end_offset == 1
        change_files()
        cut.finish()
        assert (follower.offline, follower.pending_cut, follower.log.log_end_offset) == (None, None, 1)

    def test_a_role_change_while_files_are_removed_takes_the_partition_offline(self, follower: Partition) -> None:
        """RF5. What a new leader appends has to wait for the end; the reopening does."""
        cut = follower_log.begin_truncate(follower, 1, EPOCH)
        change_files = cut.remove()
        follower.apply(placed(2, EPOCH + 1), NOW_MS)
        assert follower.offline is not None
        assert change_files is not None
        change_files()
        cut.finish()
        assert (cut.remove(), follower.pending_cut) == (None, None)

    def test_another_leader_begins_its_own_truncation(self, follower: Partition) -> None:
        """RF5."""
        first = follower_log.begin_truncate(follower, 1, EPOCH)
        follower.apply(placed(1, EPOCH + 1), NOW_MS)
        second = follower_log.begin_truncate(follower, 2, EPOCH + 1)
        end(first)
        assert follower.log.log_end_offset == 3
        end(second)
        assert follower.log.log_end_offset == 2

    def test_records_that_follow_the_log_cancel_a_truncation(self, follower: Partition) -> None:
        """RF5. The leader has compared the logs before it sent them."""
        cut = follower_log.begin_truncate(follower, 1, EPOCH)
        records = leader_with(b"a", b"b", b"c", b"d").read(3, 1 << 20, uncommitted=True)
        assert follower_log.append(follower, records, EPOCH)
        end(cut)
        assert follower.log.log_end_offset == 4

    def test_a_truncation_of_all_records_is_not_cancelled_but_finished_by_a_reopening(
        self, follower: Partition
    ) -> None:
        """RF5. The medium may have the new log start already: a crash would remove what a new leader appends."""
        cut = follower_log.begin_truncate_fully_and_start_at(follower, 70, EPOCH)
        follower.apply(placed(2, EPOCH + 1), NOW_MS)
        assert follower.offline is not None
        end(cut)
        assert follower.pending_cut is None

    @pytest.mark.parametrize("begin", [follower_log.begin_truncate, follower_log.begin_truncate_fully_and_start_at])
    def test_another_isr_of_the_same_leader_epoch_cancels_nothing(
        self, follower: Partition, begin: Callable[[Partition, int, int], follower_log.StartedTruncation]
    ) -> None:
        """RF5. A leader takes a follower that lags out of the ISR just then."""
        cut = begin(follower, 1, EPOCH)
        follower.apply(placed(1, version=1), NOW_MS)
        assert follower.offline is None
        end(cut)
        assert (follower.pending_cut, follower.log.log_end_offset) == (None, 1)

    def test_a_truncation_that_fails_takes_the_partition_offline(self, follower: Partition) -> None:
        cut = follower_log.begin_truncate(follower, 1, EPOCH)
        cut.failed(StorageFailed("no space left on device"))
        end(cut)
        assert follower.offline == "no space left on device"

    def test_a_truncation_of_a_closed_log_does_nothing(self, follower: Partition) -> None:
        cut = follower_log.begin_truncate(follower, 1, EPOCH)
        follower.close()
        end(cut)
        assert follower.pending_cut is None


def test_a_follower_that_leads_has_the_transactions_of_its_leader() -> None:
    """XL1, XL2: an open one, and an aborted one whose marker was not committed before."""
    leader, follower = partition(1), partition(2)
    for producer_id in (7, 8):
        verification = leader.log.producers.begin_verification(producer_id, 0, 0, NOW_MS)
        records = batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
        leader.append(records, NOW_MS, verification)
    leader.append_marker(Marker(False, 0), producer_id=7, producer_epoch=0, now_ms=NOW_MS)
    assert copy(leader, follower)
    follower_log.take_bounds(follower, 2, 0, EPOCH)
    assert (follower.high_watermark, follower.last_stable_offset) == (2, 0)
    follower.apply(placed(2, EPOCH + 1), NOW_MS)
    follower.follower_fetched(1, 3, NOW_MS)
    assert (follower.high_watermark, follower.last_stable_offset) == (3, 1)
    assert follower.aborted_transactions(0, 1000) == leader.aborted_transactions(0, 1000) == [(7, 0, 2, 1)]
    more = batch(b"b", producer_id=8, producer_epoch=0, base_sequence=1, is_transactional=True)
    assert follower.append(more, NOW_MS).base_offset == 3, "the transaction goes on without a new verification"
    follower.append_marker(Marker(True, 0), producer_id=8, producer_epoch=0, now_ms=NOW_MS)
    follower.follower_fetched(1, 5, NOW_MS)
    assert follower.last_stable_offset == 5
