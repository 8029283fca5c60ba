"""What a log refuses, and with which code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota.coordinator.log.batch_validation import admit, admit_sequences
from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.coordinator.log.producers import Producers
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import BATCH_HEADER_BYTES, Codec, field_at, stamp_append_time, with_payload
from rota.protocol.records.fast import RECORDS_PER_BATCH_MAX

from .log_kit import batch, values

CONFIG = LogConfig()


def with_byte(data: bytes, at: int, value: int) -> bytes:
    changed = bytearray(data)
    changed[at] = value
    return bytes(changed)


def with_append_time(data: bytes) -> bytes:
    changed = bytearray(data)
    stamp_append_time(changed, 0, append_time_ms=5)
    return bytes(changed)


def with_count(data: bytes, count: int) -> bytes:
    """The count is under the checksum, which has to be made anew."""
    changed = bytearray(data)
    changed[57:61] = count.to_bytes(4, "big", signed=True)
    stamp_append_time(changed, 0, append_time_ms=5)
    return bytes(changed)


@pytest.mark.parametrize(
    ("data", "config", "code"),
    [
        (b"", CONFIG, ErrorCode.INVALID_RECORD),
        (b"rubbish", CONFIG, ErrorCode.CORRUPT_MESSAGE),
        (values(3)[:-1], CONFIG, ErrorCode.CORRUPT_MESSAGE),
        (values(3) + b"\0", CONFIG, ErrorCode.CORRUPT_MESSAGE),
        (with_byte(values(3), 70, 255), CONFIG, ErrorCode.CORRUPT_MESSAGE),
        (with_byte(values(3), 16, 1), CONFIG, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (with_byte(values(3), 16, 0), CONFIG, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (with_byte(values(3), 16, 3), CONFIG, ErrorCode.CORRUPT_MESSAGE),
        (with_count(values(3), 2), CONFIG, ErrorCode.INVALID_RECORD),
        (with_count(values(3), 0), CONFIG, ErrorCode.INVALID_RECORD),
        (with_count(values(3), -1), CONFIG, ErrorCode.INVALID_RECORD),
        (values(3), replace(CONFIG, message_bytes_max=len(values(3)) - 1), ErrorCode.MESSAGE_TOO_LARGE),
        (values(3) * 2, replace(CONFIG, segment_bytes=len(values(3)) + 1), ErrorCode.RECORD_LIST_TOO_LARGE),
        (with_byte(values(3), 7, 1), CONFIG, ErrorCode.INVALID_RECORD),  # base offset 1
        (values(1, is_control=True), CONFIG, ErrorCode.INVALID_RECORD),
        (values(1, producer_id=5, producer_epoch=0), CONFIG, ErrorCode.INVALID_RECORD),  # without a sequence
        (with_append_time(values(1)), CONFIG, ErrorCode.INVALID_TIMESTAMP),
        (values(1), replace(CONFIG, compact=True), ErrorCode.INVALID_RECORD),
        (batch((b"k", b"v"), (None, b"v"), codec=Codec.GZIP), replace(CONFIG, compact=True), ErrorCode.INVALID_RECORD),
        (with_payload(values(1), Codec.NONE, b"\xff" * 30), replace(CONFIG, compact=True), ErrorCode.INVALID_RECORD),
        (with_payload(values(1), Codec.GZIP, b"\xff" * 30), replace(CONFIG, compact=True), ErrorCode.INVALID_RECORD),
    ],
)
def test_refused(data: bytes, config: LogConfig, code: ErrorCode) -> None:
    with pytest.raises(AppendRefused) as refused:
        admit(data, config)
    assert refused.value.code is code


def with_offsets(data: bytes, count: int, codec: Codec) -> bytes:
    """The batch with another count, the offsets for it and a good checksum; its payload stays."""
    changed = bytearray(data)
    for name, number in (("last_offset_delta", count - 1), ("count", count)):
        changed[field_at(name) : field_at(name) + 4] = number.to_bytes(4, "big")
    return with_payload(changed, codec, bytes(changed[BATCH_HEADER_BYTES:]))


@pytest.mark.parametrize(
    ("codec", "most"), [(Codec.NONE, len(values(1)[BATCH_HEADER_BYTES:]) // 7), (Codec.ZSTD, RECORDS_PER_BATCH_MAX)]
)
def test_b2_a_batch_takes_no_more_offsets_than_it_can_have_records(codec: Codec, most: int) -> None:
    assert len(admit(with_offsets(values(1), most, codec), CONFIG)) == 1
    for count in (most + 1, 2**31 - 1):
        with pytest.raises(AppendRefused, match=f"{count} records in") as refused:
            admit(with_offsets(values(1), count, codec), CONFIG)
        assert refused.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", list(Codec))
def test_admitted(codec: Codec) -> None:
    data = batch((b"k", b"v"), (b"k", None), codec=codec)
    config = replace(CONFIG, compact=True, message_bytes_max=len(data), segment_bytes=2 * len(data))
    assert [position for position, _ in admit(data * 2, config)] == [0, len(data)]


def test_sequences_of_several_batches_follow_each_other() -> None:
    producers = Producers()
    data = b"".join(values(2, producer_id=5, producer_epoch=0, base_sequence=sequence) for sequence in (0, 2, 4))
    assert admit_sequences(admit(data, CONFIG), producers) is None
    assert len(producers) == 0, "nothing is written yet"
    gap = b"".join(values(2, producer_id=5, producer_epoch=0, base_sequence=sequence) for sequence in (0, 3))
    with pytest.raises(AppendRefused) as refused:
        admit_sequences(admit(gap, CONFIG), producers)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_one_duplicate_in_a_set_answers_for_the_set() -> None:
    original = values(2, producer_id=5, producer_epoch=0, base_sequence=0)
    two = values(1, producer_id=5, producer_epoch=0, base_sequence=2)
    producers = Producers()
    producers.record(admit(original, CONFIG)[0][1])
    sent = admit_sequences(admit(original + two, CONFIG), producers)
    assert sent is not None
    assert (sent.first_offset, sent.last_offset) == (0, 1)
