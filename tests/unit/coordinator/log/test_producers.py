"""Idempotent producers: a table of what is taken, what is a duplicate, and what is refused with which code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log.contract import AppendRefused
from rota.coordinator.log.producer import BATCHES_PER_PRODUCER_MAX
from rota.coordinator.log.producers import UNPACKED_MAX, Producers
from rota.coordinator.log.snapshots import read_snapshot, write_snapshot
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import CONTROL_BIT, SEQUENCE_MAX, TRANSACTIONAL_BIT, BatchHeader
from rota.protocol.records.control import Marker

PID = 7


def batch(
    sequence: int, count: int = 1, *, epoch: int = 0, offset: int = 0, timestamp: int = 0, attributes: int = 0
) -> BatchHeader:
    delta = count - 1
    return BatchHeader(offset, 61, 0, 2, 0, attributes, delta, timestamp, timestamp, PID, epoch, sequence, count)


def sent(*batches: BatchHeader) -> Producers:
    """Batches that came one after the other, each at the next offset."""
    producers, offset = Producers(), 0
    for header in batches:
        assert producers.check(header) is None
        header.base_offset, offset = offset, offset + header.count
        producers.record(header)
    return producers


def refusal(producers: Producers, header: BatchHeader) -> ErrorCode:
    with pytest.raises(AppendRefused) as refused:
        producers.check(header)
    return refused.value.code


@pytest.mark.parametrize("sequence", [0, 5, SEQUENCE_MAX])
def test_an_unknown_producer_may_start_at_any_sequence(sequence: int) -> None:
    assert Producers().check(batch(sequence)) is None


@pytest.mark.parametrize(
    ("before", "then", "code"),
    [
        ([(0, 3)], (3, 2), None),
        ([(0, 3)], (4, 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(0, 3)], (2, 5), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(0, 3)], (0, 2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),  # another cut of what was sent is no duplicate
        ([(SEQUENCE_MAX - 2, 3)], (0, 4), None),  # int32 wraps to 0
        ([(SEQUENCE_MAX - 2, 3)], (1, 4), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(SEQUENCE_MAX - 1, 4)], (2, 1), None),  # one batch over the edge
    ],
)
def test_sequences_have_no_gap(before: list[tuple[int, int]], then: tuple[int, int], code: ErrorCode | None) -> None:
    producers = sent(*(batch(*arguments) for arguments in before))
    if code is None:
        assert producers.check(batch(*then)) is None
    else:
        assert refusal(producers, batch(*then)) is code


def test_the_last_five_batches_are_known_as_duplicates() -> None:
    producers = sent(*(batch(2 * number, 2, timestamp=number) for number in range(7)))
    for number in range(7 - BATCHES_PER_PRODUCER_MAX, 7):
        first = producers.check(batch(2 * number, 2))
        assert first is not None
        assert (first.first_offset, first.last_offset, first.timestamp) == (2 * number, 2 * number + 1, number)
    assert refusal(producers, batch(2, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_duplicate_over_the_edge_of_int32() -> None:
    producers = sent(batch(SEQUENCE_MAX - 1, 4))
    first = producers.check(batch(SEQUENCE_MAX - 1, 4))
    assert first is not None
    assert (first.first_sequence, first.last_sequence) == (SEQUENCE_MAX - 1, 1)


@pytest.mark.parametrize(
    ("epoch", "sequence", "code"),
    [
        (1, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (1, 4, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, 0, None),
        (3, 4, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_epochs_fence(epoch: int, sequence: int, code: ErrorCode | None) -> None:
    producers = sent(batch(0, 4, epoch=2))
    header = batch(sequence, epoch=epoch)
    if code is None:
        assert producers.check(header) is None
    else:
        assert refusal(producers, header) is code


def test_a_new_epoch_forgets_the_batches_of_the_old() -> None:
    producers = sent(batch(0), batch(1), batch(0, epoch=1))
    assert refusal(producers, batch(1, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.check(batch(1, epoch=1)) is None


def test_a_marker_moves_the_epoch_and_has_no_sequence() -> None:
    producers = sent(batch(0, 2))
    producers.record(batch(-1, epoch=1, offset=2, attributes=CONTROL_BIT))
    producer = producers.get(PID)
    assert producer is not None
    assert (producer.epoch, producer.last_sequence, producer.last_offset) == (1, -1, -1)
    assert producers.check(batch(0, epoch=1)) is None
    assert refusal(producers, batch(5, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_inactive_producer_expires() -> None:
    producers = sent(batch(0, timestamp=1000))
    producers.expire(1999, 1000)
    assert refusal(producers, batch(9)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers.expire(2000, 1000)
    assert producers.check(batch(9)) is None


def of(producer_id: int, sequence: int, *, attributes: int = 0, offset: int = 0) -> BatchHeader:
    """Return a batch of one record of this producer."""
    header = batch(sequence, attributes=attributes, offset=offset)
    header.producer_id = producer_id
    return header


def ids(producers: Producers) -> list[int]:
    return sorted(producer.producer_id for producer in producers.all())


def wrote(*batches: BatchHeader) -> Producers:
    """Return the producers of these batches, which were written before."""
    producers = Producers()
    for header in batches:
        producers.record(header)
    return producers


class TestTheLimitOfProducers:
    @pytest.fixture(autouse=True)
    def limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rota.coordinator.log.producers.PRODUCERS_PER_LOG_MAX", 3)

    def test_the_producer_that_wrote_least_recently_is_removed(self) -> None:
        producers = wrote(of(0, 0), of(1, 0), of(2, 0), of(0, 1), of(3, 0))
        assert ids(producers) == [0, 2, 3]
        assert producers.check(of(0, 1)) is not None, "the duplicate of a producer that is still writing"

    def test_the_order_of_last_use_outlives_a_snapshot(self) -> None:
        before = wrote(of(0, 0), of(1, 0), of(2, 0), of(0, 1, offset=3))
        after = Producers(read_snapshot(write_snapshot(before.all())))
        after.record(of(3, 0))
        before.record(of(3, 0))
        assert ids(after) == ids(before) == [0, 2, 3]

    def test_an_open_transaction_is_kept_and_its_end_is_a_use(self) -> None:
        producers = wrote(of(0, 0, attributes=TRANSACTIONAL_BIT), of(1, 0), of(2, 0), of(3, 0))
        assert ids(producers) == [0, 2, 3]
        producers.record(of(0, -1, attributes=TRANSACTIONAL_BIT | CONTROL_BIT, offset=4), Marker(True, 0))
        producers.record(of(4, 0))
        assert ids(producers) == [0, 3, 4]

    @pytest.mark.parametrize("attributes", [0, TRANSACTIONAL_BIT])
    def test_with_open_transactions_alone_a_new_producer_is_refused_until_one_ends(self, attributes: int) -> None:
        producers = wrote(*(of(producer_id, 0, attributes=TRANSACTIONAL_BIT) for producer_id in range(3)))
        verification = producers.begin_verification(3, 0, 0, 0)
        with pytest.raises(AppendRefused) as refused:
            producers.check(of(3, 0, attributes=attributes), verification)
        assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        producers.check(of(0, 1, attributes=TRANSACTIONAL_BIT))
        producers.record(of(1, -1, attributes=TRANSACTIONAL_BIT | CONTROL_BIT, offset=4), Marker(True, 0))
        producers.check(of(3, 0, attributes=attributes), verification)
        producers.record(of(3, 0, attributes=attributes))
        assert ids(producers) == [0, 2, 3]

    def test_it_holds_for_verifications(self) -> None:
        """A client that makes producer ids up takes no more memory than this."""
        producers = Producers()
        begun = [producers.begin_verification(producer_id, 0, 0, 0) for producer_id in range(4)]
        assert [producers.is_current(verification) for verification in begun] == [False, True, True, True]


def test_an_overlay_leaves_the_truth_alone() -> None:
    producers = sent(batch(0))
    tried = producers.overlay([PID, 99])
    tried.record(batch(1, offset=1))
    assert tried.check(batch(2)) is None
    assert producers.check(batch(1)) is None


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.integers(0, SEQUENCE_MAX), st.data())
def test_retries_never_write_twice_and_never_lose(counts: list[int], first: int, data: st.DataObject) -> None:
    """A producer with five batches in flight retries any of them, in order, as often as it likes."""
    producers, log, sequence = Producers(), list[tuple[int, int]](), first
    for count in counts:
        header = batch(sequence, count, offset=sum(n for _, n in log))
        assert producers.check(header) is None
        producers.record(header)
        log.append((sequence, count))
        back = data.draw(st.integers(1, min(len(log), BATCHES_PER_PRODUCER_MAX)))
        again = producers.check(batch(*log[-back]))
        assert again is not None
        assert again.first_offset == sum(n for _, n in log[:-back])
        sequence = (sequence + count) & SEQUENCE_MAX


def transactional(sequence: int, *, epoch: int = 0, offset: int = 0) -> BatchHeader:
    return batch(sequence, epoch=epoch, offset=offset, attributes=TRANSACTIONAL_BIT)


def end(producers: Producers, offset: int, *, epoch: int = 0, is_commit: bool = False) -> object:
    header = batch(-1, epoch=epoch, offset=offset, attributes=TRANSACTIONAL_BIT | CONTROL_BIT)
    return producers.record(header, Marker(is_commit, 3))


class TestTransactions:
    """XL2, XL4."""

    def test_the_first_batch_needs_the_verification_that_began_last(self) -> None:
        producers, first = Producers(), transactional(0)
        assert refusal(producers, first) is ErrorCode.INVALID_TXN_STATE
        before = producers.begin_verification(PID, 0, 0, 0)
        assert producers.begin_verification(PID, 0, 1, 0) is before, "batches that wait together share it"
        end(producers, 5)
        with pytest.raises(AppendRefused):
            producers.check(first, before)
        assert producers.check(first, producers.begin_verification(PID, 0, 0, 0)) is None
        producers.record(first)
        assert producers.check(transactional(1)) is None, "the transaction is open"
        assert refusal(producers, transactional(0, epoch=1)) is ErrorCode.INVALID_TXN_STATE, "not that of this epoch"

    def test_the_first_batch_is_the_one_with_the_lowest_sequence_of_those_that_wait(self) -> None:
        producers = Producers()
        producers.begin_verification(PID, 0, 3, 0)
        verification = producers.begin_verification(PID, 0, 0, 0)
        with pytest.raises(AppendRefused) as refused:
            producers.check(transactional(3), verification)
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producers.check(transactional(0), verification) is None

    def test_xl7_a_claim_of_a_later_epoch_does_not_refuse_the_batch_that_waits(self) -> None:
        producers = Producers()
        verification = producers.begin_verification(PID, 0, 5, 0)
        assert producers.begin_verification(PID, 1, 0, 0) is verification
        assert producers.check(transactional(5), verification) is None

    def test_an_epoch_that_nobody_gave_is_refused(self) -> None:
        with pytest.raises(AppendRefused) as refused:
            Producers().check(batch(0, epoch=-2))
        assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_with_epoch_bumps_an_unknown_producer_begins_at_sequence_0(self) -> None:
        producers = Producers()
        verification = producers.begin_verification(PID, 0, 3, 0, is_v2=True)
        with pytest.raises(AppendRefused) as refused:
            producers.check(transactional(3), verification)
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_a_batch_outside_of_the_open_transaction_is_refused(self) -> None:
        producers = Producers()
        producers.record(transactional(0))
        assert refusal(producers, batch(1)) is ErrorCode.INVALID_TXN_STATE

    def test_the_last_stable_offset_waits_for_the_commit_of_the_marker(self) -> None:
        producers = Producers()
        assert (producers.last_stable_offset(9), producers.first_unstable_offset) == (9, None)
        producers.record(transactional(0, offset=4))
        assert (producers.last_stable_offset(9), producers.last_stable_offset(3)) == (4, 3)
        assert end(producers, 7) == (PID, 4, 7, 8)
        assert producers.last_stable_offset(7) == 4
        assert producers.last_stable_offset(8) == 8
        assert producers.first_unstable_offset is None

    def test_the_oldest_open_transaction_is_the_last_stable_offset_of_an_aborted_one(self) -> None:
        producers = Producers()
        producers.record(transactional(0, offset=4))
        other = transactional(0, offset=5)
        other.producer_id = PID + 1
        producers.record(other)
        marker = batch(-1, offset=6, attributes=TRANSACTIONAL_BIT | CONTROL_BIT)
        marker.producer_id = PID + 1
        assert producers.record(marker, Marker(False, 3)) == (PID + 1, 5, 6, 4)
        assert end(producers, 7, is_commit=True) is None, "only aborted ones are in the index"

    def test_a_marker_of_an_old_epoch_or_coordinator_is_refused(self) -> None:
        producers = Producers()
        producers.check_marker(PID, 0, 0)
        producers.record(transactional(0, epoch=2))
        for epoch, is_v2 in ((1, False), (1, True), (2, True)):
            with pytest.raises(AppendRefused) as refused:
                producers.check_marker(PID, epoch, 3, is_v2=is_v2)
            assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
        producers.check_marker(PID, 2, 3)
        producers.check_marker(PID, 3, 3, is_v2=True)
        end(producers, 7, epoch=3)
        producers.check_marker(PID, 3, 3, is_v2=True)  # a retry: there is no open transaction
        with pytest.raises(AppendRefused) as refused:
            producers.check_marker(PID, 3, 2)
        assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED

    def test_neither_age_nor_number_removes_an_open_transaction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rota.coordinator.log.producers.PRODUCERS_PER_LOG_MAX", 1)
        producers = Producers()
        producers.record(transactional(0))
        other = batch(0)
        other.producer_id = PID + 1
        producers.record(other)
        producers.expire(10_000, 1)
        assert [producer.producer_id for producer in producers.all()] == [PID]
        stale = producers.begin_verification(PID + 2, 0, 0, 0)
        producers.expire(10_000, 1)
        assert producers.begin_verification(PID + 2, 0, 0, 0) is not stale


def header_of(producer_id: int, offset: int, *, epoch: int = 0, attributes: int = 0) -> BatchHeader:
    return BatchHeader(offset, 61, 0, 2, 0, attributes, 0, offset, offset, producer_id, epoch, 0, 1)


def test_xl10_a_snapshot_packs_a_bounded_number_of_producers() -> None:
    """However many have changed since the last one, and after a restart."""
    count = UNPACKED_MAX + 300
    producers = Producers()
    for producer_id in range(count):
        producers.record(header_of(producer_id, producer_id))
    unpacked = [producer for producer in producers.all() if producer.packed is None]
    assert len(unpacked) == UNPACKED_MAX
    loaded = Producers(read_snapshot(write_snapshot(producers.all())))
    assert all(producer.packed is not None for producer in loaded.all())
    loaded.record(header_of(3, count, epoch=1))
    assert [producer.producer_id for producer in loaded.all() if producer.packed is None] == [3]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["data", "transaction", "commit", "snapshot"])), max_size=30)
)
def test_xl10_what_was_packed_earlier_is_as_if_it_were_packed_now(steps: list[tuple[int, str]]) -> None:
    producers = Producers()
    for offset, (producer_id, kind) in enumerate(steps):
        if kind == "commit":
            header = header_of(producer_id, offset, attributes=TRANSACTIONAL_BIT | CONTROL_BIT)
            producers.record(header, Marker(is_commit=True, coordinator_epoch=offset))
        elif kind == "snapshot":
            write_snapshot(producers.all())
        else:
            attributes = TRANSACTIONAL_BIT if kind == "transaction" else 0
            producers.record(header_of(producer_id, offset, attributes=attributes))
    assert write_snapshot(producers.all()) == write_snapshot(producer.copy() for producer in producers.all())
