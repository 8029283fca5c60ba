"""One page of records as JSON values, from the batches of a Fetch response. Pure.

Laws
    WB32 A page is bounded however well its records are compressed: it ends behind the record with which its keys,
        values and headers have PAGE_BYTES_MAX bytes, each cut to VALUE_BYTES_MAX, and has at least one record. One
        batch is decompressed at a time. Of a record HEADERS_SHOWN_MAX headers are shown, and all are counted.
    WB33 Every record can be written as JSON: the name of a header that is not UTF-8 is shown with U+FFFD, as Kafka's
        tools show it.
"""

from __future__ import annotations

import base64
import json
from itertools import islice
from typing import Any, Final

from rota.protocol.records.batch import headers
from rota.protocol.records.record import Record, read_records

PAGE_BYTES_MAX: Final = 1024 * 1024  # about 20 ms of JSON at most, which no other thread interrupts
DECOMPRESSED_BYTES_MAX: Final = 16 * 1024 * 1024  # of one batch
VALUE_BYTES_MAX: Final = 64 * 1024  # of a key, a value or a header that is shown; the rest is cut off
HEADERS_SHOWN_MAX: Final = 100
HEADER_BYTES: Final = 50  # of the JSON around a header


def decode_page(data: bytes, first: int, limit: int) -> tuple[list[dict[str, Any]], int]:
    """Return at most `limit` records from `first` on, and the offset to go on at. Raises CorruptBatch."""
    page: list[dict[str, Any]] = []
    next_offset, room = first, PAGE_BYTES_MAX
    for position, header in headers(data, cut=True):
        for record in read_records(data, position, limit_bytes=DECOMPRESSED_BYTES_MAX):
            if record.offset < first:
                continue
            if len(page) == limit or room <= 0:
                return page, next_offset
            page.append(_shown(record))
            room -= _shown_bytes_count(record)
            next_offset = record.offset + 1
        next_offset = max(next_offset, header.next_offset)
    return page, next_offset


def _shown(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "key": shown_bytes(record.key),
        "value": shown_bytes(record.value),
        "headers": [
            {"key": _name(key), "value": shown_bytes(value)} for key, value in islice(record.headers, HEADERS_SHOWN_MAX)
        ],
        "header_count": len(record.headers),
    }


def _shown_bytes_count(record: Record) -> int:
    named = islice(record.headers, HEADERS_SHOWN_MAX)
    parts = (record.key, record.value, *(part for key, value in named for part in (key, value)))
    sizes = (min(len(part), VALUE_BYTES_MAX) for part in parts if part is not None)
    return sum(sizes) + HEADER_BYTES * min(len(record.headers), HEADERS_SHOWN_MAX)


def _name(key: str) -> str:
    """Return the name of a header as it is shown; its bytes that are not UTF-8 are surrogates in `key`."""
    return key[:VALUE_BYTES_MAX].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def shown_bytes(data: bytes | None) -> dict[str, Any] | None:
    """Return bytes as JSON shows them: text where they are UTF-8, else base64. None stays None (a tombstone)."""
    if data is None:
        return None
    part = data[:VALUE_BYTES_MAX]
    shown = {"size_bytes": len(data), "is_cut": len(part) < len(data)}
    try:
        text = part.decode("utf-8", "strict" if len(part) == len(data) else "ignore")
    except UnicodeDecodeError:
        return {**shown, "format": "base64", "text": base64.b64encode(part).decode()}
    return {**shown, "format": "json" if _is_json(text) else "text", "text": text}


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
