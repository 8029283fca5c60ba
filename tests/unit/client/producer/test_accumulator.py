"""Gathering and handing out; tests/property/test_producer.py holds the laws."""

from __future__ import annotations

import pytest
from tests.unit.client.producer.kit import DELIVERY_MS, LINGER_MS, accumulator, led, put

from rota.client.errors import TimedOut
from rota.client.producer.accumulator import NEVER
from rota.client.producer.batch import Failed, Written


def test_a_batch_lingers() -> None:
    of = accumulator()
    put(of, led(of), b"1", 10)
    assert of.due_ms == 10 + LINGER_MS
    assert of.ready(10).nodes == ()
    assert of.ready(10).next_ms == 10 + LINGER_MS
    assert of.drain(1, 10) == []
    assert of.ready(10 + LINGER_MS).nodes == (1,)


def test_a_full_batch_is_ready_at_once() -> None:
    of = accumulator()
    queue = led(of)
    first, second = put(of, queue, b"x" * 60), put(of, queue, b"y" * 60)
    assert first is not second
    assert of.due_ms == 0
    assert of.drain(1, 0) == [first]
    assert of.ready(0).next_ms == NEVER or of.ready(0).nodes == ()


def test_a_record_larger_than_batch_size_is_sent_alone_at_once() -> None:
    of = accumulator()
    queue = led(of)
    large, small = put(of, queue, b"x" * 500), put(of, queue, b"1")
    assert large is not small
    assert of.drain(1, 0) == [large]


def test_without_linger_records_of_one_tick_share_a_batch() -> None:
    of = accumulator(linger_ms=0)
    queue = led(of)
    assert put(of, queue, b"1") is put(of, queue, b"2")
    assert of.ready(0).nodes == (1,)


def test_when_one_partition_is_due_all_of_its_node_are_drained() -> None:
    of = accumulator()
    early, late, elsewhere = led(of, 0), led(of, 1), led(of, 2, node=2)
    put(of, early, b"1", 0)
    put(of, late, b"2", 4)
    put(of, elsewhere, b"3", 4)
    assert of.ready(5).nodes == (1,)
    assert [item.queue for item in of.drain(1, 5)] == [early, late]


def test_requests_are_limited_in_size_and_partitions_alternate() -> None:
    of = accumulator(request_bytes=200, linger_ms=0, idempotent=True)
    queues = [led(of, number) for number in range(3)]
    for _ in range(2):
        for queue in queues:
            put(of, queue, b"x" * 60)
    drained = []
    while requests := of.drain(1, 0):
        for item in requests:
            drained.append(item.queue.partition.partition)
            of.request_ended(item)
            of.deliver(item, Written(0))
    assert drained == [0, 1, 2, 0, 1, 2]


def test_hurry_ends_all_lingering() -> None:
    of = accumulator()
    put(of, led(of), b"1")
    of.flushing = True
    assert of.ready(0).nodes == (1,)


def test_without_a_leader_the_batch_waits_and_its_topic_is_reported() -> None:
    of = accumulator()
    queue = led(of)
    put(of, queue, b"1")
    queue.lead(None, 1)
    assert of.ready(100).leaderless == ("t",)
    assert of.ready(100).nodes == ()


def test_not_idempotent_one_batch_of_a_partition_is_on_the_wire() -> None:
    of = accumulator()
    queue = led(of)
    first, second = put(of, queue, b"x" * 60), put(of, queue, b"y" * 60)
    assert of.drain(1, 100) == [first]
    assert of.drain(1, 100) == []
    of.request_ended(first)
    of.deliver(first, Written(0))
    assert of.drain(1, 100) == [second]


def test_idempotent_five_batches_of_a_partition_are_on_the_wire() -> None:
    of = accumulator(idempotent=True)
    queue = led(of)
    for _ in range(8):
        put(of, queue, b"x" * 60)
    (first,) = of.drain(1, 100)
    assert of.drain(1, 100) == []  # until the broker has one
    of.request_ended(first)
    of.deliver(first, Written(0))
    drained = [of.drain(1, 100) for _ in range(7)]
    assert [len(item) for item in drained] == [1] * 5 + [0, 0]


def test_a_retried_batch_backs_off_unless_the_leader_changed() -> None:
    of = accumulator()
    queue = led(of)
    put(of, queue, b"1")
    (item,) = of.drain(1, 5)
    of.request_ended(item)
    of.retry(item, 50)
    assert of.drain(1, 49) == []
    queue.lead(2, 1)
    assert of.drain(2, 6) == [item]
    assert item.attempts == 2


def test_a_leader_that_was_not_known_is_no_new_leader() -> None:
    of = accumulator()
    queue = led(of)
    queue.leader_epoch = -1
    put(of, queue, b"1")
    (item,) = of.drain(1, 5)
    of.request_ended(item)
    of.retry(item, 50)
    queue.lead(1, 0)
    assert of.ready(6).nodes == ()


@pytest.mark.parametrize("waits", [True, False])
def test_batches_expire_queued_or_in_flight(waits: bool) -> None:
    of = accumulator()
    put(of, led(of), b"1")
    if not waits:
        of.drain(1, 5)
    assert of.expired(DELIVERY_MS - 1) == []
    (late,) = of.expired(DELIVERY_MS)
    assert of.is_on_wire(late) is not waits
    of.fail(late, Failed(TimedOut("late"), maybe_written=not waits))
    assert of.used_bytes == 0
    assert of.ready(DELIVERY_MS).nodes == ()


def test_an_expired_batch_that_is_on_the_wire_holds_its_partition_until_it_lands() -> None:
    of = accumulator()
    queue = led(of)
    late, waiting = put(of, queue, b"x" * 60), put(of, queue, b"y" * 60)
    of.drain(1, 5)
    of.fail(late, Failed(TimedOut("late"), maybe_written=True))
    assert of.drain(1, 100) == []
    of.request_ended(late)
    of.retry(late, 0)
    assert of.drain(1, 100) == [waiting]


def test_memory_is_given_back_to_the_byte() -> None:
    of = accumulator(idempotent=True)
    queue = led(of)
    for size in (1, 60, 500, 3):
        put(of, queue, b"x" * size)
    assert of.used_bytes == sum(21 + size for size in (1, 60, 500, 3))
    for item in list(of.incomplete):
        of.drain(1, 100)
        of.request_ended(item)
        of.deliver(item, Written(0))
    assert of.used_bytes == 0


def test_parts_of_a_split_batch_keep_its_place_and_age() -> None:
    of = accumulator(idempotent=True)
    queue = led(of)
    whole = put(of, queue, b"x" * 10, 0)
    assert {put(of, queue, b"x" * 10, 0) for _ in range(2)} == {whole}
    (after,) = {put(of, queue, b"y" * 60, 3)}
    (sent,) = of.drain(1, 10)
    assert sent is whole
    of.request_ended(whole)
    of.split(whole)
    assert [item.created_ms for item in of.incomplete] == [0] * (len(of.incomplete) - 1) + [3]
    assert list(queue.batches)[-1] is after
    assert all(part.is_numbered for part in list(queue.batches)[:-1])


def test_without_a_producer_id_nothing_is_drained() -> None:
    of = accumulator(idempotent=True)
    assert of.sequences is not None
    of.sequences.producer = None
    put(of, led(of), b"1")
    assert of.drain(1, 100) == []
    of.identify(9, 0)
    assert len(of.drain(1, 100)) == 1


def test_a_record_that_cannot_be_encoded_uses_no_memory() -> None:
    of = accumulator()
    queue = led(of)
    with pytest.raises(TypeError):
        of.begin(queue, 1_000, None, 5, (), 22, 0)  # type: ignore[arg-type]
    assert of.used_bytes == 0
    assert not of.incomplete
    assert of.drain(1, 100) == []
