"""A batch from its first record to its outcome."""

from __future__ import annotations

import pytest
from tests.unit.client.producer.kit import batch

from rota.client.errors import TimedOut
from rota.client.producer.batch import Failed, Written, record_bytes
from rota.protocol.records.batch import SEQUENCE_MAX, Codec, check_batch, read_header
from rota.protocol.records.record import read_records


@pytest.mark.parametrize("codec", Codec)
def test_a_sealed_batch_contains_its_records_and_sequence(codec: Codec) -> None:
    made = batch(b"one", b"two", codec=codec)
    made.producer, made.sequence = (7, 1), 40
    made.seal()
    header = read_header(made.raw)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.count) == (7, 1, 40, 2)
    assert [(item.value, item.timestamp) for item in read_records(made.raw)] == [(b"one", 1_000), (b"two", 1_001)]


def test_another_sequence_patches_the_header_alone() -> None:
    made = batch(b"one", codec=Codec.GZIP)
    made.seal()
    before = made.raw
    made.producer, made.sequence = (7, 2), 5
    made.seal()
    header = read_header(made.raw)
    check_batch(made.raw, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 5)
    assert made.raw[61:] == before[61:]


def test_sealing_twice_changes_nothing() -> None:
    made = batch(b"one")
    made.seal()
    raw = made.raw
    made.seal()
    assert made.raw is raw


def test_a_sealed_batch_takes_no_record() -> None:
    made = batch(b"one")
    made.seal()
    assert not made.append(0, None, b"two", ())


def test_sequences_wrap() -> None:
    made = batch(b"one", b"two")
    made.sequence = SEQUENCE_MAX
    assert made.end_sequence == 1


def test_each_listener_reports_only_its_own_failure() -> None:
    made = batch(b"one", b"two")
    called = []
    made.listeners = [(1, lambda: called.append(1) is None), (0, lambda: False)]
    made.end(Failed(TimedOut("late"), maybe_written=False))
    assert called == [1]
    assert list(made.unreported()) == [0]
    assert made.is_unreported


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_split_has_the_same_records_in_their_order(codec: Codec) -> None:
    values = [b"%d" % number * 10 for number in range(7)]
    made = batch(*values, codec=codec)
    made.maybe_written = True
    answers: list[int] = []
    made.listeners = [(place, lambda place=place: answers.append(place) is None) for place in range(7)]
    made.seal()
    charged = made.charged_bytes
    parts = made.split(1 << 20, codec, None)
    assert len(parts) > 1
    assert sum(part.charged_bytes for part in parts) == charged
    assert all(part.maybe_written for part in parts)
    found = [made.place(place) for place in range(7)]
    assert [(part.count, index) for part, index in found][-1] == (parts[-1].count, parts[-1].count - 1)
    read = []
    for part in parts:
        part.seal()
        read += [record.value for record in read_records(part.raw)]
        part.end(Written(0))
    assert read == values
    assert answers == list(range(7))


@pytest.mark.parametrize("sizes", [(1, 1), (100, 1), (1, 100), (50, 50, 50)])
def test_a_split_creates_at_least_two_parts(sizes: tuple[int, ...]) -> None:
    made = batch(*[b"x" * size for size in sizes])
    made.seal()
    assert len(made.split(1 << 20, Codec.NONE, None)) >= 2


def test_the_estimated_size_of_a_record_covers_its_bytes() -> None:
    key, value, headers = b"k" * 200, b"v" * 20_000, (("name", b"content"), ("é", None))
    made = batch()
    assert made.append(1 << 60, key, value, headers)
    assert made.append(0, key, value, headers)
    assert made.size_bytes - 61 <= 2 * record_bytes(key, value, headers)
