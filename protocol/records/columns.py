"""Decodes record batches into columns in Apache Arrow's layout. mypyc compiles this file; it also runs interpreted.

Laws
    The columns hold the records that `decode_records` returns for the same bytes, limited to the requested offsets.
    The same corrupt bytes raise CorruptBatch; the caller must then discard the rows of that batch.
    Compiled and interpreted code return the same buffers.
    Keys and values are not copied: a row stores their positions in the input bytes.
    A row stores only these positions, the header bytes, the offset, the timestamp and the timestamp type.

Buffers are little endian; timestamps are microseconds since the epoch, as in Spark. The growing buffers come from
`librt`, mypyc's runtime library, which the extra `spark` installs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i32_le, write_i64_le

from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import (
    HEADERS_PER_BATCH_MAX,
    Headers,
    check_bounds,
    header_pairs,
    place,
    varint_rest,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

US_PER_MS: Final = 1000
TIME_MS_MAX: Final = 9_223_372_036_854_775  # largest time that fits an int64 in microseconds
SOURCE_BYTES_MAX: Final = 0x7FFF_FFFF  # positions are int32


class Validity:
    """A validity bitmap: one bit per row, low bits first, 0 for null. It is filled only at nulls and in `getvalue`."""

    __slots__ = ("_count", "_done", "_open", "nulls")

    def __init__(self) -> None:
        self.nulls: i64 = 0
        self._count: i64 = 0
        self._done = BytesWriter()
        self._open: i64 = 0

    def null(self, row: i64) -> None:
        """Mark the row as null, and all unmarked rows before it as not null. Call in row order."""
        self._fill(row)
        self._add(0)
        self.nulls += 1

    def getvalue(self, rows: int) -> bytes:
        """Return the bitmap of `rows` rows, padded with 0 to a whole byte."""
        self._fill(rows)
        done = self._done.getvalue()
        return done + bytes([self._open]) if self._count & 7 else done

    def _fill(self, rows: i64) -> None:
        while self._count < rows:
            self._add(1)

    def _add(self, bit: i64) -> None:
        at = self._count & 7
        self._open |= bit << at
        self._count += 1
        if at == 7:
            self._done.append(self._open)
            self._open = 0


class BinaryColumn:
    """A column of bytes or null; values are copied. Offsets are int32, so the caller must keep `size_bytes` below
    2 GiB."""

    __slots__ = ("count", "data", "offsets", "size_bytes", "validity")

    def __init__(self) -> None:
        self.count: i64 = 0
        self.data = BytesWriter()
        self.offsets = BytesWriter()
        self.size_bytes: int = 0
        self.validity = Validity()
        write_i32_le(self.offsets, 0)

    def add(self, value: bytes | None) -> None:
        """Append one row."""
        if value is None:
            self.validity.null(self.count)
        else:
            self.data.write(value)
            self.size_bytes += len(value)
        self.count += 1
        write_i32_le(self.offsets, self.size_bytes)


class Columns:
    """The rows of several batches of one partition. Headers are kept if `with_headers`; a row without headers is null.

    `places` holds four int32 per row, in ascending order: start and end of the key in `source()`, start and end of the
    value. A null has an empty range there and is null in the bitmap `keys` or `values`.
    """

    __slots__ = (
        "_base",
        "_sources",
        "content_bytes",
        "count",
        "header_names",
        "header_offsets",
        "header_validity",
        "header_values",
        "keys",
        "offsets",
        "places",
        "source_bytes",
        "timestamps_us",
        "types",
        "values",
        "with_headers",
    )

    def __init__(self, with_headers: bool = False) -> None:
        self.with_headers = with_headers
        self.count: i64 = 0
        self.content_bytes: i64 = 0
        self.source_bytes: i64 = 0
        self._base: i64 = 0
        self._sources: list[bytes] = []
        self.places = BytesWriter()
        self.keys = Validity()
        self.values = Validity()
        self.offsets = BytesWriter()
        self.timestamps_us = BytesWriter()
        self.types = BytesWriter()
        self.header_names = BinaryColumn()
        self.header_values = BinaryColumn()
        self.header_offsets = BytesWriter()
        self.header_validity = Validity()
        write_i32_le(self.header_offsets, 0)

    @property
    def size_bytes(self) -> int:
        """Approximate size of the rows in bytes."""
        return self.content_bytes + self.header_names.size_bytes + self.header_values.size_bytes + 28 * self.count

    def source(self) -> bytes:
        """Return the bytes that `places` refers to: the input buffer, or several input buffers joined."""
        return self._sources[0] if len(self._sources) == 1 else b"".join(self._sources)

    def is_from(self, data: bytes) -> bool:
        """Whether `source()` needs no copy after records of this buffer are added."""
        return not self._sources or self._sources[len(self._sources) - 1] is data

    def add_batch(
        self,
        data: bytes,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time_ms: int | None,
        first: int,
        stop: int,
    ) -> None:
        """Decode the `count` records in data[start:end]; add those with offsets first … stop-1. Raises CorruptBatch."""
        check_bounds(data, start, end, count, base_offset)
        if not self._sources or not self.is_from(data):
            self._begin(data)
        stamped = append_time_ms is not None
        base_time = base_timestamp if append_time_ms is None else append_time_ms
        try:
            self._add(data, start, end, count, base_offset, base_time, stamped, first, stop)
        except IndexError:
            raise CorruptBatch("a record is cut short") from None

    def _begin(self, data: bytes) -> None:
        if self.source_bytes + len(data) > SOURCE_BYTES_MAX:
            raise CorruptBatch(f"{self.source_bytes + len(data)} bytes of records at once")
        self._base = self.source_bytes
        self._sources.append(data)
        self.source_bytes += len(data)

    def _add(
        self,
        data: bytes,
        start: i64,
        end: i64,
        count: i64,
        base_offset: i64,
        base_time: i64,
        stamped: bool,
        first: i64,
        stop: i64,
    ) -> None:
        headers_left: i64 = HEADERS_PER_BATCH_MAX
        at = start
        while count > 0:
            count -= 1
            after, time, offset, at = place(data, at, end, base_offset, base_time, stamped)
            key_at, key_end, is_key, at = field(data, at)
            value_at, value_end, is_value, at = field(data, at)
            headers: Headers = ()
            if data[at]:
                headers, at = header_pairs(data, at, after, headers_left)
                headers_left -= len(headers)
            else:
                at += 1
            if at != after:
                raise CorruptBatch("a record's fields are not as long as the record")
            if offset < first or offset >= stop:
                continue
            if not is_key:
                self.keys.null(self.count)
            if not is_value:
                self.values.null(self.count)
            if self.with_headers:
                self._add_headers(headers)
            write_i32_le(self.types, 1 if stamped else 0)
            self._add_row(key_at, key_end, value_at, value_end, offset, time)
        if at != end:
            raise CorruptBatch(f"{end - at} bytes after the last record")

    def _add_row(self, key_at: i64, key_end: i64, value_at: i64, value_end: i64, offset: i64, time: i64) -> None:
        base = self._base
        write_i64_le(self.places, (base + key_end) << 32 | (base + key_at))  # two int32 in one write
        write_i64_le(self.places, (base + value_end) << 32 | (base + value_at))
        write_i64_le(self.offsets, offset)
        write_i64_le(self.timestamps_us, _microseconds(time))
        self.content_bytes += key_end - key_at + value_end - value_at
        self.count += 1

    def _add_headers(self, headers: Headers) -> None:
        if not headers:
            self.header_validity.null(self.count)
        for name, value in headers:
            self.header_names.add(_utf8(name))
            self.header_values.add(value)
        write_i32_le(self.header_offsets, int(self.header_names.count))


def field(data: bytes, at: i64) -> tuple[i64, i64, bool, i64]:
    """Return a key's or value's (start, end, whether it is not null, position of the next field). The caller checks
    that it ends within its record."""
    size: i64 = data[at]
    at += 1
    if size > 0x7F:
        size, at = varint_rest(data, at, size)
    if size & 1:
        return at, at, False, at
    after = at + (size >> 1)
    return at, after, True, after


def _microseconds(time: i64) -> i64:
    if time > TIME_MS_MAX:
        time = TIME_MS_MAX
    elif time < -TIME_MS_MAX:
        time = -TIME_MS_MAX
    return time * US_PER_MS


def _utf8(name: str) -> bytes:
    """Encode a header's name as UTF-8. Invalid bytes become U+FFFD, as in Java."""
    try:
        return name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
