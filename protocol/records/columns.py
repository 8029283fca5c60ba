"""Records as columns: batches in, buffers in Apache Arrow's layout out. One file, compiled by mypyc or interpreted.

Laws
    The columns hold what `decode_records` gives for the same bytes, cut to the offsets that were asked for; the same
    garbage raises CorruptBatch, and the rows of a batch that raised are not to be used.
    Compiled and interpreted give the same buffers.
    Nothing is kept for a record but its bytes in the columns.

Buffers are little endian; offsets are int32, one more than rows;
times are microseconds since the epoch, as Spark has them. `librt`, the compiler's own runtime library, has the buffers
that grow; the extra `spark` brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i32_le, write_i64_le

from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import HEADERS_PER_BATCH_MAX, Headers, check_bounds, content, place

if TYPE_CHECKING:
    from mypy_extensions import i64

US_PER_MS: Final = 1000
TIME_MS_MAX: Final = 9_223_372_036_854_775  # what an int64 holds as microseconds


class Bits:
    """One bit for each row, low bits first; those after the last row are 0."""

    __slots__ = ("_done", "_open", "count")

    def __init__(self) -> None:
        self.count: i64 = 0
        self._done = BytesWriter()
        self._open: i64 = 0

    def add(self, bit: i64) -> None:
        at = self.count & 7
        self._open |= bit << at
        self.count += 1
        if at == 7:
            self._done.append(self._open)
            self._open = 0

    def getvalue(self) -> bytes:
        done = self._done.getvalue()
        return done + bytes([self._open]) if self.count & 7 else done


class BinaryColumn:
    """Bytes or null, row after row. At most 2 GiB, as the offsets are int32: the caller looks at `size_bytes`."""

    __slots__ = ("data", "nulls", "offsets", "size_bytes", "validity")

    def __init__(self) -> None:
        self.data = BytesWriter()
        self.offsets = BytesWriter()
        self.nulls: i64 = 0
        self.size_bytes: int = 0
        self.validity = Bits()
        write_i32_le(self.offsets, 0)

    def add(self, value: bytes | None) -> None:
        """One row."""
        if value is None:
            self.nulls += 1
            self.validity.add(0)
        else:
            self.validity.add(1)
            self.data.write(value)
            self.size_bytes += len(value)
        write_i32_le(self.offsets, self.size_bytes)

    @property
    def count(self) -> int:
        """Rows."""
        return self.validity.count


class Columns:
    """The rows of some batches of one partition. Headers are kept when `with_headers`: null in a row without any."""

    __slots__ = (
        "count",
        "header_names",
        "header_offsets",
        "header_validity",
        "header_values",
        "keys",
        "offsets",
        "timestamps_us",
        "types",
        "values",
        "with_headers",
    )

    def __init__(self, with_headers: bool = False) -> None:
        self.with_headers = with_headers
        self.count: i64 = 0
        self.keys = BinaryColumn()
        self.values = BinaryColumn()
        self.offsets = BytesWriter()
        self.timestamps_us = BytesWriter()
        self.types = BytesWriter()
        self.header_names = BinaryColumn()
        self.header_values = BinaryColumn()
        self.header_offsets = BytesWriter()
        self.header_validity = Bits()
        write_i32_le(self.header_offsets, 0)

    @property
    def size_bytes(self) -> int:
        """About what the rows take."""
        names = self.header_names.size_bytes + self.header_values.size_bytes
        return self.keys.size_bytes + self.values.size_bytes + names + 28 * self.count

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
        """Of the `count` records in data[start:end] those with offsets first … stop-1. Raises CorruptBatch."""
        check_bounds(data, start, end, count, base_offset)
        stamped = append_time_ms is not None
        base_time = base_timestamp if append_time_ms is None else append_time_ms
        try:
            self._add(data, start, end, count, base_offset, base_time, stamped, first, stop)
        except IndexError:
            raise CorruptBatch("a record is cut short") from None

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
        kind = 1 if stamped else 0
        headers_left: i64 = HEADERS_PER_BATCH_MAX
        at = start
        while count > 0:
            count -= 1
            after, time, offset, at = place(data, at, end, base_offset, base_time, stamped)
            key, value, headers = content(data, at, after, headers_left)
            at = after
            if headers:
                headers_left -= len(headers)
            if offset < first or offset >= stop:
                continue
            self.keys.add(key)
            self.values.add(value)
            write_i64_le(self.offsets, offset)
            write_i64_le(self.timestamps_us, _microseconds(time))
            write_i32_le(self.types, kind)
            if self.with_headers:
                self._add_headers(headers)
            self.count += 1
        if at != end:
            raise CorruptBatch(f"{end - at} bytes after the last record")

    def _add_headers(self, headers: Headers) -> None:
        self.header_validity.add(1 if headers else 0)
        for name, value in headers:
            self.header_names.add(_utf8(name))
            self.header_values.add(value)
        write_i32_le(self.header_offsets, self.header_names.count)


def _microseconds(time: i64) -> i64:
    if time > TIME_MS_MAX:
        time = TIME_MS_MAX
    elif time < -TIME_MS_MAX:
        time = -TIME_MS_MAX
    return time * US_PER_MS


def _utf8(name: str) -> bytes:
    """A header's name; what is no UTF-8 in it becomes U+FFFD, as Java reads it."""
    try:
        return name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
