from __future__ import annotations

import struct
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch

from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.coordinator.replica.produce_validation import (
    RECORD_ERRORS_MAX,
    check_times,
    is_transactional,
    only_batch,
    recompress,
    records_without_key,
    with_create_time,
)
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import (
    Codec,
    check_batch,
    read_header,
    read_max_timestamp,
    stamp_append_time,
    with_payload,
)
from rota.protocol.records.record import read_records

GOOD = batch(b"a", b"b", timestamp=1000, step_ms=5)
CORRUPT = GOOD[:-1] + b"x"


def with_magic(magic: int) -> bytes:
    return GOOD[:16] + struct.pack(">b", magic) + GOOD[17:]


def with_size(size: int) -> bytes:
    return GOOD[:8] + struct.pack(">i", size) + GOOD[12:]


def refusal_of(records: Any, version: int = 9) -> tuple[ErrorCode, str]:
    with pytest.raises(AppendRefused) as refused:
        only_batch(records, version)
    return refused.value.code, str(refused.value)


def test_exactly_one_whole_batch_of_magic_2() -> None:
    assert only_batch(GOOD, 9) is GOOD
    for records in (b"", GOOD[:30], GOOD[:-3], GOOD + GOOD, with_magic(1), with_magic(0), with_size(10**6)):
        assert refusal_of(records)[0] is ErrorCode.INVALID_RECORD
        assert refusal_of(memoryview(records))[0] is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("records", "text"),
    [
        (with_magic(3), "Invalid magic found in record: 3"),
        (with_magic(-1), "Invalid magic found in record: -1"),
        (with_size(13), "Record size 13 is less than the minimum record overhead (14)"),
        (with_size(-(2**31)), "Record size -2147483648 is less than the minimum record overhead (14)"),
        (GOOD + bytes(12), ""),
        (with_size(20)[:32], ""),
    ],
)
def test_b4_a_length_or_a_magic_that_no_batch_has(records: bytes, text: str) -> None:
    assert refusal_of(records) == (ErrorCode.CORRUPT_MESSAGE, text)
    assert refusal_of(memoryview(records)) == (ErrorCode.CORRUPT_MESSAGE, text)


@pytest.mark.parametrize("rest", [b"x", b"x" * 11, GOOD[:30], GOOD[:-1]])
def test_b4_what_follows_the_batch_and_is_no_batch_is_left_out(rest: bytes) -> None:
    assert only_batch(GOOD + rest, 9) == GOOD


def test_zstd_came_with_version_7() -> None:
    zstd = batch(b"a" * 1000, codec=Codec.ZSTD)
    assert refusal_of(zstd, 6)[0] is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert refusal_of(zstd + b"x", 6)[0] is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert only_batch(zstd, 7) is zstd
    only_batch(batch(b"a" * 1000, codec=Codec.LZ4), 3)


def with_append_time(records: bytes, time_ms: int) -> bytes:
    changed = bytearray(records)
    stamp_append_time(changed, 0, append_time_ms=time_ms)
    return bytes(changed)


def test_b5_the_bit_of_append_time_is_left_out() -> None:
    sent = with_append_time(GOOD, NOW_MS)
    check_times(sent, LogConfig(), NOW_MS)
    kept = with_create_time(sent)
    header = read_header(kept)
    check_batch(kept, 0, header)
    assert (header.is_log_append_time, header.base_timestamp, header.max_timestamp) == (False, 1000, NOW_MS)
    assert [record.timestamp for record in read_records(kept)] == [1000, 1005]
    assert with_create_time(GOOD) is GOOD


@pytest.mark.parametrize(("config", "time_ms"), [(LogConfig(), -1), (LogConfig(log_append_time=True), NOW_MS)])
def test_b5_a_batch_without_a_time_and_a_topic_of_append_time_refuse_the_bit(config: LogConfig, time_ms: int) -> None:
    with pytest.raises(AppendRefused, match="rejected due to invalid timestamp") as refused:
        check_times(with_append_time(GOOD, time_ms), config, NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    why = (
        f"Invalid timestamp type in message DefaultRecord(offset=1, timestamp={time_ms}, key=1 bytes, value=1 bytes). "
        "Producer should not set timestamp type to LogAppendTime."
    )
    assert refused.value.records[1] == (1, why)


def test_b5_a_broken_batch_gets_no_new_checksum() -> None:
    with pytest.raises(AppendRefused) as refused:
        with_create_time(with_append_time(GOOD, NOW_MS)[:-1] + b"x")
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


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
