"""What a producer does for each record: the partition of its key, its memory. mypyc compiles this file as `fast`.

Laws
    Compiled and interpreted code return the same results.
    A record is taken only if it is whole: it fits the open batch, and the memory of the producer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rota.protocol.records.fast import RecordBuffer

if TYPE_CHECKING:
    from mypy_extensions import i64

RECORD_OVERHEAD_BYTES_MAX: Final = 21  # length, attributes, deltas, lengths of key and value, count of headers
NOT_TAKEN: Final = -1

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_U32: Final = 0xFFFF_FFFF
_POSITIVE: Final = 0x7FFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 of Kafka (org.apache.kafka.common.utils.Utils), unsigned."""
    size: i64 = len(data)
    hashed: i64 = _SEED ^ size
    at: i64 = 0
    while at + 4 <= size:
        low: i64 = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24
        word: i64 = low * _M & _U32
        hashed = (hashed * _M ^ (word ^ word >> 24) * _M) & _U32
        at += 4
    if at < size:
        rest: i64 = 0
        shift: i64 = 0
        while at < size:
            byte: i64 = data[at]
            rest |= byte << shift
            shift += 8
            at += 1
        hashed = (hashed ^ rest) * _M & _U32
    hashed = (hashed ^ hashed >> 13) * _M & _U32
    return hashed ^ hashed >> 15


def partition_of(key: bytes, count: int) -> int:
    """The partition of a key in a topic of `count` partitions, led by somebody or not."""
    return (murmur2(key) & _POSITIVE) % count


class BufferMemory:
    """The memory of records that are not delivered yet, `bytes_max` in all; no record takes more than
    `record_bytes_max`. While `is_open` is False nothing is taken: earlier records wait. `wall_s` returns the time."""

    __slots__ = ("_wall_s", "bytes_max", "is_open", "record_bytes_max", "taken_ms", "used_bytes")

    def __init__(self, bytes_max: int, record_bytes_max: int, wall_s: Callable[[], float]) -> None:
        self._wall_s = wall_s
        self.bytes_max = bytes_max
        self.record_bytes_max = record_bytes_max
        self.used_bytes = 0
        self.taken_ms = -1  # the timestamp of the last record of `take`
        self.is_open = True

    def take(self, records: RecordBuffer, key: bytes | None, value: object) -> int:
        """Append a record of now, without headers, and charge its size; return its index in the batch.

        Return NOT_TAKEN and change nothing if it does not fit, or if `value` is neither bytes nor None.
        """
        if not self.is_open or (value is not None and type(value) is not bytes):
            return NOT_TAKEN
        timestamp = int(self._wall_s() * 1000)
        if not self._append(records, timestamp, key, value):
            return NOT_TAKEN
        self.taken_ms = timestamp
        return records.count - 1

    def _append(self, records: RecordBuffer, timestamp: int, key: bytes | None, value: bytes | None) -> bool:
        """Append a record without headers and charge its size; return False and change nothing if it does not fit."""
        size = RECORD_OVERHEAD_BYTES_MAX
        if key is not None:
            size += len(key)
        if value is not None:
            size += len(value)
        used = self.used_bytes + size
        if size > self.record_bytes_max or used > self.bytes_max or not records.append(timestamp, key, value, ()):
            return False
        records.charged_bytes += size
        self.used_bytes = used
        return True

    def take_rows(
        self,
        buffers: list[RecordBuffer | None],
        keys: list[Any] | None,
        values: list[Any],
        at: int,
        end: int,
    ) -> int:
        """Append records of now, without headers, from index `at` to before `end`; return the index of the first that
        is not taken, or `end`.

        `buffers` has the open batch of each partition; with one entry all records go to it, with more each goes to the
        partition of its key. A record is not taken if it has no key among several partitions, if its partition has no
        open batch, if it does not fit (as `take`), and if its key or value is neither bytes nor None.
        """
        timestamp = int(self._wall_s() * 1000)
        count = len(buffers)
        if not self.is_open or not count:
            return at
        while at < end:
            value = values[at]
            key = None if keys is None else keys[at]
            if value is not None and type(value) is not bytes:
                return at
            place = 0
            if key is not None:
                if type(key) is not bytes:
                    return at
                if count > 1:
                    place = partition_of(key, count)
            elif count > 1:
                return at
            records = buffers[place]
            if records is None or not self._append(records, timestamp, key, value):
                return at
            at += 1
        return at
