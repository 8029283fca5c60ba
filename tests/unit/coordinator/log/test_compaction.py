"""Compaction: what stays, what goes, what is rewritten; done in slices while the log is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log import compaction
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.memory import MemoryLog
from rota.protocol.records.batch import BatchHeader, Codec

from .log_kit import Pair, append_marker, append_transactional, batch, fill, held, offsets

CONFIG = LogConfig(segment_bytes=1000, compact=True, delete=False, delete_retention_ms=500, retention_ms=None)
K, L, M = b"k", b"l", b"m"


def log_of(*batches: Sequence[Pair], codec: Codec = Codec.NONE, config: LogConfig = CONFIG) -> MemoryLog:
    """Each batch in a segment of its own, and an active segment with one more key."""
    log = MemoryLog(replace(config, segment_bytes=1 << 20))
    for pairs in (*batches, [(b"active", b"")]):
        log.append(batch(*pairs, codec=codec), leader_epoch=0, now_ms=0)
        log._roll(0)
    log.append(batch((K, b"in the active segment")), leader_epoch=0, now_ms=0)
    log.config = config
    return log


def all_headers(log: MemoryLog) -> list[BatchHeader]:
    return [header for segment in log._segments for _, header in segment.walk()]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_value_of_each_key_stays_at_its_offset(codec: Codec) -> None:
    log = log_of([(K, b"1"), (L, b"1"), (K, b"2")], [(M, b"1"), (L, b"2")], [(K, b"3")], codec=codec)
    assert log.compact(10, force=True) > 0
    assert offsets(log) == [3, 4, 5, 6, 7]
    assert [(r.key, r.value) for r in held(log)][:3] == [(M, b"1"), (L, b"2"), (K, b"3")]
    assert {header.codec for header in all_headers(log)[:-1]} <= {codec, Codec.NONE}


def test_the_active_segment_is_not_looked_at() -> None:
    log = log_of([(K, b"1")])
    log.compact(10, force=True)
    assert next((r.key, r.value) for r in held(log)) == (K, b"1")


def test_small_neighbours_become_one_segment() -> None:
    log = log_of(*([(b"key-%d" % n, b"v")] for n in range(5)))
    before = log.segment_count
    log.compact(10, force=True)
    assert (before, log.segment_count) == (7, 2)
    assert offsets(log) == list(range(7))


def test_segments_do_not_outgrow_their_limit() -> None:
    log = log_of(*([(b"key-%d" % n, b"v" * 400)] for n in range(5)))
    log.compact(10, force=True)
    assert log.segment_count == 4
    assert all(segment.size_bytes <= 1000 for segment in log._segments)


def test_tombstones_stay_until_their_horizon() -> None:
    log = log_of([(K, b"1")], [(K, None), (L, b"1")])
    log.compact(1000, force=True)
    assert [(r.offset, r.value) for r in held(log)][:2] == [(1, None), (2, b"1")]
    assert next(header.delete_horizon_ms for header in all_headers(log)) == 1500
    assert [r.timestamp for r in held(log)] == [1000] * 4, "the horizon lies where the base time was"
    log.compact(1499, force=True)
    assert offsets(log)[:2] == [1, 2]
    assert all_headers(log)[0].delete_horizon_ms == 1500, "a later pass does not move it"
    log.compact(1500, force=True)
    assert offsets(log)[:2] == [2, 3]


def test_a_batch_keeps_its_place_sequence_and_epoch() -> None:
    log = MemoryLog(CONFIG)
    mixed = batch((K, b"1"), (L, b"1"), (K, b"2"), producer_id=9, producer_epoch=1, base_sequence=40)
    log.append(mixed, leader_epoch=6, now_ms=0)
    log._roll(0)
    log.compact(10, force=True)
    (header,) = all_headers(log)
    assert (header.base_offset, header.last_offset, header.count, header.leader_epoch) == (0, 2, 2, 6)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (9, 1, 40, 42)


def test_a_producers_last_batch_stays_as_a_header() -> None:
    log = MemoryLog(CONFIG)
    for sequence in range(2):
        data = batch((K, b"v"), producer_id=9, producer_epoch=0, base_sequence=sequence)
        log.append(data, leader_epoch=0, now_ms=0)
    log.append(batch((K, b"last")), leader_epoch=0, now_ms=0)
    log.append(batch((L, b"end")), leader_epoch=0, now_ms=0)
    log._roll(0)
    log.compact(10, force=True)
    assert [(header.base_offset, header.count) for header in all_headers(log)] == [(1, 0), (2, 1), (3, 1)]
    log.producers.clear()  # the producer expires, and its header with it
    log.compact(10, force=True)
    assert [header.base_offset for header in all_headers(log)] == [2, 3]


def test_the_end_of_the_cleaned_part_is_not_forgotten() -> None:
    log = log_of([(K, b"1")])
    log.append(batch((K, b"2")), leader_epoch=0, now_ms=0)
    log._roll(0)
    log.delete_before(0)
    log.append(batch((L, None)), leader_epoch=0, now_ms=0)
    log._roll(0)
    log.compact(0, force=True)
    log.compact(10**6, force=True)
    assert all_headers(log)[-1].last_offset == log.log_end_offset - 1


class TestTransactions:
    def log(self, *, is_commit: bool) -> MemoryLog:
        """A transaction of producer 7 with the keys K and L, its marker, and the key M of nobody's transaction."""
        log = MemoryLog(replace(CONFIG, segment_bytes=1 << 20))
        append_transactional(log, 7, 0, (K, b"1"), (L, b"1"))
        log.append(batch((M, b"1")), leader_epoch=0, now_ms=0)
        append_marker(log, 7, is_commit=is_commit)
        log.append(batch((b"other", b"1"), producer_id=7, producer_epoch=1, base_sequence=0), leader_epoch=0, now_ms=0)
        return log

    def compact(self, log: MemoryLog, now_ms: int) -> list[tuple[int, bool, int]]:
        """Return (base offset, whether it is a control batch, count) of the batches before the last."""
        log._roll(0)
        log.append(batch((b"active", b"")), leader_epoch=0, now_ms=0)
        log.config = CONFIG
        log.producers.committed(log.log_end_offset)
        log.compact(now_ms, force=True)
        return [(h.base_offset, h.is_control, h.count) for h in all_headers(log) if h.base_offset <= 3]

    def test_records_of_an_aborted_transaction_go_first_and_its_marker_later(self) -> None:
        log = self.log(is_commit=False)
        assert self.compact(log, 10) == [(2, False, 1), (3, True, 1)]
        assert log.aborted_transactions(0, log.size_bytes) == [(7, 0, 3, 4)], "a reader may have read the records"
        assert self.compact(log, 20) == [(2, False, 1), (3, True, 1)]
        assert log.aborted_transactions(0, log.size_bytes) == []
        assert self.compact(log, 519) == [(2, False, 1), (3, True, 1)]
        assert self.compact(log, 520) == [(2, False, 1)]

    def test_the_marker_of_a_commit_stays_while_a_record_of_its_transaction_does(self) -> None:
        log = self.log(is_commit=True)
        for now_ms in (10, 20, 1000):
            assert self.compact(log, now_ms) == [(0, False, 2), (2, False, 1), (3, True, 1)]
        log.append(batch((K, b"2"), (L, b"2")), leader_epoch=0, now_ms=0)
        assert self.compact(log, 2000) == [(2, False, 1), (3, True, 1)]
        assert self.compact(log, 3000) == [(2, False, 1), (3, True, 1)], "its delete horizon begins now"
        assert self.compact(log, 3500) == [(2, False, 1)]

    def test_an_aborted_record_hides_no_earlier_value_of_its_key(self) -> None:
        log = MemoryLog(replace(CONFIG, segment_bytes=1 << 20))
        log.append(batch((K, b"committed")), leader_epoch=0, now_ms=0)
        append_transactional(log, 7, 0, (K, b"aborted"))
        append_marker(log, 7, is_commit=False)
        self.compact(log, 10)
        assert [record.value for record in held(log) if record.key == K] == [b"committed"]

    def test_nothing_from_the_first_open_transaction_on_is_compacted(self) -> None:
        log = MemoryLog(replace(CONFIG, segment_bytes=1 << 20))
        log.append(batch((K, b"1")), leader_epoch=0, now_ms=0)
        log._roll(0)
        log.append(batch((K, b"2")), leader_epoch=0, now_ms=0)
        log._roll(0)
        append_transactional(log, 7, 0, (K, b"open"))
        log.append(batch((K, b"3")), leader_epoch=0, now_ms=0)
        self.compact(log, 10)
        assert [(record.offset, record.value) for record in held(log)][:3] == [(1, b"2"), (2, b"open"), (3, b"3")]

    def test_a_removed_segment_of_a_pass_hides_no_aborted_transaction(self) -> None:
        """Law XL5. The marker is in a segment after those that retention has taken from the pass."""
        log = MemoryLog(replace(CONFIG, segment_bytes=1 << 20))
        log.append(batch((M, b"1")), leader_epoch=0, now_ms=0)
        log._roll(0)
        append_transactional(log, 7, 0, (K, b"aborted"))
        log._roll(0)
        log.append(batch((L, b"v" * 1000)), leader_epoch=0, now_ms=0)
        append_marker(log, 7, is_commit=False)
        log._roll(0)
        log.append(batch((b"active", b"")), leader_epoch=0, now_ms=0)
        log.config = replace(CONFIG, delete=True)
        log.producers.committed(log.log_end_offset)
        before = log.aborted_transactions(1, log.size_bytes)
        slices = log.compaction(10, force=True)
        next(slices)()
        log.delete_before(1)
        assert log.retain(10) > 0
        for run in slices:
            run()
        assert 1 in offsets(log), "the pass has ended early"
        assert log.aborted_transactions(1, log.size_bytes) == before == [(7, 1, 3, 4)]

    def test_a_marker_that_alone_has_the_epoch_of_its_producer_stays_as_a_header(self) -> None:
        log = MemoryLog(replace(CONFIG, segment_bytes=1 << 20))
        append_transactional(log, 7, 0, (K, b"1"))
        append_marker(log, 7, epoch=1, is_commit=False)
        for now_ms in (10, 20, 520):
            left = self.compact(log, now_ms)
        assert left[0] == (1, True, 0)
        log.crash()
        producer = log.producers.get(7)
        assert producer is not None
        assert producer.epoch == 1, "an older epoch of the producer stays fenced"


def test_keyless_records_of_former_days_go() -> None:
    log = MemoryLog(replace(CONFIG, compact=False))
    log.append(batch((None, b"v"), (K, b"v")), leader_epoch=0, now_ms=0)
    log._roll(0)
    log.config = CONFIG
    log.compact(10, force=True)
    assert offsets(log) == [1]


@pytest.mark.parametrize(
    ("config", "now_ms", "force", "worth"),
    [
        (CONFIG, 10, False, True),
        (replace(CONFIG, min_compaction_lag_ms=5000), 5999, False, False),
        (replace(CONFIG, min_compaction_lag_ms=5000), 5999, True, False),
        (replace(CONFIG, min_compaction_lag_ms=5000), 6000, False, True),
        (replace(CONFIG, min_cleanable_dirty_ratio=1.0), 10, False, False),
        (replace(CONFIG, min_cleanable_dirty_ratio=1.0), 10, True, True),
        (replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000), 6000, False, False),
        (replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000), 6001, False, True),
        (replace(CONFIG, min_compaction_lag_ms=5000, max_compaction_lag_ms=5000), 5999, False, False),
    ],
)
def test_when_it_is_worth_it(config: LogConfig, now_ms: int, force: bool, worth: bool) -> None:
    log = log_of([(K, b"1")], [(K, b"2")], config=config)
    assert (log.compact(now_ms, force=force) > 0) is worth
    assert (log.cleaned_until > 0) is worth


@pytest.mark.parametrize("timestamp", [-1, 0])
def test_rt4_a_segment_without_a_time_is_never_overdue(timestamp: int) -> None:
    config = replace(CONFIG, segment_bytes=1 << 20, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1)
    log = MemoryLog(config)
    for value in (b"1", b"2"):
        log.append(batch((K, value), timestamp=timestamp), leader_epoch=0, now_ms=0)
    log._roll(0)
    assert log.compact(1_000_000) == 0


def test_rt4_what_is_clean_is_not_overdue_again() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    log = log_of([(K, b"1")], [(K, b"2")], config=config)
    assert log.compact(6001) > 0
    assert next(log.compaction(1_000_000), None) is None
    log.append(batch((K, b"new"), timestamp=1_000_000), leader_epoch=0, now_ms=0)
    assert log.compact(1_000_000) > 0, "the segment that was the active one"
    log._roll(0)
    assert next(log.compaction(1_005_000), None) is None


@pytest.mark.parametrize(("compact", "segments"), [(True, 2), (False, 1)])
def test_rt4_a_later_record_closes_the_active_segment(compact: bool, segments: int) -> None:
    """Else the record would wait for segment.ms, seven days by default."""
    log = MemoryLog(replace(CONFIG, compact=compact, delete=not compact, max_compaction_lag_ms=5000))
    for timestamp in (1_000, 6_000, 6_001):
        log.append(batch((K, b"v"), timestamp=timestamp), leader_epoch=0, now_ms=timestamp)
    assert log.segment_count == segments


def test_clean_segments_are_not_cleaned_again() -> None:
    log = log_of([(K, b"1")], [(K, b"2")])
    log.compact(10)
    assert log.cleaned_until == 3
    assert list(log.compaction(10)) == []
    log.append(batch((L, b"v" * 900)), leader_epoch=0, now_ms=0)
    log.append(batch((L, b"v" * 900)), leader_epoch=0, now_ms=0)
    assert next(log.compaction(10), None) is not None


def test_more_keys_than_fit_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction.Compaction.__init__, "__defaults__", (3,))
    log = log_of(*([(b"key-%d" % (n % 5), b"%d" % n)] for n in range(20)))
    passes = 0
    while log.cleaned_until < 21:
        before = log.cleaned_until
        log.compact(10, force=True)
        passes += 1
        assert log.cleaned_until > before
    assert passes > 2
    assert [r.offset for r in held(log)] == [15, 16, 17, 18, 19, 20, 21]


def idle() -> None:
    pass


def use(operation: str) -> Callable[[MemoryLog], None]:
    def act(log: MemoryLog) -> None:
        if operation == "append":
            log.append(batch((K, b"new")), leader_epoch=0, now_ms=0)
        elif operation == "truncate":
            log.truncate(12)
            log.append(batch((b"other", b"new")), leader_epoch=0, now_ms=0)
        elif operation == "retain":
            log.delete_before(min(30, log.log_end_offset))
            log.retain(10)
        elif operation == "compact":
            log.compact(10, force=True)

    return act


@given(st.lists(st.sampled_from(["append", "truncate", "retain", "compact", ""]), max_size=30))
def test_the_log_may_be_used_between_slices(acts: list[str]) -> None:
    log = log_of(*([(b"key-%d" % (n % 5), b"v" * 200)] for n in range(40)))
    slices = log.compaction(10, force=True)
    expected = log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "SLICE_BYTES", 300)
        for act in acts:
            use(act)(log)
            last = {record.key: record for record in held(expected)}
            next(slices, idle)()
            now = {record.key: record for record in held(log)}
            assert now == last
        for run in slices:
            run()
    assert {record.key: record for record in held(log)} == last if acts else True


def test_what_is_not_committed_hides_no_committed_value() -> None:
    """Law L1. A truncation may remove it; Kafka compacts up to the last stable offset."""
    log = MemoryLog(LogConfig(segment_bytes=300, compact=True, delete=False))
    fill(log, 10, key=b"k")
    log.compact(10, force=True, high_watermark=5)
    log.truncate(5)
    assert offsets(log)[-1] == 4
