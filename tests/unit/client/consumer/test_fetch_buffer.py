"""What waits to be taken: its order, its failures, what makes it stale, what is kept of it."""

from __future__ import annotations

import pytest
from tests.unit.client.consumer.kit import P0, P1, P2, batch

from rota.client.consumer.completed_fetch import CompletedFetch
from rota.client.consumer.fetch_buffer import FetchBuffer, FetchOffset
from rota.client.consumer.positions import Positions
from rota.client.errors import CorruptRecords, KafkaError
from rota.client.types import ConsumerRecord, TopicPartition


class Waiting:
    """Three partitions at offset 0."""

    def __init__(self) -> None:
        self.positions = Positions()
        self.positions.assign([P0, P1, P2])
        for partition in (P0, P1, P2):
            self.positions.seek(partition, 0)
        self.buffer = FetchBuffer(self.positions)
        self.frame = b""

    def put(self, partition: TopicPartition, *batches: bytes, node: int = 1, answer: int = 1) -> None:
        place = self.buffer.next_fetch(partition, self.positions.of(partition))
        assert place is not None
        raw = b"".join(batches)
        self.frame = b"head" + raw + bytes(10_000)
        view = memoryview(self.frame)[4 : 4 + len(raw)]
        epoch = self.positions.of(partition).position_epoch
        self.buffer.put(CompletedFetch(partition, place.offset, view, node=node, answer=answer, position_epoch=epoch))

    def take(self, records_max: int = 100) -> dict[TopicPartition, list[int]]:
        return {partition: offsets(found) for partition, found in self.buffer.take(records_max).items()}


def offsets(records: list[ConsumerRecord]) -> list[int]:
    return [item.offset for item in records]


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


def test_the_first_fetched_batch_is_taken_first(waiting: Waiting) -> None:
    waiting.put(P1, batch(0, 3))
    waiting.put(P0, batch(0, 3))
    assert waiting.take(4) == {P1: [0, 1, 2], P0: [0]}
    assert waiting.take(4) == {P0: [1, 2]}
    assert waiting.take(4) == {}
    assert not waiting.buffer.has_any()


def test_the_position_advances_past_the_taken_records(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 3, epoch=4))
    waiting.take(2)
    assert (waiting.positions.of(P0).offset, waiting.positions.of(P0).leader_epoch) == (2, 4)
    assert waiting.positions.of(P1).offset == 0


def test_taking_no_records_moves_no_position(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 3))
    assert waiting.take(0) == {}
    assert waiting.positions.of(P0).offset == 0


def test_the_next_answer_takes_its_turn_behind_the_others(waiting: Waiting) -> None:
    """No partition starves while another one is full."""
    waiting.put(P0, batch(0, 2))
    waiting.put(P1, batch(0, 2))
    waiting.put(P0, batch(2, 2), answer=2)
    assert waiting.take(2) == {P0: [0, 1]}
    assert waiting.take(2) == {P1: [0, 1]}
    assert waiting.take(2) == {P0: [2, 3]}


def test_a_partition_is_fetched_behind_the_one_answer_that_waits(waiting: Waiting) -> None:
    position = waiting.positions.of(P0)
    assert waiting.buffer.next_fetch(P0, position) == FetchOffset(0, -1)
    waiting.put(P0, batch(0, 2, epoch=3))
    assert waiting.buffer.next_fetch(P0, position) == FetchOffset(2, 3)
    waiting.put(P0, batch(2, 2, epoch=3), answer=2)
    assert waiting.buffer.next_fetch(P0, position) is None, "two answers are enough"
    waiting.take(2)
    assert waiting.buffer.next_fetch(P0, position) == FetchOffset(4, 3)


def test_a_broker_is_full_with_two_answers(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 2))
    waiting.put(P1, batch(0, 2))
    waiting.put(P2, batch(0, 2), node=2)
    assert waiting.buffer.full_nodes() == set()
    waiting.put(P0, batch(2, 2), answer=2)
    assert waiting.buffer.full_nodes() == {1}
    waiting.take(4)
    assert waiting.buffer.full_nodes() == set()


def test_a_paused_partition_keeps_its_buffered_records(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 3))
    waiting.put(P1, batch(0, 3))
    waiting.take(1)
    waiting.positions.pause([P0])
    assert waiting.take() == {P1: [0, 1, 2]}
    assert not waiting.buffer.has_any()
    assert waiting.buffer.full_nodes() == set()
    waiting.positions.resume([P0])
    assert waiting.take() == {P0: [1, 2]}


def test_a_paused_partition_lets_go_of_the_frame(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 3))
    assert waiting.buffer.held_bytes == len(waiting.frame)
    waiting.positions.pause([P0])
    waiting.buffer.discard_stale()
    assert waiting.buffer.held_bytes == len(batch(0, 3))
    waiting.positions.resume([P0])
    assert waiting.take() == {P0: [0, 1, 2]}
    assert waiting.buffer.held_bytes == 0


def test_a_frame_that_several_share_counts_once(waiting: Waiting) -> None:
    frame = batch(0, 2)
    for partition in (P0, P1):
        epoch = waiting.positions.of(partition).position_epoch
        waiting.buffer.put(CompletedFetch(partition, 0, memoryview(frame), position_epoch=epoch))
    assert waiting.buffer.held_bytes == len(frame)


@pytest.mark.parametrize("change", ["seek", "reset", "drop", "drop and come back"])
def test_records_of_an_earlier_position_epoch_are_dropped(waiting: Waiting, change: str) -> None:
    waiting.put(P0, batch(0, 3))
    if change == "seek":
        waiting.positions.seek(P0, 0)
    elif change == "reset":
        waiting.positions.reset(P0, "latest")
    else:
        waiting.positions.drop([P0])
    if change == "drop and come back":
        waiting.positions.assign([P0, P1, P2])
        waiting.positions.seek(P0, 0)
    assert waiting.take() == {}
    assert not waiting.buffer.has_any()
    waiting.buffer.discard_stale()
    assert waiting.buffer.held_bytes == 0
    if change != "drop":
        assert not waiting.buffer.keep_for_user(P0)


def test_a_failure_is_raised_once(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 2))
    waiting.buffer.fail(P1, KafkaError("no"), waiting.positions.of(P1).position_epoch)
    waiting.put(P2, batch(0, 2))
    assert waiting.buffer.next_fetch(P1, waiting.positions.of(P1)) is None, "it waits to be told"
    assert waiting.take() == {P0: [0, 1]}
    with pytest.raises(KafkaError, match="no"):
        waiting.take()
    assert waiting.take() == {P2: [0, 1]}
    assert waiting.buffer.next_fetch(P1, waiting.positions.of(P1)) == FetchOffset(0, -1)


def test_a_failure_of_an_earlier_position_epoch_is_dropped(waiting: Waiting) -> None:
    waiting.buffer.fail(P1, KafkaError("no"), waiting.positions.of(P1).position_epoch)
    waiting.positions.seek(P1, 3)
    assert waiting.take() == {}


def test_corrupt_records_raise_after_the_records_before_them(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 2), batch(2, 2)[:-1] + b"?")
    waiting.put(P1, batch(0, 2))
    assert waiting.take() == {P0: [0, 1], P1: [0, 1]}
    with pytest.raises(CorruptRecords, match="orders-0 at offset 2"):
        waiting.take()
    assert waiting.take() == {}
    assert waiting.positions.of(P0).offset == 2


def test_batches_after_corrupt_records_are_dropped(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 2)[:-1] + b"?")
    waiting.put(P0, batch(2, 2), answer=2)
    with pytest.raises(CorruptRecords):
        waiting.take()
    assert waiting.take() == {}
    assert waiting.buffer.next_fetch(P0, waiting.positions.of(P0)) == FetchOffset(0, -1)


def test_buffered_records_are_taken_before_an_error_is_handled(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 2))
    assert waiting.buffer.keep_for_user(P0)
    assert waiting.buffer.next_fetch(P0, waiting.positions.of(P0)) is None
    assert waiting.take() == {P0: [0, 1]}
    assert not waiting.buffer.keep_for_user(P0)
    assert waiting.buffer.next_fetch(P0, waiting.positions.of(P0)) == FetchOffset(2, 0)


def test_nothing_stays_after_clear(waiting: Waiting) -> None:
    waiting.put(P0, batch(0, 2))
    waiting.buffer.clear()
    assert waiting.take() == {}
    assert waiting.buffer.held_bytes == 0
