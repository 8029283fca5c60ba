"""Producer snapshots: Kafka's bytes there and back, damage noticed. See also tests/contract/test_kafka_folder.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log.producers import BatchMetadata, Producer
from rota.coordinator.log.snapshots import BadSnapshot, MemorySnapshots, read_snapshot, write_snapshot

int64, int32 = st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 31) - 1)


@st.composite
def producers(draw: st.DrawFn) -> Producer:
    timestamp = draw(int64)
    made = Producer(draw(int64), draw(st.integers(0, 32767)), draw(int32), timestamp, draw(st.integers(-1, 99)))
    if draw(st.booleans()):
        made.sent.append(BatchMetadata(draw(int32), draw(int64), draw(int32), timestamp))
    return made


@given(st.lists(producers(), max_size=5))
def test_there_and_back(state: list[Producer]) -> None:
    assert read_snapshot(write_snapshot(state)) == state


def test_only_the_last_batch_is_kept_as_in_kafka() -> None:
    producer = Producer(1, 0, sent=Producer(1).sent)
    producer.sent.extend([BatchMetadata(0, 0, 0, 5), BatchMetadata(3, 3, 2, 6)])
    (read,) = read_snapshot(write_snapshot([producer]))
    assert list(read.sent) == [BatchMetadata(3, 3, 2, -1)]


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
