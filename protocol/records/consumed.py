"""Decodes records with their topic and partition, for a consumer. mypyc compiles this file; it also runs interpreted.

Laws
    Compiled and interpreted code return the same results, and the same records as `decode_records`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import (
    HEADERS_PER_BATCH_MAX,
    OFFSET_MAX,
    Headers,
    check_bounds,
    content,
    mypyc_attr,
    place,
)

if TYPE_CHECKING:
    from mypy_extensions import i64


@mypyc_attr(acyclic=True)  # no cycles, like `Record`
class ConsumerRecord:
    """One consumed record: topic, partition, offset, timestamp (ms since the epoch, -1 for none), key, value (None for
    a tombstone), headers. `timestamp_type` is 0 for CreateTime, 1 for LogAppendTime. `leader_epoch` is -1 if unknown.
    """

    __slots__ = (
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        leader_epoch: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers
        self.leader_epoch = leader_epoch

    def _fields(self) -> tuple[str, int, int, int, int, bytes | None, bytes | None, Headers, int]:
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
        )

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, ConsumerRecord) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord({self.topic}-{self.partition}@{self.offset}, timestamp={self.timestamp}, "
            f"key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self) -> tuple[type[ConsumerRecord], tuple[object, ...]]:
        return ConsumerRecord, self._fields()


def decode_consumed(
    data: bytes,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time_ms: int | None,
    topic: str,
    partition: int,
    leader_epoch: int,
    first_offset: int = -OFFSET_MAX,
) -> list[ConsumerRecord]:
    """Decode as `decode_records` does, with topic and partition. Records below `first_offset` are checked and skipped.

    Raises CorruptBatch.
    """
    check_bounds(data, start, end, count, base_offset)
    stamped = append_time_ms is not None
    base_time = base_timestamp if append_time_ms is None else append_time_ms
    try:
        return _decode(
            data, start, end, count, base_offset, base_time, stamped, topic, partition, leader_epoch, first_offset
        )
    except IndexError:
        raise CorruptBatch("a record is cut short") from None


def _decode(
    data: bytes,
    start: i64,
    end: i64,
    count: i64,
    base_offset: i64,
    base_time: i64,
    stamped: bool,
    topic: str,
    partition: int,
    leader_epoch: int,
    first_offset: i64,
) -> list[ConsumerRecord]:
    """Repeat the loop of `decode_records`: creating a Record first would double the time."""
    records: list[ConsumerRecord] = []
    kind = 1 if stamped else 0
    headers_left: i64 = HEADERS_PER_BATCH_MAX
    at = start
    while count > 0:
        count -= 1
        stop, time, offset, at = place(data, at, end, base_offset, base_time, stamped)
        key, value, headers = content(data, at, stop, headers_left)
        at = stop
        if headers:
            headers_left -= len(headers)
        if offset >= first_offset:
            records.append(ConsumerRecord(topic, partition, offset, time, kind, key, value, headers, leader_epoch))
    if at != end:
        raise CorruptBatch(f"{end - at} bytes after the last record")
    return records
