"""A page of records: bounded, and always JSON."""

from __future__ import annotations

import json

import pytest
from tests.chaos.requests import NOW_MS, batch

from rota.coordinator.web.record_page import (
    HEADERS_SHOWN_MAX,
    PAGE_BYTES_MAX,
    VALUE_BYTES_MAX,
    decode_page,
    shown_bytes,
)
from rota.protocol.records.batch import Codec
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import Record, write_batch


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        (b"text <b>", "text", "text <b>"),
        (b'{"a": 1}', "json", '{"a": 1}'),
        (b"[" * 5_000, "text", "[" * 5_000),
        (b"\xff\x00", "base64", "/wA="),
        (b"", "text", ""),
    ],
)
def test_bytes_are_shown_in_the_format_that_fits(data: bytes, form: str, text: str) -> None:
    assert shown_bytes(data) == {"size_bytes": len(data), "is_cut": False, "format": form, "text": text}


def test_a_tombstone_is_null_and_a_long_value_is_cut_between_characters() -> None:
    assert shown_bytes(None) is None
    shown = shown_bytes("é".encode() * VALUE_BYTES_MAX + b"x")
    assert shown is not None
    assert (shown["is_cut"], len(shown["text"].encode())) == (True, VALUE_BYTES_MAX)
    shown = shown_bytes(b"x" + "é".encode() * VALUE_BYTES_MAX)
    assert shown is not None
    assert (shown["format"], len(shown["text"].encode())) == ("text", VALUE_BYTES_MAX - 1)


def test_a_page_that_ends_inside_a_batch_continues_there() -> None:
    data = write_batch([Record(at, NOW_MS, None, b"v", ()) for at in range(4)])
    found, next_offset = decode_page(data, 1, 2)
    assert ([record["offset"] for record in found], next_offset) == ([1, 2], 3)


def test_damaged_records_are_an_error() -> None:
    damaged = bytearray(batch(b"one"))
    damaged[16] = 9
    with pytest.raises(CorruptBatch):
        decode_page(bytes(damaged), 0, 10)


def test_wb32_a_page_of_batches_that_decompress_to_much_more_ends_early_and_goes_on_behind() -> None:
    large = bytes(2 * VALUE_BYTES_MAX)
    records = [Record(0, NOW_MS, None, large, ()) for _ in range(4)]
    data = b"".join(write_batch(records, base_offset=at, codec=Codec.ZSTD) for at in range(0, 80, 4))
    offsets, first = [], 0
    while first < 80:
        page, first = decode_page(data, first, 500)
        assert sum(len(record["value"]["text"]) for record in page) <= PAGE_BYTES_MAX
        offsets += [record["offset"] for record in page]
    assert offsets == list(range(80))


def test_wb32_a_record_larger_than_a_page_is_a_page_and_of_many_headers_some_are_shown() -> None:
    many = tuple((f"name {at}", bytes(VALUE_BYTES_MAX)) for at in range(HEADERS_SHOWN_MAX + 1))
    data = write_batch([Record(0, NOW_MS, None, None, many), Record(1, NOW_MS, None, b"v", ())])
    (record,), next_offset = decode_page(data, 0, 500)
    assert (len(record["headers"]), record["header_count"]) == (HEADERS_SHOWN_MAX, HEADERS_SHOWN_MAX + 1)
    assert next_offset == 1


def test_wb32_small_headers_count_with_the_json_around_them() -> None:
    records = [Record(at, NOW_MS, None, None, (("", None),) * HEADERS_SHOWN_MAX) for at in range(400)]
    page, next_offset = decode_page(write_batch(records), 0, 500)
    assert next_offset == len(page) < 400
    assert len(json.dumps(page)) < 2 * PAGE_BYTES_MAX
