"""One producer: its entries are packed anew after each change. See also test_snapshots.py."""

from __future__ import annotations

from rota.coordinator.log.producer import ENTRY, BatchMetadata, Producer


def test_a_producer_without_a_batch_has_one_entry() -> None:
    assert ENTRY.unpack(Producer(7, 3, last_timestamp=5).pack()) == (7, 3, -1, -1, 0, 5, -1, -1)


def test_each_batch_has_an_entry_and_the_last_one_is_last() -> None:
    producer = Producer(7, 3, 2, last_timestamp=9, transaction_first_offset=10)
    producer.sent += [BatchMetadata(0, 10, 0, 5), BatchMetadata(4, 14, 3, 6)]
    entries = list(ENTRY.iter_unpack(producer.pack()))
    assert entries == [(7, 3, 0, 10, 0, 5, 2, 10), (7, 3, 4, 14, 3, 9, 2, 10)]
    assert producer.packed == producer.pack()


def test_the_entries_are_no_part_of_the_state() -> None:
    packed = Producer(7)
    packed.pack()
    assert packed == Producer(7)
    assert packed.copy().packed is None
