"""Encodes and decodes records and varints. mypyc compiles this file; it also runs interpreted.

Laws
    Compiled and interpreted code return the same results and raise the same errors, for valid and for corrupt bytes.
    A length is checked against the remaining bytes before memory is allocated; the input bounds work and memory.
    Arithmetic is int64 and wraps around, so no record can raise an overflow error.

Only the compiler uses `i64`: annotations are not evaluated, and the compiler is not needed at run time.
A record (KIP-98): length varint, attributes i8, timestamp delta varlong, offset delta varint, key, value (length
varint, -1 is null), headers (count varint; key, value). Varints are zigzag.

The file is longer than 400 lines because the loops over a record, in both directions, share their helpers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rota.protocol.records.errors import CorruptBatch

if TYPE_CHECKING:
    from mypy_extensions import i64

try:
    from mypy_extensions import mypyc_attr as mypyc_attr  # noqa: PLC0414 - for consumed.py too
except ImportError:  # only the compiler uses the decorator

    def mypyc_attr(*attrs: str, **kwattrs: object) -> Any:  # type: ignore[misc]
        return lambda kind: kind


RECORD_BYTES_MIN: Final = 7
RECORDS_PER_BATCH_MAX: Final = 1_000_000
HEADERS_PER_BATCH_MAX: Final = 1_000_000  # a two-byte header takes about 60 times as much memory when decoded
INT64_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF
OFFSET_MAX: Final = 1 << 62
FAR_TIME: Final = (1 << 62) - 1  # above it, base + delta may exceed int64; the compiler keeps it unboxed

Headers = tuple[tuple[str, bytes | None], ...]


@mypyc_attr(acyclic=True)  # holds only bytes and text, so the garbage collector can skip it
class Record:
    """One record: offset, timestamp (ms since the epoch, -1 none), key, value (None: a tombstone), headers."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.timestamp, self.key, self.value, self.headers))

    def __repr__(self) -> str:
        return f"Record({self.offset}, {self.timestamp}, {self.key!r}, {self.value!r}, {self.headers!r})"

    def __reduce__(self) -> tuple[type[Record], tuple[int, int, bytes | None, bytes | None, Headers]]:
        return Record, (self.offset, self.timestamp, self.key, self.value, self.headers)


def decode_records(
    data: bytes, start: int, end: int, count: int, base_offset: int, base_timestamp: int, append_time_ms: int | None
) -> list[Record]:
    """Return the `count` records in data[start:end]. Raises CorruptBatch, also when bytes are left over.

    `append_time_ms` is the timestamp of every record in a LogAppendTime batch, None in a CreateTime batch.
    """
    check_bounds(data, start, end, count, base_offset)
    stamped = append_time_ms is not None
    base_time = base_timestamp if append_time_ms is None else append_time_ms
    try:
        return _decode(data, start, end, count, base_offset, base_time, stamped)
    except IndexError:
        raise CorruptBatch("a record is cut short") from None


def check_bounds(data: bytes, start: int, end: int, count: int, base_offset: int) -> None:
    """Check the record count, range and base offset before decoding data[start:end]. Raises CorruptBatch."""
    if start < 0 or end > len(data) or count < 0 or count * RECORD_BYTES_MIN > end - start:
        raise CorruptBatch(f"{count} records cannot be in {end - start} bytes")
    if count > RECORDS_PER_BATCH_MAX:
        raise CorruptBatch(f"{count} records, of {RECORDS_PER_BATCH_MAX} allowed in a batch")
    if not -OFFSET_MAX <= base_offset <= OFFSET_MAX:
        raise CorruptBatch(f"base offset {base_offset}")


def _decode(
    data: bytes, start: i64, end: i64, count: i64, base_offset: i64, base_time: i64, stamped: bool
) -> list[Record]:
    records: list[Record] = []
    headers_left: i64 = HEADERS_PER_BATCH_MAX
    at = start
    while count > 0:
        count -= 1
        stop, time, offset, at = place(data, at, end, base_offset, base_time, stamped)
        key, value, headers = content(data, at, stop, headers_left)
        headers_left -= len(headers)
        records.append(Record(offset, time, key, value, headers))
        at = stop
    if at != end:
        raise CorruptBatch(f"{end - at} bytes after the last record")
    return records


def place(data: bytes, at: i64, end: i64, base_offset: i64, base_time: i64, stamped: bool) -> tuple[i64, i64, i64, i64]:
    """Decode the record's fields before its key: (position after the record, timestamp, offset, key position)."""
    size: i64 = data[at]
    at += 1
    if size > 0x7F:
        size, at = varint_rest(data, at, size)
    size = (size >> 1) ^ -(size & 1)
    stop = at + size
    if size < RECORD_BYTES_MIN - 1 or stop > end:
        raise CorruptBatch(f"a record of {size} bytes, but {end - at} are there")

    at += 1  # skip the attributes, which are unused
    time: i64 = data[at]
    at += 1
    if time > 0x7F:
        time, at = _varlong_rest(data, at, time)
    else:
        time = (time >> 1) ^ -(time & 1)
    time = base_time if stamped else base_time + time
    if time > FAR_TIME or time < -FAR_TIME:
        time = _wrapped(time)

    offset: i64 = data[at]
    at += 1
    if offset > 0x7F:
        offset, at = varint_rest(data, at, offset)
    return stop, time, base_offset + ((offset >> 1) ^ -(offset & 1)), at


def content(data: bytes, at: i64, stop: i64, headers_max: i64) -> tuple[bytes | None, bytes | None, Headers]:
    """Return key, value and headers of the record that ends at `stop`. Raises CorruptBatch.

    A key or value that exceeds the record is detected at the end: a slice never reads beyond the data.
    """
    key: bytes | None = None
    size: i64 = data[at]
    at += 1
    if size > 0x7F:
        size, at = varint_rest(data, at, size)
    if not size & 1:
        after = at + (size >> 1)
        key = data[at:after]
        at = after

    value: bytes | None = None
    size = data[at]
    at += 1
    if size > 0x7F:
        size, at = varint_rest(data, at, size)
    if not size & 1:
        after = at + (size >> 1)
        value = data[at:after]
        at = after

    headers: Headers = ()
    if data[at]:
        headers, at = header_pairs(data, at, stop, headers_max)
    else:
        at += 1
    if at != stop:
        raise CorruptBatch("a record's fields are not as long as the record")
    return key, value, headers


def _wrapped(number: int) -> int:
    number &= _UINT64_MAX
    return number - _UINT64_MAX - 1 if number > INT64_MAX else number


def encode_records(records: list[Record], base_timestamp: int) -> bytes:
    """Encode the records with offset deltas 0, 1, 2, … and timestamp deltas from `base_timestamp`."""
    parts: list[bytes] = []
    for delta, record in enumerate(records):
        _encode(parts, delta, record.timestamp - base_timestamp, record.key, record.value, record.headers)
    return b"".join(parts)


def encode_kept(records: list[Record], base_offset: int, base_timestamp: int) -> bytes:
    """Encode the records with their own offsets, for a compacted batch."""
    parts: list[bytes] = []
    for record in records:
        delta = record.offset - base_offset
        _encode(parts, delta, record.timestamp - base_timestamp, record.key, record.value, record.headers)
    return b"".join(parts)


def encode_pairs(pairs: list[tuple[bytes | None, bytes | None]]) -> bytes:
    """Encode (key, value) pairs with offset deltas 0, 1, 2, …, timestamp delta 0 and no headers."""
    parts: list[bytes] = []
    for delta, (key, value) in enumerate(pairs):
        if key is None or value is None:
            _encode(parts, delta, 0, key, value, ())
            continue
        offset, key_size, value_size = varint(delta), varint(len(key)), varint(len(value))
        size = 3 + len(offset) + len(key_size) + len(key) + len(value_size) + len(value)
        parts.append(b"%b\x00\x00%b%b%b%b%b\x00" % (varint(size), offset, key_size, key, value_size, value))
    return b"".join(parts)


def keep_newest(records: list[Record], newest: dict[Any, bytes | None]) -> None:
    """Set the value of each record's key; keys come in the order in which they were set last."""
    for record in records:
        key = record.key
        if key is not None:
            newest.pop(key, None)
            newest[key] = record.value


def take_entries(
    entries: Iterator[tuple[Any, bytes | None]], count_max: int, bytes_max: int
) -> tuple[list[tuple[Any, bytes | None]], bool]:
    """Return the next (key, value) entries, at most `count_max`, and whether there were no more.

    The last one is that with which keys and values exceed `bytes_max` bytes.
    """
    taken: list[tuple[Any, bytes | None]] = []
    size: i64 = 0
    for entry in entries:
        key, value = entry
        taken.append(entry)
        size += len(key)
        if value is not None:
            size += len(value)
        if size > bytes_max or len(taken) == count_max:
            return taken, False
    return taken, True


class RecordBuffer:
    """Encodes the records of one batch as they are appended, up to `bytes_max` bytes.

    Timestamp deltas are relative to the first record's timestamp.
    """

    __slots__ = ("_bytes_max", "_parts", "base_timestamp", "charged_bytes", "count", "max_timestamp", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.count = 0
        self.size_bytes = 0
        self.charged_bytes = 0  # the memory that its user counts for the records

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        """Append a record. Return False and change nothing if it does not fit; the first record always fits."""
        if not self.count:
            self.base_timestamp = self.max_timestamp = timestamp
        mark = len(self._parts)
        size = self.size_bytes + _encode(self._parts, self.count, timestamp - self.base_timestamp, key, value, headers)
        if size > self._bytes_max and self.count:
            del self._parts[mark:]
            return False
        self.size_bytes = size
        self.count += 1
        self.max_timestamp = max(self.max_timestamp, timestamp)
        return True

    def payload(self) -> bytes:
        return b"".join(self._parts)

    def release(self) -> None:
        """Free the records, at least one; no more are taken. Count, sizes and timestamps stay."""
        self._parts = []
        self._bytes_max = -1


def _encode(
    parts: list[bytes],
    offset_delta: i64,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> int:
    """Append the encoded record to `parts`; return its size in bytes."""
    time = varint(timestamp_delta)
    offset = varint(offset_delta)
    key_size = _NULL if key is None else varint(len(key))
    value_size = _NULL if value is None else varint(len(value))
    size: i64 = 1 + len(time) + len(offset) + len(key_size) + len(value_size)
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    tail = _encode_headers(headers) if headers else _NO_HEADERS
    size += len(tail)
    prefix = varint(size)
    parts.append(prefix)
    parts.append(_NO_ATTRIBUTES)
    parts.append(time)
    parts.append(offset)
    parts.append(key_size)
    if key is not None:
        parts.append(key)
    parts.append(value_size)
    if value is not None:
        parts.append(value)
    parts.append(tail)
    return size + len(prefix)


def _encode_headers(headers: Headers) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        raw = name.encode("utf-8", "surrogateescape")
        parts.append(varint(len(raw)))
        parts.append(raw)
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(varint(len(value)))
            parts.append(value)
    return b"".join(parts)


def varint(number: int) -> bytes:
    """Encode a zigzag varint: seven bits per byte, low bits first. A number beyond int64 wraps around."""
    if -_SMALL <= number < _SMALL:
        return _VARINTS[number]
    if number > FAR_TIME or number < -FAR_TIME:
        number = _wrapped(number)
    rest = (number << 1) ^ (number >> 63)
    out: list[int] = []
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def varint_rest(data: bytes, at: i64, first: i64) -> tuple[i64, i64]:
    """Decode the rest of a varint whose first byte is above 0x7F: (value before zigzag, position after it).

    Raises CorruptBatch for more than 32 bits, IndexError at the end of the data.
    """
    value = first & 0x7F
    shift: i64 = 7
    while True:
        byte: i64 = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift == 35:
            raise CorruptBatch("a varint of more than 5 bytes")
    if value > 0xFFFF_FFFF:
        raise CorruptBatch("a varint of more than 32 bits")
    return value, at


def _varlong_rest(data: bytes, at: i64, first: i64) -> tuple[i64, i64]:
    """Decode the rest of a varlong as `varint_rest` does, with 64 bits: (value after zigzag, position after it)."""
    half: i64 = INT64_MAX
    value = first & 0x7F
    shift: i64 = 7
    while True:
        byte: i64 = data[at]
        at += 1
        if shift == 63 and byte > 1:
            raise CorruptBatch("a varlong of more than 64 bits")
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((value >> 1) & half) ^ -(value & 1), at  # mask: compiled, >> would copy the sign bit
        shift += 7


def header_pairs(data: bytes, at: i64, stop: i64, headers_max: i64) -> tuple[Headers, i64]:
    """Decode the headers at `at`: (headers, position after them). Raises CorruptBatch."""
    count: i64 = data[at]
    at += 1
    if count > 0x7F:
        count, at = varint_rest(data, at, count)
    if count & 1 or count > stop - at:  # the zigzag count is doubled; a header takes at least two bytes
        raise CorruptBatch(f"{(count >> 1) ^ -(count & 1)} headers in {stop - at} bytes")
    found: list[tuple[str, bytes | None]] = []
    left = count >> 1
    if left > headers_max:
        raise CorruptBatch(f"more than {HEADERS_PER_BATCH_MAX} headers in a batch")
    while left > 0:
        left -= 1
        name, at = _sized(data, at, stop)
        if name is None:
            raise CorruptBatch("a header without a name")
        value, at = _sized(data, at, stop)
        found.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(found), at


def _sized(data: bytes, at: i64, stop: i64) -> tuple[bytes | None, i64]:
    size: i64 = data[at]
    at += 1
    if size > 0x7F:
        size, at = varint_rest(data, at, size)
    if size & 1:
        return None, at
    after = at + (size >> 1)
    if after > stop:
        raise CorruptBatch(f"a header of {size >> 1} bytes, but {stop - at} are there")
    return data[at:after], after


def _varint_table() -> list[bytes]:
    """Return encoded varints, indexed by number; a negative number is a negative list index."""
    table: list[bytes] = []
    for number in [*range(_SMALL), *range(-_SMALL, 0)]:
        zigzag = (number << 1) ^ (number >> 63)
        table.append(bytes([zigzag]) if zigzag < 0x80 else bytes([zigzag & 0x7F | 0x80, zigzag >> 7]))
    return table


_SMALL: Final = 1024
_UINT64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF
_VARINTS: Final = _varint_table()
_NULL: Final = b"\x01"
_NO_HEADERS: Final = b"\x00"
_NO_ATTRIBUTES: Final = b"\x00"
