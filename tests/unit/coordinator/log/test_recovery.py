"""Recovery: cut at the last whole batch, wherever and however the end is damaged; state made anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.epochs import LeaderEpochs
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.log.producer import Producer
from rota.coordinator.log.producers import Producers
from rota.coordinator.log.recovery import recover, restore_producers
from rota.coordinator.log.segment import Segment
from rota.coordinator.log.snapshots import MemorySnapshots, write_snapshot
from rota.coordinator.log.store import MemoryStore
from rota.protocol.records.fast import Record
from rota.protocol.records.record import write_batch

from .log_kit import values


def written(batches: int = 6) -> tuple[bytes, list[int]]:
    """The bytes of a segment, and where each batch ends."""
    log = MemoryLog(LogConfig(index_interval_bytes=100))
    ends = []
    for number in range(batches):
        fields = {"producer_id": number % 2, "producer_epoch": 0, "base_sequence": number // 2 * 2}
        log.append(values(2, **fields), leader_epoch=number // 3, now_ms=0)
        ends.append(log.size_bytes)
    return log._active.store.read(0, log.size_bytes), ends


DATA, ENDS = written()


@pytest.mark.parametrize(("key", "value"), [(None, None), (b"\0\0\0", b""), (b"\0\0\0\1", b"\0\0"), (b"\0\0\0\2", b"")])
def test_xl1_a_control_batch_that_is_no_marker_is_replayed_as_it_was_appended(
    key: bytes | None, value: bytes | None
) -> None:
    """A leader of another version may have it. A log that has taken it is opened again, and truncated."""
    log = MemoryLog()
    log.append_as_follower(
        write_batch([Record(0, 1, key, value)], producer_id=7, producer_epoch=2, is_control=True), leader_epoch=0
    )
    before = log.producers.all()
    log.flush()
    log.crash()
    assert log.producers.all() == before
    log.append_as_follower(values(1, base_offset=1), leader_epoch=0)
    log.truncate(1)
    assert log.producers.all() == before


def recovered(data: bytes, next_offset: int = 0) -> tuple[Segment, int, LeaderEpochs]:
    segment, epochs = Segment(0, MemoryStore(data), None, index_interval_bytes=100), LeaderEpochs()
    return segment, recover(segment, next_offset, epochs), epochs


@given(st.integers(0, len(DATA)), st.binary(max_size=100))
def test_a_torn_tail_is_cut_after_the_last_whole_batch(size: int, rubbish: bytes) -> None:
    torn = DATA[:size] + rubbish
    differs = (at for at, (byte, was) in enumerate(zip(torn, DATA, strict=False)) if byte != was)
    same = next(differs, min(len(torn), len(DATA)))  # rubbish may happen to be what was lost
    segment, cut, _ = recovered(torn)
    whole = max([end for end in ENDS if end <= same], default=0)
    assert (segment.size_bytes, cut) == (whole, len(torn) - whole)
    assert segment.next_offset == 2 * sum(end <= same for end in ENDS)


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_no_damaged_byte_is_believed(at: int, flip: int) -> None:
    damaged = bytearray(DATA)
    damaged[at] ^= flip
    segment, _, _ = recovered(bytes(damaged))
    before = max([end for end in ENDS if end <= at], default=0)
    in_batch = at - before
    if not (in_batch < 8 or 12 <= in_batch < 16):  # base offset and leader epoch are outside the checksum
        assert segment.size_bytes == before


@pytest.mark.parametrize("offset", [0, 3])
def test_offsets_that_go_back_are_damage(offset: int) -> None:
    back = bytearray(DATA)
    back[ENDS[2] : ENDS[2] + 8] = offset.to_bytes(8, "big")
    segment, _, _ = recovered(bytes(back))
    assert segment.size_bytes == ENDS[2]
    assert recovered(DATA, next_offset=1)[0].size_bytes == 0


def test_epochs_and_indexes_are_rebuilt() -> None:
    segment, cut, epochs = recovered(DATA)
    assert (cut, epochs.entries()) == (0, [(0, 0), (1, 6)])
    assert len(segment.offsets) > 1


def state(producers: Producers) -> list[Producer]:
    return sorted(producers.all(), key=lambda producer: producer.producer_id)


def ends(producers: Producers) -> list[tuple[int, int, int]]:
    return [(producer.producer_id, producer.last_sequence, producer.last_offset) for producer in state(producers)]


def test_producers_come_from_the_last_good_snapshot_and_the_batches_after_it() -> None:
    segment, _, _ = recovered(DATA)
    whole, snapshots = Producers(), MemorySnapshots()
    restore_producers(whole, snapshots, [segment], 12)
    assert ends(whole) == [(0, 5, 9), (1, 5, 11)]
    known = Producers()
    restore_producers(known, snapshots, [recovered(DATA[: ENDS[1]])[0]], 4)
    snapshots.save(4, write_snapshot(known.all()))
    snapshots.save(8, b"damaged")
    snapshots.save(99, write_snapshot([]))
    again = Producers()
    restore_producers(again, snapshots, [segment], 12)
    assert state(again) == state(whole)
    assert snapshots.offsets() == [4, 99], "the damaged one is gone"


def test_a_snapshot_outlives_the_batches_that_it_was_made_from() -> None:
    whole, snapshots = Producers(), MemorySnapshots()
    segment, _, _ = recovered(DATA)
    restore_producers(whole, snapshots, [segment], 12)
    snapshots.save(12, write_snapshot(whole.all()))
    again = Producers()
    restore_producers(again, snapshots, [], 12)
    assert state(again) == state(whole)
