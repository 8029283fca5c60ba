"""Keys and values of records as text and JSON, and back. Pure.

Laws
    hex and base64 are exact both ways. string is exact in documents: there a byte that is no UTF-8 is a lone surrogate,
    \\udc80 to \\udcff (Python's surrogateescape); in a line of text it is an escape, as \\xff. json is exact for JSON;
    a value that is none is printed as a string. So is JSON's null: in a document null is a record without the value,
    which deletes the key of a compacted topic.
"""

from __future__ import annotations

import base64
import binascii
import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, Final

from rota.client.types import ConsumerRecord, Headers

FORMATS: Final = ("string", "json", "hex", "base64")
FIELDS: Final = ("topic", "partition", "offset", "timestamp", "key", "headers", "value")
NO_TIMESTAMP: Final = -1
EXACT: Final = "surrogateescape"
RECORD_FIELDS: Final = {"topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"}


class FormatError(ValueError):
    """A line of input that is no record; the message says what is expected."""


def decode(data: bytes | None, kind: str, not_utf8: str = "backslashreplace") -> Any:
    """Return the bytes as a JSON value: None for none. `not_utf8`: how to decode bytes that are no UTF-8."""
    if data is None:
        return None
    match kind:
        case "hex":
            return data.hex()
        case "base64":
            return base64.b64encode(data).decode()
        case "json":
            with suppress(ValueError, RecursionError):
                if (value := _json_value(data)) is not None:
                    return value
            return data.decode("utf-8", not_utf8)
        case _:
            return data.decode("utf-8", not_utf8)


def encode(value: Any, kind: str) -> bytes | None:
    """Return a JSON value as bytes; an object, a list, a number or a boolean as JSON. Raises FormatError."""
    if value is None:
        return None
    if not isinstance(value, str) or kind == "json":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    try:
        match kind:
            case "hex":
                return bytes.fromhex(value)
            case "base64":
                return base64.b64decode(value, validate=True)
            case _:
                return value.encode("utf-8", EXACT)
    except (ValueError, binascii.Error) as failure:
        raise FormatError(f"{value!r} is not {kind}: {failure}") from None


def _json_value(data: bytes, not_utf8: str = "strict") -> Any:
    """Parse JSON as its standard has it, where Python's takes UTF-16, NaN and numbers without end too. A byte order
    mark is no part of it. Raises ValueError, RecursionError."""
    text = data.removeprefix(BOM_UTF8).decode("utf-8", not_utf8)
    return json.loads(text, parse_float=_finite, parse_constant=_finite)


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise ValueError(f"{text} is no number of JSON")
    return number


def record_document(record: ConsumerRecord, key_format: str, value_format: str) -> dict[str, Any]:
    """Return a record as JSON; `rota produce --input json` reads the same form."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": None if record.timestamp == NO_TIMESTAMP else record.timestamp,
        "timestamp_type": "LogAppendTime" if record.timestamp_type else "CreateTime",
        "key": decode(record.key, key_format, EXACT),
        "value": decode(record.value, value_format, EXACT),
        "headers": [[name, decode(value, "string", EXACT)] for name, value in record.headers],
    }


def field_bytes(record: ConsumerRecord, field: str, formats: Mapping[str, str]) -> bytes:
    """Return one field of a line of text; a key or value in the format `string` is not changed."""
    if field in ("key", "value"):
        data, kind = getattr(record, field), formats[field]
        if data is None:
            return b"null"
        return bytes(data) if kind == "string" else _text(decode(data, kind)).encode()
    if field == "headers":
        pairs = (f"{name}={_text(decode(value, 'string'))}" for name, value in record.headers)
        return ",".join(pairs).encode("utf-8", "backslashreplace")
    return str(getattr(record, field)).encode()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_document(line: bytes, key_format: str, value_format: str) -> dict[str, Any]:
    """Parse a record of a JSON line; returns the arguments of `Producer.send`. Raises FormatError."""
    try:
        document = _json_value(line, "surrogatepass")
    except (ValueError, RecursionError) as failure:
        raise FormatError(f"not a JSON object: {failure}") from None
    if not isinstance(document, dict) or "value" not in document:
        raise FormatError('not an object with a "value": {"key": "k", "value": "v", "headers": [["name", "value"]]}')
    unknown = sorted(set(document) - RECORD_FIELDS)
    if unknown:
        raise FormatError(f"unknown fields {', '.join(unknown)}; a record has {', '.join(sorted(RECORD_FIELDS))}")
    timestamp = document.get("timestamp")
    if timestamp is not None and not isinstance(timestamp, int):
        raise FormatError(f"the timestamp {timestamp!r} is not a number of milliseconds since 1970")
    return {
        "value": encode(document["value"], value_format),
        "key": encode(document.get("key"), key_format),
        "timestamp_ms": timestamp,
        "headers": _headers(document.get("headers") or []),
    }


def _headers(given: Any) -> Headers:
    try:
        return tuple((str(name), encode(value, "string")) for name, value in given)
    except (TypeError, ValueError):
        raise FormatError(f'headers {given!r}: expected [["name", "value"], …]') from None


def read_line(line: bytes, separator: bytes | None, key_format: str, value_format: str) -> dict[str, Any]:
    """Parse a line of text: the value, or with a separator key and value. Raises FormatError."""
    key = None
    if separator is not None:
        key, found, line = line.partition(separator)
        if not found:
            raise FormatError(f"no separator {separator.decode(errors='replace')!r} between key and value")
    return {"value": _of_text(line, value_format), "key": None if key is None else _of_text(key, key_format)}


def _of_text(data: bytes, kind: str) -> bytes | None:
    if kind == "string":
        return data
    if kind == "json":
        try:
            return encode(_json_value(data), kind) or b"null"
        except (ValueError, RecursionError) as failure:
            raise FormatError(f"not JSON: {failure}") from None
    return encode(data.decode("ascii", "backslashreplace"), kind)
