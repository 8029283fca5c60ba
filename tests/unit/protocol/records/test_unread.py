"""The time of the first record that is not read, in batches of every kind."""

from __future__ import annotations

import pytest

from rota.protocol.records import unread
from rota.protocol.records.codecs import Codec
from rota.protocol.records.record import Record, write_batch
from rota.protocol.records.unread import DECODED_BYTES_MAX, DECOMPRESSED_BYTES_MAX, has_batch, unread_time_ms


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_gl1_the_time_is_that_of_the_oldest_unread_record(codec: Codec) -> None:
    first = write_batch([Record(n, 1_000 + 10 * n, None, b"v", ()) for n in range(5)], codec=codec)
    second = write_batch([Record(n, 5_000, None, b"v", ()) for n in range(2)], base_offset=5)
    for offset, time_ms in ((0, 1_000), (3, 1_030), (4, 1_040), (5, 5_000), (7, None)):
        assert unread_time_ms(first + second, offset) == time_ms


def test_gl1_of_a_large_batch_the_newest_time_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_batch([Record(n, 1_000 + 10 * n, None, b"v", ()) for n in range(5)])
    assert unread_time_ms(data[:-3], 3) is None
    monkeypatch.setattr(unread, "DECODED_BYTES_MAX", 10)
    assert unread_time_ms(data, 3) == 1_040
    assert unread_time_ms(data, 0) == 1_000


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_gl1_a_small_batch_of_many_bytes_is_not_decompressed(codec: Codec) -> None:
    """A producer can write 125 MiB of zeros as 4 KiB; the broker that shows the lag would decode them in its loop."""
    for size, time_ms in ((DECOMPRESSED_BYTES_MAX // 2, 1_010), (DECOMPRESSED_BYTES_MAX, 1_020)):
        data = write_batch([Record(n, 1_000 + 10 * n, None, b"0" * (size // 3), ()) for n in range(3)], codec=codec)
        assert len(data) < DECODED_BYTES_MAX
        assert (unread_time_ms(data, 0), unread_time_ms(data, 1)) == (1_000, time_ms)


def test_gl1_records_without_a_time_have_no_age() -> None:
    assert unread_time_ms(write_batch([Record(0, -1, None, b"v", ())]), 0) is None


def test_gl1_the_marker_of_a_transaction_is_no_unread_record() -> None:
    marker = write_batch([Record(0, 9_000, b"\0\0\0\1", b"\0" * 6, ())], is_control=True, is_transactional=True)
    data = write_batch([Record(0, 1_000, None, b"v", ())], base_offset=1)
    assert unread_time_ms(marker, 0) is None
    assert unread_time_ms(marker + data, 0) == 1_000


def test_gl1_a_record_that_compaction_removed_is_not_waited_for() -> None:
    first = write_batch([Record(n, 1_000 + n, None, b"v", ()) for n in range(2)])
    later = write_batch([Record(0, 7_000, None, b"v", ())], base_offset=9)
    assert unread_time_ms(first + later, 5) == 7_000


@pytest.mark.parametrize("data", [b"\xff" * 80, b"\0" * 80, b"\0" * 20, b""])
def test_gl1_garbage_and_old_formats_have_no_time(data: bytes) -> None:
    assert unread_time_ms(data, 0) is None
    assert not has_batch(data)


def test_a_response_that_begins_with_a_head_of_a_batch_has_no_batch() -> None:
    data = write_batch([Record(0, 1_000, None, b"v" * 99, ())])
    assert has_batch(data)
    assert not has_batch(data[:-1])
