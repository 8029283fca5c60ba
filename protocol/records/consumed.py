"""Records as a consumer sees them: with their topic and partition. One file, compiled by mypyc or interpreted.

Laws
    Compiled and interpreted give the same results, and the same records as `decode_records` gives.
"""

from __future__ import annotations

from rota.protocol.records.fast import Headers, decode_records


class ConsumerRecord:
    """One consumed record: where it lies, timestamp (ms since the epoch, -1 none), key, value (None: a tombstone),
    headers. `timestamp_type` 0: the producer's clock, 1: the broker's. `leader_epoch` -1 when not known.
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
) -> list[ConsumerRecord]:
    """As `decode_records`, with where the records lie."""
    kind = 0 if append_time_ms is None else 1
    return [
        ConsumerRecord(topic, partition, one.offset, one.timestamp, kind, one.key, one.value, one.headers, leader_epoch)
        for one in decode_records(data, start, end, count, base_offset, base_timestamp, append_time_ms)
    ]
