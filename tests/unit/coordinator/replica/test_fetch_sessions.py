from __future__ import annotations

from itertools import count

import pytest

from rota.coordinator.replica.fetch_sessions import (
    FINAL_EPOCH,
    FULL_EPOCH,
    IDLE_EVICTION_MS,
    SESSION_PARTITIONS_MAX,
    FetchSessions,
    Selected,
    SessionRequest,
)
from rota.coordinator.replica.partition_lookup import Key
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData

A, B, C = ("t", 0), ("t", 1), ("u", 0)


def requested(offset: int, bytes_max: int) -> FetchPartition:
    return FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)


def response(high_watermark: int = 10, *, records: bytes = b"", error: int = 0, start: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=start,
        aborted_transactions=None,
        records=records,
    )


class Consumer:
    """Asks in sessions, as clients do."""

    def __init__(self, sessions: FetchSessions | None = None) -> None:
        self.sessions = FetchSessions(draw_id=count(7).__next__) if sessions is None else sessions
        self.session_id = self.epoch = 0
        self.now_ms = 0

    def full(self, *keys: Key) -> Selected:
        selected = self.send_request(dict.fromkeys(keys, requested(0, 100)), session_id=0, epoch=FULL_EPOCH)
        self.session_id, self.epoch = selected.session_id, 1
        return selected

    def next(
        self,
        partitions: dict[Key, FetchPartition] | None = None,
        forgotten: tuple[Key, ...] = (),
        **answers: PartitionData,
    ) -> Selected:
        selected = self.send_request(partitions or {}, forgotten, self.session_id, self.epoch, answers=answers)
        self.epoch += 1
        return selected

    def send_request(
        self,
        partitions: dict[Key, FetchPartition],
        forgotten: tuple[Key, ...] = (),
        session_id: int = 0,
        epoch: int = 0,
        by_id: bool = False,
        answers: dict[str, PartitionData] | None = None,
    ) -> Selected:
        request = SessionRequest(
            partitions=partitions, forgotten=forgotten, session_id=session_id, epoch=epoch, by_id=by_id
        )
        context = self.sessions.open(request, self.now_ms)
        self.wanted = dict(context.requested())
        responses = [(key, (answers or {}).get(f"{key[0]!s}{key[1]}", response())) for key in self.wanted]
        return context.select(responses, self.now_ms)


def keys(selected: Selected) -> list[Key]:
    return [key for key, _ in selected.responses]


def test_a_full_fetch_is_answered_in_full_and_begins_a_session() -> None:
    consumer = Consumer()
    selected = consumer.full(A, B)
    assert (selected.error, selected.session_id, keys(selected)) == (ErrorCode.NONE, 7, [A, B])
    assert len(consumer.sessions) == 1


def test_a_final_epoch_ends_the_session_and_begins_none() -> None:
    consumer = Consumer()
    consumer.full(A)
    selected = consumer.send_request({A: requested(0, 100)}, session_id=consumer.session_id, epoch=FINAL_EPOCH)
    assert (selected.session_id, keys(selected), len(consumer.sessions)) == (0, [A], 0)


def test_an_unchanged_partition_is_not_answered_again() -> None:
    consumer = Consumer()
    consumer.full(A, B)
    assert keys(consumer.next()) == []
    assert list(consumer.wanted) == [A, B]


@pytest.mark.parametrize(
    "answer",
    [response(11), response(start=3), response(records=b"x"), response(error=ErrorCode.OFFSET_OUT_OF_RANGE)],
    ids=["high watermark", "log start", "records", "error"],
)
def test_a_change_is_answered(answer: PartitionData) -> None:
    consumer = Consumer()
    consumer.full(A, B)
    assert keys(consumer.next(t1=answer)) == [B]


def test_a_diverging_partition_is_always_in_the_response() -> None:
    consumer = Consumer()
    consumer.full(A)
    answer = response()
    answer.diverging_epoch = EpochEndOffset(epoch=0, end_offset=3)
    assert keys(consumer.next(t0=answer)) == [A]


def test_an_error_is_returned_until_it_ends_and_its_end_once() -> None:
    consumer = Consumer()
    consumer.full(A)
    error = response(-1, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, start=0)
    assert keys(consumer.next(t0=error)) == [A]
    assert keys(consumer.next(t0=error)) == [A]
    assert keys(consumer.next()) == [A]
    assert keys(consumer.next()) == []


def test_a_partition_that_returned_records_is_fetched_last() -> None:
    consumer = Consumer()
    consumer.full(A, B)
    consumer.next(t0=response(records=b"x"))
    consumer.next()
    assert list(consumer.wanted) == [B, A]


def test_partitions_are_added_changed_and_forgotten() -> None:
    consumer = Consumer()
    consumer.full(A, B)
    consumer.next({C: requested(5, 100), A: requested(9, 50)}, forgotten=(B,))
    assert consumer.wanted == {A: requested(9, 50), C: requested(5, 100)}


def test_a_partition_that_is_named_again_is_answered_only_if_it_was_forgotten_before() -> None:
    """As Kafka 4.3.1 answers; of a request that names and forgets a partition, the forgetting counts."""
    consumer = Consumer()
    consumer.full(A, B)
    assert keys(consumer.next({A: requested(5, 100)})) == []
    assert keys(consumer.next({A: requested(5, 100)}, forgotten=(A,))) == []
    assert list(consumer.wanted) == [B]
    assert keys(consumer.next({A: requested(5, 100)})) == [A]
    assert keys(consumer.next({A: requested(5, 100)})) == []


def test_a_session_without_partitions_ends() -> None:
    consumer = Consumer()
    consumer.full(A)
    selected = consumer.next(forgotten=(A,))
    assert (selected.error, selected.session_id, len(consumer.sessions)) == (ErrorCode.NONE, 0, 0)
    assert consumer.next().error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_wrong_epoch_changes_nothing() -> None:
    consumer = Consumer()
    consumer.full(A)
    for epoch in (2, 5):
        selected = consumer.send_request({B: requested(0, 1)}, session_id=consumer.session_id, epoch=epoch)
        assert (selected.error, selected.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    consumer.next()
    assert list(consumer.wanted) == [A]


def test_names_and_ids_do_not_mix() -> None:
    consumer = Consumer()
    consumer.full(A)
    selected = consumer.send_request({}, session_id=consumer.session_id, epoch=1, by_id=True)
    assert selected.error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert consumer.next().error is ErrorCode.NONE


def test_a_session_used_elsewhere_meanwhile_answers_the_late_one_with_an_error() -> None:
    consumer = Consumer()
    consumer.full(A)
    late = consumer.sessions.open(SessionRequest(partitions={}, session_id=consumer.session_id, epoch=1), 0)
    consumer.epoch = 2
    assert consumer.next().error is ErrorCode.NONE
    selected = late.select([(A, response())], 0)
    assert (selected.error, list(selected.responses)) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])


def test_epochs_wrap_to_one() -> None:
    consumer = Consumer()
    consumer.full(A)
    session = consumer.sessions._sessions[consumer.session_id]
    session.epoch = consumer.epoch = 0x7FFF_FFFF
    assert consumer.next().error is ErrorCode.NONE
    assert session.epoch == 1


def test_no_slots_no_sessions() -> None:
    assert Consumer(FetchSessions(0)).full(A).session_id == 0


def test_ids_are_positive_and_differ() -> None:
    sessions = FetchSessions(draw_id=iter([3, 3, 4]).__next__)
    assert [Consumer(sessions).full(A).session_id for _ in range(2)] == [3, 4]
    assert 0 < Consumer(FetchSessions()).full(A).session_id <= 0x7FFF_FFFF


class TestACacheThatIsFull:
    def test_keeps_sessions_that_are_new(self) -> None:
        consumer = Consumer(FetchSessions(1))
        assert consumer.full(A).session_id > 0
        assert Consumer(consumer.sessions).full(A, B, C).session_id == 0

    def test_drops_the_session_that_was_not_used_for_long(self) -> None:
        consumer, other = Consumer(FetchSessions(2)), Consumer()
        other.sessions = consumer.sessions
        first, second = consumer.full(A).session_id, other.full(A).session_id
        consumer.now_ms = 100
        consumer.session_id, consumer.epoch = first, 1
        consumer.next()
        other.now_ms = IDLE_EVICTION_MS + 50
        assert other.full(A).session_id > 0
        assert set(consumer.sessions._sessions) >= {first}
        assert second not in consumer.sessions._sessions
        assert consumer.sessions.evictions == 1

    def test_drops_an_old_smaller_session(self) -> None:
        consumer = Consumer(FetchSessions(1))
        small = consumer.full(A).session_id
        consumer.now_ms = IDLE_EVICTION_MS + 1
        consumer.next()  # in use, but old
        for keys, gets_one in (((A,), False), ((A, B), True)):
            newcomer = Consumer(consumer.sessions)
            newcomer.now_ms = consumer.now_ms
            assert bool(newcomer.full(*keys).session_id) is gets_one
        assert small not in consumer.sessions._sessions


def test_a_session_cannot_grow_without_end() -> None:
    consumer = Consumer()
    consumer.full(A)
    many: dict[Key, FetchPartition] = {("t", index): requested(0, 1) for index in range(SESSION_PARTITIONS_MAX + 1)}
    assert consumer.next(many).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(consumer.sessions) == 0
    assert consumer.full(*many).session_id == 0


def test_all_sessions_together_are_bounded_by_dropping_the_oldest() -> None:
    sessions = FetchSessions(draw_id=count(7).__next__, partitions_max=6)
    hoarders = [Consumer(sessions), Consumer(sessions)]
    for hoarder in hoarders:
        assert hoarder.full(A, B, C).session_id
    late = Consumer(sessions)
    assert late.full(A).session_id == 0
    assert hoarders[0].next({("u", 1): requested(0, 1)}).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert late.full(A, B, C).session_id
    late.now_ms = IDLE_EVICTION_MS + 1
    assert hoarders[0].full(A).session_id == 0
    assert late.full(C).session_id
    assert sessions.cached_partitions == 4
    for hoarder in (late, hoarders[1]):
        hoarder.send_request({}, session_id=hoarder.session_id, epoch=FINAL_EPOCH)
    assert (len(sessions), sessions.cached_partitions) == (1, 3)
