from __future__ import annotations

import struct
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch

from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.coordinator.replica.produce_validation import (
    RECORD_ERRORS_MAX,
    check_records,
    check_times,
    is_transactional,
    recompress,
    records_without_key,
)
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import Codec, check_batch, read_header, read_max_timestamp, with_payload
from rota.protocol.records.record import read_records

GOOD = batch(b"a", b"b", timestamp=1000, step_ms=5)
CORRUPT = GOOD[:-1] + b"x"


def with_magic(magic: int) -> bytes:
    return GOOD[:16] + struct.pack(">b", magic) + GOOD[17:]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (GOOD, ErrorCode.NONE),
        (b"", ErrorCode.INVALID_RECORD),
        (GOOD[:30], ErrorCode.INVALID_RECORD),
        (GOOD[:-3], ErrorCode.INVALID_RECORD),
        (GOOD + GOOD, ErrorCode.INVALID_RECORD),
        (with_magic(1), ErrorCode.INVALID_RECORD),
        (with_magic(0), ErrorCode.INVALID_RECORD),
        (with_magic(3), ErrorCode.CORRUPT_MESSAGE),
        (with_magic(-1), ErrorCode.CORRUPT_MESSAGE),
        (b"x" * 100, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_exactly_one_whole_batch_of_magic_2(records: bytes, code: ErrorCode) -> None:
    assert check_records(records, 9) is code
    assert check_records(memoryview(records), 9) is code


def test_zstd_came_with_version_7() -> None:
    zstd = batch(b"a" * 1000, codec=Codec.ZSTD)
    assert check_records(zstd, 6) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check_records(zstd, 7) is ErrorCode.NONE
    assert check_records(batch(b"a" * 1000, codec=Codec.LZ4), 3) is ErrorCode.NONE


@pytest.mark.parametrize("kept", list(Codec))
@pytest.mark.parametrize("received", list(Codec))
def test_a_batch_is_kept_in_the_codec_of_its_topic(received: Codec, kept: Codec) -> None:
    how: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 11}
    sent = batch(*[b"value" * 100] * 20, codec=received, step_ms=3, **how)
    found = recompress(sent, kept, None)
    header = read_header(found)
    assert (header.codec, header.size_bytes) == (kept, len(found))
    check_batch(found, 0, header)
    assert read_records(found) == read_records(sent)
    for name, value in how.items():
        assert getattr(header, name) == value
    assert (found is sent) == (received is kept)


def test_without_a_topic_codec_batches_are_not_recompressed() -> None:
    assert recompress(CORRUPT, None, None) is CORRUPT


def test_a_broken_batch_is_not_recompress() -> None:
    with pytest.raises(AppendRefused) as refused:
        recompress(CORRUPT, Codec.ZSTD, None)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_b3_records_that_nothing_can_decode_are_refused_for_good() -> None:
    undecodable = with_payload(batch(b"a", timestamp=NOW_MS + 10**9), Codec.ZSTD, b"\xff" * 30)
    for check in (
        lambda: recompress(undecodable, Codec.GZIP, None),
        lambda: check_times(undecodable, LogConfig(), NOW_MS),
    ):
        with pytest.raises(AppendRefused) as refused:
            check()
        assert refused.value.code is ErrorCode.INVALID_RECORD


def test_records_records_without_key_are_named() -> None:
    refused = records_without_key(batch(b"a", b"b", key=None), "t-0")
    assert refused is not None
    why = "Compacted topic cannot accept message without key in topic partition t-0"
    assert list(refused.records) == [(0, why), (1, why)]
    assert str(refused) == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first three "
        f"errors at most: [RecordError(batchIndex=0, message='{why}'), RecordError(batchIndex=1, message='{why}')]"
    )
    assert records_without_key(GOOD, "t-0") is None


def test_records_of_a_transaction_are_known_by_their_batch() -> None:
    in_one = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert is_transactional(in_one)
    for other in (GOOD, None, b"", with_magic(1)):
        assert not is_transactional(other)


def test_the_largest_timestamp() -> None:
    assert read_max_timestamp(GOOD) == 1005


def test_timestamps_within_the_limits_of_the_topic() -> None:
    config = LogConfig(timestamp_before_max_ms=10, timestamp_after_max_ms=20)
    check_times(batch(b"a", b"b", timestamp=NOW_MS - 10, step_ms=30), config, NOW_MS)


@pytest.mark.parametrize(("timestamp", "places"), [(NOW_MS - 11, [0]), (NOW_MS, [1]), (NOW_MS + 21, [0, 1])])
def test_times_beyond_it_name_the_records(timestamp: int, places: list[int]) -> None:
    config = LogConfig(timestamp_before_max_ms=10, timestamp_after_max_ms=20)
    with pytest.raises(AppendRefused) as refused:
        check_times(batch(b"a", b"b", timestamp=timestamp, step_ms=21), config, NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [place for place, _ in refused.value.records] == places


def test_with_log_append_time_no_timestamp_is_refused() -> None:
    check_times(batch(b"a", timestamp=NOW_MS + 10**9), LogConfig(log_append_time=True), NOW_MS)


def test_the_list_of_wrong_records_ends_somewhere() -> None:
    records = batch(*[b"a"] * (RECORD_ERRORS_MAX + 5), timestamp=NOW_MS + 10**9)
    with pytest.raises(AppendRefused) as refused:
        check_times(records, LogConfig(), NOW_MS)
    assert len(refused.value.records) == RECORD_ERRORS_MAX


def test_a_broken_batch_of_wrong_times_is_corrupt() -> None:
    records = batch(b"a", timestamp=NOW_MS + 10**9)
    with pytest.raises(AppendRefused) as refused:
        check_times(records[:-1] + b"x", LogConfig(), NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
