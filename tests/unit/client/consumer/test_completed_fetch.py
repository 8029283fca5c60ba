"""One partition's bytes, decoded as they are asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples
from tests.unit.client.consumer.kit import P1, batch, marker, transactional

from rota.client.consumer.completed_fetch import CompletedFetch, outline
from rota.client.errors import CorruptRecords
from rota.protocol.messages.fetch import AbortedTransaction
from rota.protocol.records.batch import Codec, read_header
from rota.protocol.records.record import read_records, rewrite_batch

ABORTED = (AbortedTransaction(producer_id=7, first_offset=0),)


def offsets(buffered: CompletedFetch, records_max: int = 1000) -> list[int]:
    return [record.offset for record in buffered.take(records_max)]


def framed(*batches: bytes) -> memoryview:
    """In the middle of a frame, as answers are."""
    raw = b"".join(batches)
    return memoryview(b"head" + raw + b"tail")[4 : 4 + len(raw)]


def test_take_returns_at_most_the_requested_number_of_records() -> None:
    buffered = CompletedFetch(P1, 0, framed(batch(0, 3), batch(3, 4)))
    assert offsets(buffered, 2) == [0, 1]
    assert buffered.next_offset == 2
    assert offsets(buffered, 3) == [2, 3, 4]
    assert not buffered.is_done
    assert offsets(buffered, 5) == [5, 6]
    assert buffered.is_done
    assert buffered.next_offset == 7
    assert offsets(buffered) == []


def test_records_have_topic_partition_offset_and_epoch() -> None:
    [item] = CompletedFetch(P1, 3, framed(batch(3, 1, epoch=9))).take(5)
    assert (item.topic, item.partition, item.offset, item.leader_epoch) == (*P1, 3, 9)
    assert (item.key, item.value, item.timestamp, item.timestamp_type) == (b"3", b"v", 1_003, 0)


def test_the_epoch_is_that_of_the_last_record_given() -> None:
    buffered = CompletedFetch(P1, 0, framed(batch(0, 2, epoch=3), batch(2, 2, epoch=5)))
    assert buffered.leader_epoch == -1
    for expected in (3, 3, 5, 5):
        buffered.take(1)
        assert buffered.leader_epoch == expected


def test_it_begins_at_the_position_in_the_middle_of_a_batch() -> None:
    buffered = CompletedFetch(P1, 4, framed(batch(0, 3), batch(3, 4)))
    assert offsets(buffered) == [4, 5, 6]


def test_an_incomplete_last_batch_is_ignored() -> None:
    whole, second = batch(0, 3), batch(3, 4)
    for cut in (1, 12, 60, 61, len(second) - 1):
        buffered = CompletedFetch(P1, 0, framed(whole, second[:cut]))
        assert offsets(buffered) == [0, 1, 2]
        assert buffered.is_done, "nothing is left to look at"
        assert (buffered.next_offset, buffered.end) == (3, (3, 0))


def test_a_batch_below_the_position_is_passed() -> None:
    buffered = CompletedFetch(P1, 3, framed(batch(0, 3), batch(3, 4), batch(7, 4)[:-1]))
    assert offsets(buffered) == [3, 4, 5, 6]
    assert buffered.is_done


def test_control_batches_are_left_out_and_passed() -> None:
    buffered = CompletedFetch(P1, 0, framed(batch(0, 2), marker(2, 1), batch(3, 1), marker(4, 0)))
    assert offsets(buffered) == [0, 1, 3]
    assert buffered.next_offset == 5


def test_offsets_removed_by_compaction_are_skipped() -> None:
    raw = batch(0, 6)
    header = read_header(raw)
    some = rewrite_batch(header, [item for item in read_records(raw) if item.offset in (1, 3)])
    none = rewrite_batch(read_header(batch(6, 3)), [])
    buffered = CompletedFetch(P1, 0, framed(some, none))
    assert offsets(buffered) == [1, 3]
    assert buffered.next_offset == 9
    assert buffered.is_done


def test_a_position_in_a_gap_is_passed_too() -> None:
    raw = batch(0, 6)
    some = rewrite_batch(read_header(raw), [item for item in read_records(raw) if item.offset == 1])
    buffered = CompletedFetch(P1, 4, framed(some))
    assert offsets(buffered) == []
    assert buffered.next_offset == 6


def test_read_committed_hides_aborted_records() -> None:
    log = framed(transactional(0, 2), batch(2, 1), marker(3, 0), transactional(4, 1), marker(5, 1))
    assert offsets(CompletedFetch(P1, 0, log, aborted=ABORTED)) == [2, 4]
    assert offsets(CompletedFetch(P1, 0, log)) == [0, 1, 2, 4]


@pytest.mark.parametrize("codec", Codec)
def test_every_codec_is_read(codec: Codec) -> None:
    assert offsets(CompletedFetch(P1, 1, framed(batch(0, 50, b"x" * 100, codec=codec)))) == list(range(1, 50))


def bent(raw: bytes, at: int = -1) -> bytes:
    wrong = bytearray(raw)
    wrong[at] ^= 1
    return bytes(wrong)


def test_a_corrupt_batch_raises_after_the_good_records_and_again() -> None:
    buffered = CompletedFetch(P1, 0, framed(batch(0, 2), bent(batch(2, 2)), batch(4, 1)))
    assert offsets(buffered) == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptRecords, match=r"orders-1 at offset 2: .*checksum.*seek past it") as caught:
            buffered.take(10)
        assert (caught.value.partition, caught.value.offset) == (P1, 2)
    assert not buffered.is_done


@pytest.mark.parametrize(
    "raw",
    [
        bent(batch(0, 2), 16),  # magic
        bent(batch(0, 2), 11)[:70],  # size
        b"\0" * 100,
        b"\xff" * 100,
        batch(0, 2)[:40],
        bent(batch(0, 20, codec=Codec.ZSTD)),
    ],
)
def test_garbage_is_corrupt(raw: bytes) -> None:
    with pytest.raises(CorruptRecords):
        CompletedFetch(P1, 0, framed(raw)).take(10)


def test_checksums_may_be_left_unchecked() -> None:
    wrong = bent(batch(0, 2), 18)  # of the checksum itself
    assert offsets(CompletedFetch(P1, 0, framed(wrong), check_crcs=False)) == [0, 1]
    unknown = bent(batch(0, 2), 22)  # attributes: codec 1, gzip, which it is not
    with pytest.raises(CorruptRecords):
        CompletedFetch(P1, 0, framed(unknown), check_crcs=False).take(1)


def test_copy_rest_keeps_the_remaining_records_only() -> None:
    batches = [batch(at, 10, b"x" * 100) for at in range(0, 100, 10)]
    buffered = CompletedFetch(P1, 0, framed(*batches, batch(100, 5)[:-1]))
    assert offsets(buffered, 15) == list(range(15))
    whole = len(buffered.held)
    buffered.copy_rest()
    assert len(buffered.held) < whole * 0.85
    buffered.copy_rest()
    assert offsets(buffered) == list(range(15, 100))
    assert buffered.is_done


def test_the_end_is_known_before_anything_is_decoded() -> None:
    first, second = batch(0, 3, epoch=2), batch(3, 4, epoch=5)
    assert outline(framed(first, second), 0) == (len(first + second), (7, 5))
    assert outline(framed(first, second[:-1]), 0) == (len(first), (3, 2))
    assert outline(framed(first[:-1]), 0) == (0, None)
    assert outline(b"", 0) == (0, None)
    assert outline(framed(first, first), 0)[1] is None, "offsets that go back are not honest"
    assert outline(framed(first), 3) == (len(first), None), "nothing new"
    assert outline(framed(first, b"\0" * 80), 0) == (len(first), None)


BATCHES = st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["data", "data", "kept", "control"])), max_size=8)


@settings(deadline=None, max_examples=examples(200))
@given(BATCHES, st.data())
def test_any_sequence_of_takes_returns_the_records_of_the_log(
    kinds: list[tuple[int, str]], data: st.DataObject
) -> None:
    log, expected, end = [], [], 0
    for count, kind in kinds:
        if kind == "control":
            log.append(marker(end, 1))
            end += 1
            continue
        raw = batch(end, count)
        if kind == "kept":
            kept = [item for item in read_records(raw) if item.offset % 2]
            raw = rewrite_batch(read_header(raw), kept)
        log.append(raw)
        expected += [item.offset for item in read_records(raw)]
        end += count
    start = data.draw(st.integers(0, max(end - 1, 0)), label="position")
    log = [raw for raw in log if read_header(raw).next_offset > start]
    buffered = CompletedFetch(P1, start, framed(*log))
    assert [buffered.end and buffered.end[0]] == [end if log else None]
    taken: list[int] = []
    while not buffered.is_done:
        before = buffered.next_offset
        some = offsets(buffered, data.draw(st.integers(1, 7)))
        if data.draw(st.booleans()):
            buffered.copy_rest()
        taken += some
        assert buffered.next_offset >= max([before, *(item + 1 for item in some)])
    assert taken == [item for item in expected if item >= start]
    assert buffered.next_offset == max(end, start)
