"""Producer snapshots: Kafka's bytes there and back, damage noticed. See also tests/contract/test_kafka_folder.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log.producer import BATCHES_PER_PRODUCER_MAX, BatchMetadata, Producer
from rota.coordinator.log.snapshots import BadSnapshot, MemorySnapshots, read_snapshot, write_snapshot

int64, int32 = st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 31) - 1)


@st.composite
def producers(draw: st.DrawFn) -> Producer:
    made = Producer(draw(int64), draw(st.integers(0, 32767)), draw(int32), draw(int64), draw(st.integers(-1, 99)))
    for _ in range(draw(st.integers(0, BATCHES_PER_PRODUCER_MAX))):
        made.last_timestamp = draw(int64)
        made.sent.append(BatchMetadata(draw(int32), draw(int64), draw(int32), made.last_timestamp))
    return made


@given(st.lists(producers(), max_size=5, unique_by=lambda producer: producer.producer_id))
def test_a_snapshot_survives_write_and_read(state: list[Producer]) -> None:
    assert read_snapshot(write_snapshot(state)) == state


def test_kafka_finds_the_last_batch_of_a_producer_in_its_last_entry() -> None:
    """Kafka keeps one entry of each producer, the last that it reads."""
    producer = Producer(1, 0, last_timestamp=6)
    producer.sent.extend([BatchMetadata(0, 0, 0, 5), BatchMetadata(3, 3, 2, 6)])
    head = 10
    entry_bytes = (len(write_snapshot([producer])) - head) // 2
    entries = [write_snapshot([producer])[at : at + entry_bytes] for at in (head, head + entry_bytes)]
    last = Producer(1, 0, last_timestamp=6)
    last.sent.append(BatchMetadata(3, 3, 2, 6))
    assert entries[1] == write_snapshot([last])[head:]
    assert entries[0] != entries[1]


def test_the_batches_of_an_earlier_epoch_do_not_count() -> None:
    old, new = Producer(1, 0, last_timestamp=5), Producer(1, 1, last_timestamp=6)
    old.sent.append(BatchMetadata(0, 0, 0, 5))
    new.sent.append(BatchMetadata(3, 3, 2, 6))
    assert read_snapshot(write_snapshot([old, new])) == [new]


@given(st.data())
def test_damage_is_noticed(data: st.DataObject) -> None:
    whole = write_snapshot([Producer(1, 0)])
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadSnapshot):
        read_snapshot(bytes(damaged))
    with pytest.raises(BadSnapshot):
        read_snapshot(whole[:at])


def test_memory_snapshots() -> None:
    snapshots = MemorySnapshots()
    snapshots.save(20, b"b")
    snapshots.save(10, b"a")
    snapshots.remove(30)
    assert (snapshots.offsets(), snapshots.load(10)) == ([10, 20], b"a")
    snapshots.remove(10)
    assert snapshots.offsets() == [20]
