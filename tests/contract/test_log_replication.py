"""A follower's log: whatever a leader's log becomes, copying and truncating make the follower's the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.coordinator.log.segmented import SegmentedLog
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import headers
from rota.protocol.records.fast import Record
from rota.protocol.records.record import read_all, write_batch

from .log_worlds import WORLDS, World

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, retention_ms=None)
NOW_MS = 1_000_000
EPOCH_MAX = 1 << 30


def batch(key: bytes, value: bytes, **fields: int) -> bytes:
    return write_batch([Record(0, NOW_MS, key, value)], **fields)


def copy(leader: SegmentedLog, follower: SegmentedLog, bytes_max: int = 700) -> None:
    """Fetch until the end, as a follower does (KIP-101): first truncate to where the histories part."""
    while follower.latest_epoch >= 0:
        epoch, end = leader.epoch_end(follower.latest_epoch)
        mine = follower.epoch_end(epoch)[1] if epoch >= 0 else 0
        before = follower.log_end_offset
        follower.truncate(min(end, mine) if epoch >= 0 else 0)
        if epoch == follower.latest_epoch or follower.log_end_offset == before:
            break
    if not leader.log_start_offset <= follower.log_end_offset <= leader.log_end_offset:
        follower.truncate_fully_and_start_at(leader.log_start_offset)
    while follower.log_end_offset < leader.log_end_offset:
        data = leader.read(follower.log_end_offset, bytes_max)
        if follower.append_as_follower(data, leader_epoch=EPOCH_MAX) is None:
            break


def contents(log: SegmentedLog, start: int) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """(offset, epoch, key, value) of each record from `start` on."""
    found, offset = list[tuple[int, int, bytes | None, bytes | None]](), start
    while data := log.read(offset, 1 << 16):
        for position, header in headers(data, cut=True):
            end = position + header.size_bytes
            records = read_all(data[position:end])
            found += [(r.offset, header.leader_epoch, r.key, r.value) for r in records if r.offset >= start]
            offset = header.next_offset
    return found


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from((b"a", b"b", b"c")), st.binary(max_size=60)),
        st.tuples(st.sampled_from(("epoch", "compact", "copy", "lost tail", "retain", "stray", "crash"))),
    ),
    max_size=30,
)


@pytest.mark.parametrize("world", ["memory", "disk"])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_a_follower_becomes_its_leader(world: str, acts: list[tuple[object, ...]]) -> None:
    """Laws L1, L2."""
    leads, follows = WORLDS["memory"](CONFIG), WORLDS[world](CONFIG)
    epoch = 0
    try:
        for act, *values in acts:
            epoch = perform(str(act), values, leads, follows, epoch)
        copy(leads.log, follows.log)
        assert follows.log.log_end_offset == leads.log.log_end_offset
        start = max(leads.log.log_start_offset, follows.log.log_start_offset)
        assert contents(follows.log, start) == contents(leads.log, start)
        follows.reopen()
        assert contents(follows.log, start) == contents(leads.log, start)
    finally:
        leads.end()
        follows.end()


def perform(act: str, values: list[object], leads: World, follows: World, epoch: int) -> int:
    """One step; returns the epoch that the leader is in."""
    leader, follower = leads.log, follows.log
    if act == "append":
        key, value = values
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        leader.append(batch(key, value), leader_epoch=epoch, now_ms=NOW_MS)
    elif act == "epoch":
        epoch += 1
    elif act == "compact":
        leader.config = replace(CONFIG, compact=True)
        leader.compact(NOW_MS, force=True)
    elif act == "copy":
        copy(leader, follower)
    elif act == "lost tail":  # the leader fails; another one, which lacks its last records, leads in a new epoch
        epoch += 1
        leader.truncate(max(leader.log_end_offset - 2, leader.log_start_offset))
    elif act == "retain":
        leader.delete_before(leader.log_end_offset // 2)
        leader.retain(NOW_MS)
    elif act == "stray":  # the follower led for a while, and nobody heard of what it wrote
        epoch += 2
        follower.append(batch(b"s", b"stray"), leader_epoch=epoch - 1, now_ms=NOW_MS)
    elif act == "crash":
        follows.crash(len(follower.epochs) * 7)
    return epoch


@pytest.mark.parametrize("world", list(WORLDS))
def test_offsets_epochs_producers_and_gaps_are_kept(world: str) -> None:
    made = WORLDS[world](CONFIG)
    log, leader = made.log, WORLDS["memory"](CONFIG).log
    for number in range(4):
        data = batch(b"k", b"v", producer_id=7, producer_epoch=0, base_sequence=number)
        leader.append(data, leader_epoch=number // 2 * 3, now_ms=NOW_MS)
    whole = leader.read(0, 1 << 16)
    batches = [whole[at : at + header.size_bytes] for at, header in headers(whole)]
    assert log.append_as_follower(batches[0] + batches[2], leader_epoch=5) is not None  # 1 was compacted away
    assert log.append_as_follower(batches[3][:-1], leader_epoch=5) is None
    assert log.append_as_follower(memoryview(batches[3]), leader_epoch=2) is None  # of a later leader
    assert [header.base_offset for _, header in headers(log.read(0, 1 << 16))] == [0, 2]
    assert (log.log_end_offset, log.latest_epoch, log.epoch_end(0), log.epoch_end(3)) == (3, 3, (0, 2), (3, 3))
    assert log.producers.last_batches()[7][0] == 2
    assert log.high_watermark_checkpoint == 0
    made.end()


@pytest.mark.parametrize("world", list(WORLDS))
def test_batches_with_a_gap_or_damage_are_refused_completely(world: str) -> None:
    made = WORLDS[world](CONFIG)
    leader = WORLDS["memory"](CONFIG).log
    for _ in range(2):
        leader.append(batch(b"k", b"v"), leader_epoch=0, now_ms=NOW_MS)
    data = leader.read(0, 1 << 16)
    made.log.append_as_follower(data, leader_epoch=0)
    with pytest.raises(AppendRefused) as twice:
        made.log.append_as_follower(data, leader_epoch=0)
    assert twice.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    leader.append(batch(b"k", b"v"), leader_epoch=0, now_ms=NOW_MS)
    damaged = bytearray(leader.read(2, 1 << 16))
    damaged[-1] ^= 1
    with pytest.raises(AppendRefused) as refused:
        made.log.append_as_follower(bytes(damaged), leader_epoch=0)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert made.log.log_end_offset == 2
    made.end()


@pytest.mark.parametrize("world", list(WORLDS))
def test_starting_afresh_forgets_everything(world: str) -> None:
    made = WORLDS[world](CONFIG)
    for number in range(12):
        data = batch(b"k", bytes(100), producer_id=7, producer_epoch=0, base_sequence=number)
        made.log.append(data, leader_epoch=number, now_ms=NOW_MS)
    made.log.flush()
    made.log.truncate_fully_and_start_at(500)
    log = made.log
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes, log.latest_epoch) == (500, 500, 0, -1)
    assert not log.producers.last_batches()
    assert log.append(batch(b"k", b"v"), leader_epoch=20, now_ms=NOW_MS).base_offset == 500
    made.reopen()
    assert (made.log.log_start_offset, made.log.log_end_offset, made.log.epoch_end(20)) == (500, 501, (20, 501))
    made.end()


def test_batches_that_no_index_can_span_go_to_segments_of_their_own() -> None:
    log, leaders = WORLDS["memory"](CONFIG).log, [WORLDS["memory"](CONFIG).log for _ in range(2)]
    leaders[1].truncate_fully_and_start_at(1 << 33)
    for leader in leaders:
        leader.append(batch(b"k", b"v"), leader_epoch=0, now_ms=NOW_MS)
    data = leaders[0].read(0, 1 << 16) + leaders[1].read(1 << 33, 1 << 16)
    log.append_as_follower(data, leader_epoch=0)
    assert [offset for offset, *_ in contents(log, 0)] == [0, 1 << 33]
    assert all(a.next_offset <= b.base_offset for a, b in pairwise(log._segments))
