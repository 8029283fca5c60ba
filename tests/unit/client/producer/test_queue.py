"""The order in which a partition's batches wait, and who leads it."""

from __future__ import annotations

from tests.unit.client.producer.kit import batch

from rota.client.producer.batch import Queue
from rota.client.types import TopicPartition


def test_a_batch_put_back_is_first() -> None:
    queue = Queue(TopicPartition("t", 0))
    again, later = batch(b"1"), batch(b"2")
    queue.batches.append(later)
    queue.put_back(again)
    assert list(queue.batches) == [again, later]


def test_numbered_batches_are_put_back_in_sequence_order() -> None:
    queue = Queue(TopicPartition("t", 0))
    numbered = [batch(b"%d" % number) for number in range(3)]
    for item in numbered:
        queue.partition_sequences.add(item)
    fresh = batch(b"fresh")
    queue.batches.append(fresh)
    for at in (1, 2, 0):
        queue.put_back(numbered[at])
    assert list(queue.batches) == [*numbered, fresh]


def test_an_older_leader_epoch_changes_nothing() -> None:
    queue = Queue(TopicPartition("t", 0))
    queue.lead(1, 5)
    queue.lead(2, 4)
    assert (queue.leader, queue.leader_epoch) == (1, 5)
    queue.lead(None, 5)
    assert queue.leader is None
    queue.lead(3, 6)
    assert (queue.leader, queue.leader_epoch) == (3, 6)


def test_a_leader_without_an_epoch_is_accepted() -> None:
    queue = Queue(TopicPartition("t", 0))
    queue.lead(1, 5)
    queue.lead(2, -1)
    assert (queue.leader, queue.leader_epoch) == (2, 5)


def test_a_taken_batch_is_not_open_for_records() -> None:
    queue = Queue(TopicPartition("t", 0))
    queue.open = batch(b"1")
    queue.batches.append(queue.open)
    assert queue.take().count == 1
    assert queue.open is None
