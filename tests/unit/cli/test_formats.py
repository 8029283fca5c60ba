"""Keys and values as text and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.cli.formats import (
    FIELDS,
    FormatError,
    decode,
    encode,
    field_bytes,
    read_document,
    read_line,
    record_document,
)
from rota.client.types import ConsumerRecord

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)


@given(st.none() | st.binary(), st.sampled_from(["hex", "base64"]))
def test_hex_and_base64_are_exact(data: bytes | None, kind: str) -> None:
    assert encode(decode(data, kind), kind) == data


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_is_exact(text: str) -> None:
    assert encode(decode(text.encode(), "string"), "string") == text.encode()


@given(JSON.filter(lambda value: value is not None))
def test_json_is_exact_as_json(value: Any) -> None:
    data = encode(value, "json")
    assert data is not None
    assert decode(data, "json") == value


@given(st.binary(), st.sampled_from(["string", "json", "hex", "base64"]))
@example(b"NaN", "json")
@example(b"[-Infinity, 1e400]", "json")
def test_any_record_becomes_valid_json(data: bytes, kind: str) -> None:
    json.dumps(decode(data, kind), allow_nan=False)


@given(st.binary(), st.sampled_from(["string", "hex", "base64"]))
@example(b"\xff\xfe", "string")
def test_a_printed_record_can_be_read_again(data: bytes, kind: str) -> None:
    record = ConsumerRecord("t", 1, 2, 3, 0, data, None, (("h", data), ("n", None)))
    document = record_document(record, kind, kind)
    read = read_document(json.dumps(document).encode(), kind, kind)
    assert (read["key"], read["value"], read["timestamp_ms"]) == (data, None, 3)
    assert read["headers"] == (("h", data), ("n", None))


def test_a_lone_surrogate_that_is_no_byte_is_refused() -> None:
    with pytest.raises(FormatError, match="is not string"):
        read_document(b'{"value":"\\ud800"}', "string", "string")


def test_a_record_without_a_timestamp_has_none() -> None:
    assert record_document(ConsumerRecord("t", 0, 0, -1, 1, None, b""), "string", "string")["timestamp"] is None


@pytest.mark.parametrize(
    ("line", "error_text"),
    [
        (b"x", "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b"[]", "not an object"),
        (b"{}", 'not an object with a "value"'),
        (b'{"value":1,"vlue":2}', "unknown fields vlue"),
        (b'{"value":1,"timestamp":"now"}', "timestamp 'now'"),
        (b'{"value":1,"headers":{"a":1}}', "headers"),
        (b'{"value":1,"headers":[["a"]]}', "headers"),
    ],
)
def test_a_line_that_is_no_record_is_refused(line: bytes, error_text: str) -> None:
    with pytest.raises(FormatError, match=error_text):
        read_document(line, "string", "string")


@pytest.mark.parametrize(
    ("text", "kind"), [(b"0", "hex"), (b"\xff", "hex"), (b"=", "base64"), (b"{", "json"), (b"NaN", "json")]
)
def test_a_value_that_is_not_of_its_format_is_refused(text: bytes, kind: str) -> None:
    with pytest.raises(FormatError):
        read_line(text, None, "string", kind)


def test_a_file_of_json_may_begin_with_a_byte_order_mark() -> None:
    assert read_document(b'\xef\xbb\xbf{"value": "v"}', "string", "string")["value"] == b"v"
    assert read_line(b"\xef\xbb\xbf[1]", None, "json", "json")["value"] == b"[1]"
    assert decode(b"\xef\xbb\xbf[1]", "json") == [1]


def test_a_separator_divides_key_and_value() -> None:
    assert read_line(b"a:b:c", b":", "string", "string") == {"key": b"a", "value": b"b:c"}
    assert read_line(b"a:b", None, "string", "string") == {"key": None, "value": b"a:b"}
    with pytest.raises(FormatError, match="no separator ':'"):
        read_line(b"ab", b":", "string", "string")


def test_fields_of_a_line() -> None:
    record = ConsumerRecord("t", 1, 2, 3, 0, None, b"\xff", (("h", b"\xff"), ("n", None)))
    formats = {"key": "string", "value": "string"}
    assert [field_bytes(record, field, formats) for field in FIELDS] == [
        b"t", b"1", b"2", b"3", b"null", b"h=\\xff,n=null", b"\xff",
    ]  # fmt: skip
    assert field_bytes(record, "value", {"value": "hex"}) == b"ff"


@pytest.mark.parametrize("data", [b"5\0", b"\xff\xfe5\0", b"\0\0\0005"])
def test_json_is_utf_8(data: bytes) -> None:
    """Law CL5: two bytes of a number are not the digit 5 in UTF-16."""
    assert encode(decode(data, "json", "surrogateescape"), "string") == data


def test_cl5_the_null_of_json_is_no_record_without_a_value() -> None:
    """Sent again it would delete its key in a compacted topic. kcat prints "null" for it, too, and null for none."""
    record = ConsumerRecord("t", 1, 2, 3, 0, b"null", b" null", ())
    document = record_document(record, "json", "json")
    assert (document["key"], document["value"]) == ("null", " null")
    assert read_line(b"k:null", b":", "string", "json") == {"key": b"k", "value": b"null"}
    assert read_document(b'{"key":"k","value":null}', "string", "json")["value"] is None
    assert decode(None, "json") is None
